"""What stands around every page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("streamlit")

import streamlit as st

from headviz.heads import HeadMask
from headviz.tasks import TASKS
from headviz.ui.shell import frame, loaders, state
from headviz.ui.shell.view import View


@pytest.mark.parametrize(
    ("task", "offered"), [("demo", True), ("demo-translation", False), ("mine", False), ("translationese", True)]
)
def test_a_fitting_task_is_offered_by_what_the_view_s_task_asks_for(monkeypatch: Any, task: str, offered: bool) -> None:
    """Not by what it is called."""
    monkeypatch.setitem(TASKS, "mine", replace(TASKS["demo-translation"], name="mine"))
    monkeypatch.setitem(TASKS, "translationese", replace(TASKS["demo"], name="translationese"))
    shape = loaders.Shape(HeadMask.full(6, 4), (), (("encoder", 2), ("cross", 2), ("decoder", 2)), "sentence")
    monkeypatch.setattr(loaders, "shape", lambda view: shape)
    monkeypatch.setattr(state, "view", lambda: replace(View(), task=task))
    buttons: list[str] = []
    monkeypatch.setattr(st, "button", lambda text, **_: buttons.append(text))
    frame._fitting_task()
    assert bool(buttons) is offered


@pytest.mark.parametrize(
    ("page", "place"), [("Mask lab", " (mean of 32 training examples in their place)"), ("Scores", "")]
)
def test_a_part_that_is_drawn_alone_says_what_stands_in_the_place_of_heads(
    monkeypatch: Any, page: str, place: str
) -> None:
    """It runs without the frame around it."""
    session = state.Session(view=View(ablation="mean:32"), page=page)
    monkeypatch.setattr(st, "session_state", {state._KEY: session})
    assert frame.in_their_place() == place
