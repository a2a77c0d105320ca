"""Published figures, in a box of their own, as they were printed."""

from __future__ import annotations

import streamlit as st

from ...analyses.catalogue import ANALYSES
from ...tasks import TASKS
from ..shell import show


def section(name: str, task: str) -> None:
    """The published figures of one analysis, folded; nothing if there are none."""
    tables = ANALYSES[name].published(task)
    if not tables:
        return
    with st.expander("Published figures", icon=":material/menu_book:"):
        st.caption("Measured on another model and other data: compare the pattern, not the numbers.")
        for i, table in enumerate(tables):
            st.markdown(f"**{show.plain(table.title)}**")
            if warning := other_points(table.metric, task):
                st.warning(show.plain(warning), icon=":material/straighten:")
            show.table(
                table.header,
                table.rows,
                f"published_{name.replace('-', '_')}_{i}",
                caption=f"As printed: {table.about}.",
            )


def other_points(metric: str, task: str) -> str:
    """A warning where a table's points are of another metric than the task's."""
    ours = TASKS[task].primary_metric if task in TASKS else ""
    if not metric or not ours or metric == ours:
        return ""
    theirs, mine = (name.upper() if name == "bleu" else name for name in (metric, ours))
    return f"These are points of {theirs}; here {mine} is measured. The two cannot be compared point by point."
