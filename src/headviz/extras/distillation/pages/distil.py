"""Distil: remove a part of the model and train students without it, from several starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from ....ui.pages.masklab import board
from ....ui.parts import scoring
from ....ui.shell import frame, loaders, state
from . import form, results

if TYPE_CHECKING:
    from ....runs.reading import RunView


def draw() -> None:
    """The page."""
    view = frame.begin()
    shape = None if form.recurrent(view) else loaders.shape(view)
    found, plan = results.runs(), None
    parts: tuple[Any, ...] = ()
    if frame.controls():
        left, right = st.columns([5, 6], gap="large")
        with left:
            if shape is None:
                st.caption(
                    "A recurrent translator has one attention and no heads. Distillation removes all of it: students "
                    "read the mean of the encoder's states instead."
                )
            else:
                st.caption(
                    "The heads that you switch off here are removed from the students, which learn without them."
                )
                board.toolbar(shape.present, scoring.ordering(view), shape.scores)
                board.grid(shape.present, scoring.ordering(state.view()), rows=shape.rows)
                parts = form.layers_form(shape)
    else:
        right = st.container()
    with right:
        if found:
            results.watch(results.chooser(found, view))
        else:
            st.info(
                "No distillations yet. Choose what to remove and press Start. It continues when you close this page.",
                icon=":material/science:",
            )
        results.published()
    if frame.controls():
        with st.container(border=True):
            plan = form.start_form(view, shape, *parts)
    if plan is not None:
        frame.recipe(*form.recipe(plan))


def link(view: RunView) -> None:
    """What the Runs page shows of a distillation."""
    frame.link("distil", "See its students on the Distil page", ":material/science:")
