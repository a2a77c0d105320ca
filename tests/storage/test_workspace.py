"""What a user keeps of a model is there again, each user's own, and goes to another machine."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from headviz.errors import OptionError
from headviz.storage import workspace
from headviz.storage.workspace import MOST_TEXTS, Kept, change, export_all, import_all, kept

DIGEST, OTHER = "ab" * 16, "cd" * 16


def with_mask(name: str, mask: str = "0f"):  # type: ignore[no-untyped-def]
    return lambda stored: replace(stored, masks={**stored.masks, name: mask})


def test_masks_and_texts_are_there_again_and_each_user_has_their_own() -> None:
    change("ada", DIGEST, with_mask("half"))
    change("ada", DIGEST, lambda stored: stored.with_text(("A dog sleeps.", "An animal sleeps.")))
    here = kept("ada", DIGEST)
    assert (dict(here.masks), here.texts) == ({"half": "0f"}, (("A dog sleeps.", "An animal sleeps."),))
    assert kept("ada", OTHER) == Kept()
    assert kept("bob", DIGEST) == Kept()
    assert "ada" not in str(workspace.folder("ada"))


def test_a_name_from_a_login_leads_to_no_other_folder() -> None:
    assert workspace.folder("../../etc").parent == workspace.folder("ada").parent


def test_two_visits_keep_what_each_of_them_saved() -> None:
    change("ada", DIGEST, with_mask("one"))
    change("ada", DIGEST, with_mask("two"))
    assert sorted(kept("ada", DIGEST).masks) == ["one", "two"]


def test_the_newest_text_comes_first_and_is_kept_once() -> None:
    here = Kept()
    for i in (*range(MOST_TEXTS + 5), 3):
        here = here.with_text((str(i), ""))
    assert here.texts[:2] == (("3", ""), (str(MOST_TEXTS + 4), ""))
    assert len(here.texts) == len(set(here.texts)) == MOST_TEXTS


def test_all_of_it_goes_to_another_user_s_home_and_what_is_there_stays() -> None:
    change("ada", DIGEST, with_mask("half", "0f zero"))
    change("ada", OTHER, lambda stored: stored.with_text(("Where?", "")))
    change("bob", DIGEST, with_mask("half", "01"))
    assert import_all("bob", export_all("ada")) == 2
    assert dict(kept("bob", DIGEST).masks) == {"half": "01"}
    assert kept("bob", OTHER).texts == (("Where?", ""),)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"form": "x", "models": {}}', "\x00"])
def test_a_file_of_another_kind_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match="no workspace"):
        import_all("ada", text)


@pytest.mark.parametrize("part", [{"masks": {"a": "xyz"}}, {"texts": [1]}, {"masks": 3}, {"grades": [1]}])
def test_a_damaged_part_is_refused_and_changes_nothing(part: dict[str, object]) -> None:
    good = {"form": workspace.FORM, "models": {OTHER: {"masks": {"b": "0f"}}, DIGEST: part}}
    with pytest.raises(OptionError, match="cannot be read"):
        import_all("ada", json.dumps(good))
    assert kept("ada", OTHER) == Kept()


def test_a_digest_that_is_a_path_is_left_out() -> None:
    sent = {"form": workspace.FORM, "models": {"../../evil": {"masks": {"b": "0f"}}}}
    assert import_all("ada", json.dumps(sent)) == 0
    assert not workspace.folder("ada").exists()


def test_a_damaged_file_counts_as_nothing() -> None:
    change("ada", DIGEST, with_mask("half"))
    (workspace.folder("ada") / f"{DIGEST}.json").write_text("{", encoding="utf-8")
    assert kept("ada", DIGEST) == Kept()


def test_the_last_view_is_kept() -> None:
    assert workspace.last_view("ada") == {}
    workspace.keep_view("ada", "masklab", "mask=0f")
    assert workspace.last_view("ada") == {"page": "masklab", "query": "mask=0f"}


def test_the_last_view_goes_along_and_replaces_none() -> None:
    workspace.keep_view("ada", "masklab", "mask=0f")
    workspace.keep_view("bob", "scores", "score=taylor")
    sent = export_all("ada")
    assert import_all("bob", sent) == import_all("eve", sent) == 0
    assert workspace.last_view("eve") == {"page": "masklab", "query": "mask=0f"}
    assert workspace.last_view("bob")["page"] == "scores"
