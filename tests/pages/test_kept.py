"""Saved masks, own texts and the last view are there in another visit of the same user."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headviz.ui.shell import kept
from headviz.ui.shell.view import FIELDS

OFF = "7" + "f" * 35


def save(app: Any, name: str) -> Any:
    app.text_input(key="mask_name").set_value(name)
    return app.button(key="save_mask").click().run()


def names(app: Any) -> list[str]:
    return [b.label for b in app.button if b.key and b.key.startswith("load_")]


@pytest.mark.slow
def test_a_saved_mask_is_there_in_another_browser_of_its_user_alone(
    open_page: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = save(open_page("masklab", mask=OFF), "first head off")
    assert not app.exception
    with monkeypatch.context() as other:
        other.setattr(kept, "user", lambda: "somebody else")
        assert not names(open_page("masklab"))
    again = open_page("masklab")
    assert [label for label in names(again) if "first head off" in label]
    again.button(key="drop_0").click().run()
    assert not names(open_page("masklab"))


@pytest.mark.slow
def test_own_texts_come_back(open_page: Callable[..., Any]) -> None:
    from headviz.ui.shell import state

    app = open_page("compare")
    assert not [b for b in app.button if b.key == "own_text_0"]
    session = app.session_state["headviz"]
    app.session_state["headviz"] = state.replace(session, new_texts=(("a cat sleeps", "an animal sleeps"),))
    app.run()
    app = open_page("compare")
    app.button(key="own_text_0").click().run()
    assert app.session_state["headviz"].view.a == "a cat sleeps"


@pytest.mark.slow
def test_grades_come_back_after_a_restart(open_page: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from headviz.ui.shell import view
    from support.graded import graded_as

    monkeypatch.setattr(view, "_grades", {})
    app = open_page("masklab")
    source = app.session_state["headviz"].view.source
    view.remember_grades(source, graded_as(taylor=0.8, fisher=0.7), "test@example.com")  # AppTest's user
    app.run()
    monkeypatch.setattr(view, "_grades", {})  # as in another process
    app = open_page("masklab")
    (grades,) = view._grades.values()
    assert grades.best == "taylor"
    assert next(s for s in app.selectbox if s.key == "w_beside").options[0].endswith("taylor")


@pytest.mark.slow
def test_continue_opens_the_last_view(open_page: Callable[..., Any], address: dict[str, str]) -> None:
    open_page("masklab", mask=OFF)
    app = open_page("workbench", **{name: str(FIELDS[name]) for name in address})  # what the plain address shows
    app.button(key="continue_view").click().run()
    assert app.title[0].value == "Mask lab"
    assert app.session_state["headviz"].view.mask == OFF


def test_an_encoder_without_a_head_offers_to_train_one(
    open_page: Callable[..., Any], address: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from support.tiny import tiny_model, tiny_tokenizer

    monkeypatch.setenv("HEADVIZ_ROOTS", f"{tmp_path}:{address['data']}")
    tiny_model("bert").bert.save_pretrained(tmp_path / "m")
    tiny_tokenizer().save_pretrained(tmp_path / "m")
    app = open_page("masklab", model=str(tmp_path / "m"))
    app.button(key="train_head").click().run()
    assert app.title[0].value.endswith("model")
    assert app.text_input(key="tune_base").value == str(tmp_path / "m")
