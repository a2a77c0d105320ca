"""The menu of models: a shipped model is one click away and brings its task."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

DEMO = {"model": "demo", "task": "demo", "data": "", "columns": "", "label": "", "groups": ""}


def menu(app: Any) -> Any:
    return next(s for s in app.selectbox if s.label == "Models at hand")


@pytest.mark.slow
def test_a_shipped_model_brings_its_task_and_back(open_page: Callable[..., Any]) -> None:
    app = open_page("data", **DEMO)
    app = menu(app).set_value("demo-translation").run()
    assert not app.exception
    view = app.session_state["headviz"].view
    assert (view.model, view.task) == ("demo-translation", "demo-translation")
    assert not [w for w in app.warning if "do not match" in w.value]
    app = menu(app).set_value("demo").run()
    view = app.session_state["headviz"].view
    assert (view.model, view.task) == ("demo", "demo")


def test_folders_below_the_allowed_roots_are_listed(open_page: Callable[..., Any], studio_folder: Path) -> None:
    from headviz.ui.pages.data import picker

    picker.found_folders.clear()
    app = open_page("data", **DEMO)
    assert str(studio_folder / "model") in menu(app).options


@pytest.mark.slow
def test_the_invented_language_is_explained(open_page: Callable[..., Any]) -> None:
    app = open_page("compare", **{**DEMO, "model": "demo-translation", "task": "demo-translation"})
    (said,) = [c for c in app.caption if "Veshan" in c.value]
    assert "rebag teacher" in said.help
