"""Published figures beside ours: apart, and as they were printed."""

from __future__ import annotations

import streamlit as st

from ...analyses.catalogue import ANALYSES
from ...tasks import TASKS
from ..shell import show


def section(name: str, task: str) -> None:
    """The figures that belong to one analysis, folded; nothing where there are none."""
    tables = ANALYSES[name].published(task)
    if not tables:
        return
    with st.expander("Published figures", icon=":material/menu_book:"):
        st.caption("Another model on other data: only the pattern compares with what is measured here.")
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
    """What to say where a table's points are not those of the task's own metric."""
    ours = TASKS[task].primary_metric if task in TASKS else ""
    if not metric or not ours or metric == ours:
        return ""
    theirs, mine = (name.upper() if name == "bleu" else name for name in (metric, ours))
    return f"These are points of {theirs}, and here {mine} is measured: a point of one is not a point of the other."
