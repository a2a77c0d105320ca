"""Saved masks, own texts and the last view are there in another visit of the same user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headviz.ui.shell import kept

OFF = "7" + "f" * 35


def save(app: Any, name: str) -> Any:
    app.text_input(key="mask_name").set_value(name)
    return app.button(key="save_mask").click().run()


def names(app: Any) -> list[str]:
    return [b.label for b in app.button if b.key and b.key.startswith("load_")]


def test_a_saved_mask_is_there_in_another_browser(open_page: Callable[..., Any]) -> None:
    app = save(open_page("masklab", mask=OFF), "first head off")
    assert not app.exception
    assert any("first head off" in label for label in names(app))
    again = open_page("masklab")
    assert any("first head off" in label for label in names(again))
    again.button(key="drop_0").click().run()
    assert not names(open_page("masklab"))


def test_another_user_of_the_server_sees_none_of_it(
    open_page: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    save(open_page("masklab", mask=OFF), "mine")
    monkeypatch.setattr(kept, "user", lambda: "somebody else")
    assert not names(open_page("masklab"))


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
