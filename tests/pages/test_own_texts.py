"""What is the user's own: texts that a drawn pair replaces, tables to train on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headviz.ui.pages.data import recipe
from headviz.ui.shell.view import from_address
from support.page import texts

OWN = {"a": "The dog sleeps.", "b": "An animal sleeps.", "donor": "The cat sleeps.", "donor_pair": "A cat sleeps."}
ABOUT = {"model": "demo", "task": "custom", "columns": "text", "label": "label", "groups": ""}


@pytest.mark.slow
def test_a_drawn_pair_does_not_lose_ones_own_texts(open_page: Callable[..., Any]) -> None:
    app = open_page("compare", model="demo", task="demo", limit="20", tab="Patching", **OWN)
    own = dict(app.query_params)
    for _ in range(2):
        app.button(key="minimal_pair").click().run()
        assert not app.exception
        assert dict(app.query_params)["donor"] != own["donor"]
    app.button(key="my_texts").click().run()
    assert {name: dict(app.query_params)[name] for name in OWN} == {name: own[name] for name in OWN}
    assert not [b for b in app.button if b.key == "my_texts"]


@pytest.mark.slow
def test_an_upload_with_a_table_to_train_on_is_trained_on(open_page: Callable[..., Any]) -> None:
    from headviz.ui.shell import uploads

    rows = b"text,label\n" + b"the dog sleeps,yes\na cat runs,no\n" * 10
    for train in (uploads.Table(rows, "csv", "more.csv"), None):
        place = uploads.keep_upload(rows, "csv", "mine.csv", train)
        app = open_page("data", **ABOUT, data=place)
        app.session_state["tune_box"] = True  # the form is open
        app.run()
        assert not app.exception
        assert bool([field for field in app.text_input if field.key == "tune_base"]) == (train is not None)
        assert any(uploads.LACKS_TRAIN in str(note.value) for note in app.info) == (train is None)


def test_a_link_says_how_a_table_is_read_and_the_recipe_repeats_it(
    open_page: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADVIZ_ROOTS", str(tmp_path))
    (tmp_path / "dev.csv").write_text("text|label\n" + "the dog sleeps, maybe|yes\na cat runs|no\n" * 8 + "a bird|\n")
    about = {**ABOUT, "data": str(tmp_path)}
    app = open_page("data", **about)
    assert "nothing in column 'label'" in texts(app)
    app = open_page("data", **about, separator="bar", skip_bad="1")
    assert not app.error
    assert not app.exception
    assert "1 broken row of dev.csv left out" in texts(app)
    view = from_address({**about, "separator": "bar", "skip_bad": "1"})[0]
    python, words = recipe(view)
    assert "separator='bar'" in python.replace('"', "'")
    assert "--skip-bad" in words
