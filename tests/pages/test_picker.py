"""The menu of models: a shipped model is one click away and brings its task."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.page import DEMO


def menu(app: Any) -> Any:
    return next(s for s in app.selectbox if s.label == "Models at hand")


def test_folders_below_the_allowed_roots_are_listed(open_page: Callable[..., Any], studio_folder: Path) -> None:
    from headviz.runs import reading
    from headviz.ui.pages import data

    data.local_models.clear()
    app = open_page("data", **DEMO)
    assert reading.model_title(str(studio_folder / "model")) in menu(app).options


def numbered(small_folder: Path) -> Path:
    """The small model, and a copy beside it, with classes that are only numbers."""
    for name in ("numbered", "copy"):
        folder = small_folder / name
        shutil.copytree(small_folder / "model", folder, dirs_exist_ok=True)
        config = json.loads((folder / "config.json").read_text())
        config |= {"id2label": {str(i): f"LABEL_{i}" for i in range(3)}, "label2id": {}}
        (folder / "config.json").write_text(json.dumps(config))
    return small_folder / "numbered"


@pytest.mark.slow
def test_outputs_without_names_are_named_on_the_page(
    open_page: Callable[..., Any], small: dict[str, str], small_folder: Path
) -> None:
    """Most published models have LABEL_0, LABEL_1, …; the page could only name a flag of the command line."""
    folder = numbered(small_folder)
    names = [json.loads((small_folder / "model" / "config.json").read_text())["id2label"][str(i)] for i in range(3)]
    app = open_page("data", **{**small, "model": str(folder)})
    app.selectbox(key="name_0").select(names[1]).run()
    assert app.button(key="use_names").disabled  # one class twice
    for i, name in enumerate(names):
        app.selectbox(key=f"name_{i}").select(name)
    app.run().button(key="use_names").click().run()
    assert app.session_state["headviz"].view.class_names == tuple(names)
    assert not app.warning
    here = {**small, "off": "0.1", "model": str(folder)}
    own, named = open_page("masklab", **small, off="0.1"), open_page("masklab", **here, classes=",".join(names))
    assert [m.value for m in own.metric] == [m.value for m in named.metric] != []
    turned = open_page("masklab", **here, classes=",".join(names[1:] + names[:1]))
    assert [m.value for m in turned.metric] != [m.value for m in own.metric]
    assert any(f"class_names=('{names[0]}'" in c.value for c in named.code)
    app.button(key="own_names").click().run()
    assert app.session_state["headviz"].view.classes == ""


@pytest.mark.slow
def test_names_stay_with_their_model(
    open_page: Callable[..., Any], small: dict[str, str], small_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The menu and Compare took the names along to a model that has its own; a copy without names keeps them."""

    folder = numbered(small_folder)
    names = ("neutral", "entailment", "contradiction")
    named = {**small, "model": str(folder), "classes": ",".join(names)}
    assert not open_page("compare", **named, other=str(folder.with_name("copy"))).error
    (refused,) = open_page("compare", **named, other=str(folder.with_name("model"))).error
    assert "has the classes" in refused.value
    asked: list[Any] = []
    monkeypatch.setattr("headviz.ui.pages.data.try_model", lambda view, wanted: asked.append(wanted))
    app = open_page("data", **named)
    assert app.session_state["headviz"].view.class_names == names
    menu(app).set_value("demo").run()
    assert [(view.model, view.classes) for view in asked] == [("demo", "")]
