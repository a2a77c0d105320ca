"""Published figures beside ours: apart, and as they were printed."""

from __future__ import annotations

import streamlit as st

from ..analyses.table import ANALYSES
from . import show


def section(name: str, task: str) -> None:
    """The figures that belong to one analysis, folded; nothing where there are none."""
    tables = ANALYSES[name].published(task)
    if not tables:
        return
    with st.expander("Published figures", icon=":material/menu_book:"):
        st.caption("Another model on other data: only the pattern compares with what is measured here.")
        for i, table in enumerate(tables):
            st.markdown(f"**{show.plain(table.title)}**")
            show.table(
                table.header, table.rows, f"published_{name.replace('-', '_')}_{i}",
                caption=f"As printed: {table.about}.",
            )  # fmt: skip
