"""Uploaded tables: named in messages as their owner knows them, stored under a digest, columns guessed."""

from __future__ import annotations

import os
import stat
import time
from dataclasses import replace

import pytest

pytest.importorskip("streamlit")

from headviz.errors import TaskError
from headviz.tasks.readers import file_name
from headviz.ui.pages import data
from headviz.ui.parts import scoring
from headviz.ui.shell import loaders, uploads
from headviz.ui.shell.view import View

BROKEN = b"text,label\nthe dog sleeps,yes\na cat,\na dog,no\n"


def test_a_complaint_names_the_file_as_it_was_uploaded() -> None:
    place = uploads.keep_upload(BROKEN, "csv", "reviews of May.csv")
    view = replace(View(), task="custom", data=place, columns="text", label="label")
    with pytest.raises(TaskError, match=r"^reviews of May\.csv, line 3: nothing in column 'label'"):
        loaders.dataset(view)
    with pytest.raises(TaskError, match=r"reviews of May\.csv has no column 'body'"):
        loaders.dataset(replace(view, columns="body"))


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("../../etc/passwd.csv", "passwd.csv"),
        ("C:\\tables\\my.csv", "my.csv"),
        ("a\nb\x00.csv", "ab.csv"),
        (r"\1<b>.csv", "1<b>.csv"),
        ("x" * 500 + ".csv", "x" * 76 + ".csv"),
    ],
)
def test_a_name_never_becomes_a_path(given: str, kept: str) -> None:
    place = uploads.keep_upload(b"text,label\na b,x\n", "csv", given)
    assert uploads.upload_name(place) == kept
    folder = uploads.uploads()[place]
    assert folder.parent == uploads.uploads_folder()
    assert {p.name for p in folder.iterdir()} == {".name", "dev.csv"}
    with uploads.naming():
        assert file_name(folder / "dev.csv") == kept
        assert file_name(folder / "train_dev.csv") == "train_dev.csv"
        assert file_name(folder.parent / "dev.csv") == "dev.csv"
    assert file_name(folder / "dev.csv") == "dev.csv"


def test_text_and_label_columns_are_guessed_by_what_is_in_them() -> None:
    table = {
        "id": ["1", "2"],
        "premise": ["the dog sleeps", "a cat runs"],
        "hypothesis": ["a dog is asleep", "it is a cat"],
        "gold_label": ["neutral", "entailment"],
        "genre": ["fiction", "letters"],
    }
    label = data.guess_label(table)
    assert label == "gold_label"
    assert data.guess_texts(table, label) == ["premise", "hypothesis"]
    assert data.guess_texts(table, label, num_texts=2) == ["premise", "hypothesis"]
    assert data.guess_texts(table, label, num_texts=1) == ["premise"]
    assert data.guess_texts({"word": ["dog", "cat"], "y": ["1", "2"]}, "y", num_texts=2) == ["word"]
    assert data.guess_label({"word": [], "y": []}) == "y"
    mine = {"answer": ["Neutral", "entailment "], "text": ["a dog sleeps", "a cat"], "kind": ["a", "b"]}
    assert data.guess_label(mine, ("entailment", "neutral", "contradiction")) == "answer"
    assert data.guess_label(mine, ("yes", "no")) == data.guess_label(mine) == "kind"
    typo = {"text": ["a dog", "a cat", "a cow"], "gold?": ["neutral", "", "entailment"], "note": ["a", "b", "c"]}
    assert data.guess_label(typo, ("entailment", "neutral", "contradiction")) == "gold?"


@pytest.mark.parametrize("name", ["x" * 3000, "x" * 300 + "/y", "a\0b", "é" * 200])
def test_what_no_file_system_takes_as_a_name_is_refused_in_words(name: str) -> None:
    from headviz.errors import UserError
    from headviz.ui.shell import loaders

    with pytest.raises(UserError, match=r"The model: .* Give another path"):
        loaders.model_name(name)
    with pytest.raises(UserError, match=r"The folder: .* Give another path"):
        loaders.confined(name)
    assert loaders.model_name("textattack/bert-base-uncased-MNLI") == "textattack/bert-base-uncased-MNLI"


