"""A part of a page that is drawn alone after a click, so that nobody waits for the rest of the page.

What is ``clickable`` calls ``redraw`` in its callback. A part shows some fields of the view; where anything else has
changed, the whole page is drawn anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import streamlit as st

from ...errors import Cancelled, UserError
from ...heads import HeadId
from . import jobs, state

SENT = 0.02  # seconds until what was drawn has left for the browser; a new run drops what has not
HEAD, MASK = "part_head", "part_mask"  # what shows the chosen head, and what the mask costs
_DRAWN = "parts_drawn"  # keys of the parts that this page has


def page_begins() -> None:
    """The page is drawn from its beginning, and has no parts yet."""
    st.session_state[_DRAWN] = ()


def part(key: str, draw: Callable[[], None], shows: str, *, follows: bool = False) -> None:
    """Draw a part that shows the field ``shows`` of the view. If the rest of the page shows that field too, it
    ``follows``: the whole page is drawn anew after the part."""
    whole, failed = True, list[Exception]()
    blank: dict[str, Any] = {shows: ""}
    known = replace(state.view(), **blank)

    @st.fragment(key=key)
    def alone() -> None:
        nonlocal whole
        if whole:
            whole = False
            try:
                draw()
            except Exception as wrong:  # the page shows it in its own way
                failed.append(wrong)
            return
        if replace(state.view(), **blank) != known or state.session().shown:  # a notice goes with the next click
            st.rerun()
        if not follows:
            draw()
            state.publish()
            return
        jobs.page_begins(state.session().page)
        with suppress(UserError, Cancelled):  # the page meets it again, and shows it
            draw()
        time.sleep(SENT)
        st.rerun()

    st.session_state[_DRAWN] = (*st.session_state.get(_DRAWN, ()), key)
    alone()
    for wrong in failed:
        raise wrong


def clickable(draw: Callable[[], None]) -> None:
    """Draw what calls ``redraw``. A click on it must not begin a run of the page, which would drop its downloads."""
    st.fragment(draw)()


def redraw(key: str) -> None:
    """In a callback: draw this part alone. A page that does not have it yet is drawn from its beginning."""
    st.rerun(key if key in st.session_state.get(_DRAWN, ()) else "app")


def select(chosen: HeadId) -> None:
    """Choose this head. The part of the page that shows it is drawn alone."""
    state.select(chosen)
    redraw(HEAD)
