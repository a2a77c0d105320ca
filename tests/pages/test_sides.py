"""A | B on Compare, and many pairs from a file: the answers of the two that were chosen, those that change first."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headviz.errors import UserError
from headviz.heads import HeadMask
from headviz.ui.pages.compare import answers, sides
from headviz.ui.pages.compare.answers import read_file

OFF = HeadMask.full(12, 12).without_random(40, seed=3)
TEXTS = ("Premise", "Hypothesis")


def sheet(rows: list[list[str]]) -> bytes:
    """A spreadsheet as programs write it: shared strings, and cells that are left out."""
    strings = sorted({cell for row in rows for cell in row if cell})
    name = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    cells = "".join(
        "<row>"
        + "".join(
            f'<c r="{chr(65 + i)}{n}" t="s"><v>{strings.index(cell)}</v></c>' for i, cell in enumerate(row) if cell
        )
        + "</row>"
        for n, row in enumerate(rows, 1)
    )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as parts:
        parts.writestr("xl/sharedStrings.xml", f"<sst {name}>{''.join(f'<si><t>{s}</t></si>' for s in strings)}</sst>")
        parts.writestr("xl/worksheets/sheet1.xml", f"<worksheet {name}><sheetData>{cells}</sheetData></worksheet>")
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", b"a dog|an animal\ntwo cats|a cat"),
        ("a.tsv", b"a dog\tan animal\ntwo cats\ta cat"),
        ("a.csv", b"premise,hypothesis\na dog,an animal\ntwo cats,a cat\n"),
        ("a.csv", b"id;hypothesis;premise\n1;an animal;a dog\n2;a cat;two cats\n"),
        ("a.csv", b'"a dog","an animal"\n"two cats","a cat"\n'),
        ("a.csv", b"note;first text;second text;gold?\ngood;a dog;an animal;yes\nbad;two cats;a cat;yes\n"),
        ("a.tsv", b"premise\thypothesis\tlabel\na dog\tan animal\tyes\ntwo cats\ta cat\tno\n"),
        ("a.tsv", b"a dog\tan animal\tyes\ntwo cats\ta cat\tyes\n"),
        ("a.xlsx", sheet([["sentence1", "sentence2"], ["a dog", "an animal"], ["two cats", "a cat"]])),
        ("a.xlsx", sheet([["Premise", "", "Hypothesis"], ["a dog", "", "an animal"], ["two cats", "x", "a cat"]])),
    ],
)
def test_pairs_are_read_from_any_usual_file(name: str, content: bytes) -> None:
    lines, wrong = answers.read_lines(read_file(content, name, TEXTS), paired=True)
    assert ([*lines.values()], wrong) == ([("a dog", "an animal"), ("two cats", "a cat")], [])


def test_an_empty_cell_costs_its_line_only_and_lines_count_as_in_the_file() -> None:
    raw = read_file(b"premise;hypothesis\na dog;an animal\n\na cat;\ntwo cats;a cat\n", "a.csv", TEXTS)
    lines, wrong = answers.read_lines(raw, paired=True)
    assert [*lines] == [2, 5]
    assert len(wrong) == 1
    assert "4" in wrong[0]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.xlsx", b"PK no zip"),
        ("a.txt", b"a\0b"),
        ("a.csv", b"\n\n"),
        ("a.csv", "der B\u00e4r;ein B\u00e4r\n".encode("latin-1")),
        ("a.csv", b"premise,hypothesis\n" + b"x" * 200_000 + b",y\n"),
    ],
)
def test_a_file_that_holds_no_texts_is_refused_in_a_sentence(name: str, content: bytes) -> None:
    before = csv.field_size_limit(131_072)  # of the process; data files may have raised it
    with pytest.raises(UserError):
        read_file(content, name, TEXTS)
    csv.field_size_limit(before)


def test_typed_words_name_the_entry_that_begins_with_them() -> None:
    """The list offers what is typed as a new entry, and Enter took "current mask" for a model of that name."""
    names = {"all": "all heads", "mask": "current mask (1 off)", "run:1:0": "a, 10 % off", "run:1:1": "a, 20 % off"}
    keys = {"": "", "mask": "mask", "Current mask": "mask", "all heads": "all", "a, 20": "run:1:1", "20 %": "run:1:1"}
    keys |= {"a": "a", "%": "%", "my/model": "my/model"}
    assert {text: sides.find_choice(text, names) for text in keys} == keys


def boxes(app: Any) -> list[str]:
    return [m.value.removeprefix("### ").replace("\\", "") for m in app.markdown if m.value.startswith("### ")]


@pytest.mark.slow
def test_any_two_stand_side_by_side(open_page: Callable[..., Any], studio_folder: Path) -> None:
    """The pruned model's folder beside the mask that it was pruned by: the same answer; and beside all heads."""
    import headviz

    folder = studio_folder / "sides"
    if not folder.exists():
        headviz.prune(headviz.load(str(studio_folder / "model"), device="cpu"), OFF).save(folder)
    pair = {"a": "the dog sleeps", "b": "a cat runs", "mask": OFF.hex}
    app = open_page("compare", **pair, first="mask", other=str(folder))
    assert not app.exception
    masked, pruned = boxes(app)
    assert masked == pruned
    for key in ("w_first", "w_other"):  # the browser gives back the name: one that is there twice would change the view
        names = next(s for s in app.selectbox if s.key == key).options
        assert len({*names}) == len(names) > 1
    app = open_page("compare", **pair, first="all", other="mask")
    assert not app.exception
    assert boxes(app)[1] == masked
    cut = open_page("compare", **{**pair, "model": str(folder)}, first=str(studio_folder / "model"), other="all")
    assert not cut.exception
    kept = 144 - len(OFF.off)
    assert any(f"open model ({kept} of 144 heads)" in e.value.replace("\\", "") for e in cut.markdown)
    wrong = open_page("compare", **pair, other="run:nosuch:3")
    assert not wrong.exception
    assert any("no step" in e.value for e in wrong.error)
    assert len(boxes(wrong)) == 2  # all heads and the current mask, as usual


def test_the_list_has_what_can_stand_on_a_side(monkeypatch: pytest.MonkeyPatch) -> None:
    from support.tiny import tiny_classifier

    clf = tiny_classifier("bert", layers=2, heads=2)
    monkeypatch.setattr("streamlit.session_state", {})
    monkeypatch.setattr(sides, "local_models", lambda: ["/models/one", "/models/two/model", "/old/one"])
    monkeypatch.setattr(sides.listing, "overview", list)
    assert sides.list_choices(clf) == {
        "all": "full model",
        "/models/one": "one, in /models",
        "/models/two/model": "two",
        "/old/one": "one, in /old",
    }