def test_an_upload_is_read_by_the_separator_in_its_header() -> None:
    place = uploads.keep_upload(b"a;b;y\nx;z;no\n", "csv", "mine.csv")
    assert data.peek(place, "csv") == {"a": ["x"], "b": ["z"], "y": ["no"]}
    with pytest.raises(TaskError, match="one column only"):
        data.peek(uploads.keep_upload(b"a\nx\n", "csv", "mine.csv"), "csv")
    with pytest.raises(TaskError, match="no columns"):
        data.peek(uploads.keep_upload(b"{}\n{}\n", "jsonl", "mine.jsonl"), "jsonl")


ROWS = b"text,label\nthe dog sleeps,yes\na cat runs,no\n"


def view_of(place: str) -> View:
    return replace(View(), task="custom", data=place, columns="text", label="label")


def test_a_table_to_train_on_comes_beside_the_one_to_measure_on() -> None:
    alone = uploads.keep_upload(ROWS, "csv", "mine.csv")
    more = ROWS + b"a bird sings,no\n"
    both = uploads.keep_upload(ROWS, "csv", "mine.csv", uploads.Table(more, "csv", "more.csv"))
    assert both != alone
    assert (uploads.has_train(both), uploads.has_train(alone)) == (True, False)
    assert (len(loaders.dataset(view_of(both))), len(loaders.train(view_of(both)))) == (2, 3)
    assert len(loaders.dataset(view_of(alone))) == 2
    broken = uploads.keep_upload(ROWS, "csv", "mine.csv", uploads.Table(BROKEN, "csv", "more.csv"))
    with pytest.raises(TaskError, match=r"more\.csv, line 3"):
        loaders.train(view_of(broken))
    with pytest.raises(TaskError, match="'exe' files cannot be read"):
        uploads.keep_upload(ROWS, "csv", "mine.csv", uploads.Table(more, "exe"))


def test_one_table_keeps_the_id_that_links_have() -> None:
    import hashlib

    assert uploads.keep_upload(ROWS, "csv") == f"upload-{hashlib.sha256(b'csv' + ROWS).hexdigest()[:16]}"


def test_a_cell_that_says_the_stored_name_is_left_as_it_is() -> None:
    place = uploads.keep_upload(b"text,label\na dog,dev.csv\na cat,\n", "csv", "mine.csv")
    assert loaders.dataset(view_of(uploads.keep_upload(ROWS, "csv", "mine.csv"))).origin == "file: mine.csv"
    with pytest.raises(TaskError, match=r"^mine\.csv has no column 'dev\.csv'"):
        loaders.dataset(replace(view_of(place), columns="dev.csv"))


def test_scores_say_that_they_come_from_dev_and_from_how_few() -> None:
    place = uploads.keep_upload(ROWS, "csv", "mine.csv")
    data = loaders.dataset(view_of(place))
    (where, few) = scoring.sample_notes(data, 64)
    assert "drawn from dev" in where
    assert few.startswith("64 were asked for")
    assert scoring.sample_notes(replace(data, split="train"), 2) == ()


def test_uploads_are_private() -> None:
    kept = uploads.keep_upload(b"text,label\na,1\n", "csv")
    for folder in (uploads.uploads_folder(), uploads.uploads()[kept]):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_uploads_have_an_age_and_a_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "LARGEST", 1000)
    first, second = (uploads.keep_upload(letter * 400, "csv") for letter in (b"a", b"b"))
    with pytest.raises(TaskError, match="full"):  # both are of today
        uploads.keep_upload(b"c" * 400, "csv")
    assert set(uploads.uploads()) == {first, second}
    made = uploads.uploads()[first] / "dev.csv"
    os.utime(made, (time.time() - 2 * uploads.IN_USE,) * 2)
    third = uploads.keep_upload(b"c" * 400, "csv")
    assert set(uploads.uploads()) == {second, third}
    os.utime(uploads.uploads()[second] / "dev.csv", (time.time() - uploads.OLDEST - 9,) * 2)
    fourth = uploads.keep_upload(b"d", "csv")
    assert set(uploads.uploads()) == {third, fourth}
