"""Which score is right: the grades recorded on the demo, or the way to grade this model's own."""

from __future__ import annotations

import streamlit as st

from ....analyses import board
from ....analyses.analysis import Picture, Table
from ....analyses.grading import view as view_of
from ...shell import show, state
from ...shell.view import View


def section(view: View) -> None:
    """The board where it is known; a link to the analysis that makes it where not."""
    found = board.recorded() if view.on_demo else None
    if found is None:
        st.caption(
            "Which score finds the heads that matter? It has not been measured on this model and these data. To grade "
            "a score is to remove heads in its order and see what is left, and to compare it with what each head costs."
        )
    else:
        shown = view_of(found.grades)
        show.finding(shown.finding)
        for part in shown.parts:
            if isinstance(part, Picture):
                show.figure(part.draw(), part.key, part.caption, source=part.source)
            elif isinstance(part, Table):
                show.table(part.columns, part.rows, part.key, caption=part.caption, cells=show.printed(part.formats))
        st.caption(show.plain(found.about))
    if not view.present and st.button("Grade the scores here", key="grade_here", icon=":material/leaderboard:"):
        state.update(analysis="grade")
        st.switch_page("pages/analyses.py")
