"""Which score is right: the user's own grades, else those recorded on the demo, and the button that grades here."""

from __future__ import annotations

import streamlit as st

from ....analyses import board
from ....analyses.analysis import Picture, Table
from ....analyses.grade_view import view as view_of
from ....analyses.grades import Grades
from ...shell import graded, loaders, show, state
from ...shell.view import View
from ..analyses import section as analyses

ASKED = "grades_asked"


def section(view: View) -> None:
    """The board where it is known, and one click to make it here; its progress stands above what is known so far."""
    if not view.present and st.session_state.get(ASKED) == view.source:
        clf, data = loaders.classifier(view), loaders.dataset(view)
        loaders.check(clf, data)
        analyses.computed(analyses.GRADE, clf, data)
    own = graded.own(view.source)
    recorded = board.recorded() if own is None and view.on_demo else None
    if own is not None:
        _board(own, f"Measured here on {own.data}, {own.n:,} examples.")
        return
    if recorded is not None:
        _board(recorded.grades, recorded.about)
    else:
        st.caption(
            "Which score finds the heads that matter? It has not been measured on this model and these data. To grade "
            "a score is to remove heads in its order and see what is left, and to compare it with what each head costs."
        )
    if not view.present and st.session_state.get(ASKED) != view.source:
        st.button(
            "Grade the scores here",
            key="grade_here",
            icon=":material/leaderboard:",
            help="All scores that this model has, but for the slow ones. It goes on while you look at other pages. "
            "What was measured before is not measured again.",
            on_click=_ask,
        )


def _ask() -> None:
    st.session_state[ASKED] = state.view().source


def _board(grades: Grades, about: str) -> None:
    shown = view_of(grades)
    show.finding(shown.finding)
    for shown_part in shown.parts:
        if isinstance(shown_part, Picture):
            show.figure(shown_part.draw(), shown_part.key, shown_part.caption, source=shown_part.source)
        elif isinstance(shown_part, Table):
            show.result_table(shown_part)
    st.caption(show.plain(about))
