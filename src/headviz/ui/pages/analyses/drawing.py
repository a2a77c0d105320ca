"""The view of any analysis on a page: its sentence, grid, figures and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st

from ....analyses.analysis import Grid, Lines, Picture, Table, View
from ....display.figures.palette import scale_of_losses
from ....heads import HeadMask
from ...parts import abilities
from ...shell import show, state
from ...widgets.grid import Look

# the lines drawn by default beside the view's own score: more cannot be told apart
USUAL = ("gates", "attattr-max", "taylor", "ablation", "random")


def draw(view: View) -> None:
    show.finding(view.finding)
    if view.warning:
        st.warning(show.plain(view.warning), icon=":material/timer_off:")
    if view.note:
        st.caption(show.plain(view.note))
    if view.grid is None:
        _parts(view)
        return
    left, right = st.columns([5, 4], gap="large")
    with left:
        _grid(view.grid, view.rows)
    with right:
        _parts(view)


def _parts(view: View) -> None:
    for part in view.parts:
        if isinstance(part, Picture):
            show.figure(part.draw(), part.key, part.caption, formula=part.formula, source=part.source, wide=part.wide)
        else:
            _table(part, view.rows)


def _grid(grid: Grid, rows: Sequence[str]) -> None:
    stem = grid.key.removesuffix("_grid")
    lost = scale_of_losses([float(v) for v in np.ravel(grid.values)]) if grid.losses else None
    look = Look(
        name=grid.name,
        scale=lost,
        blank_zeros=lost is not None,
        numbers=state.view().numbers,
        width=34,
        digits=1,
        file=f"headviz-{stem}",
    )
    show.head_grid(
        grid.key,
        grid.base,
        grid.values,
        selected=state.head(grid.base),
        tips=grid.tips,
        marks=grid.marks,
        mark_name=grid.mark_name,
        grey=grid.grey,
        carries=abilities.carried(state.view()),
        rows=rows or None,
        look=look,
        on_select=state.select,
    )
    show.note(grid.caption, formula=grid.formula, source=grid.source, key=f"{stem}_note", saves=False)


def _table(table: Table, names: Sequence[str]) -> None:
    more: dict[str, Any] = {"height": table.height or "content"}
    if table.masks:
        more |= {"on_select": "rerun", "selection_mode": "single-row"}
    event = show.result_table(table, names, **more)
    if table.masks:
        _open_mask(event, table)


def _open_mask(event: Any, table: Table) -> None:
    """The chosen row's mask, in the Mask lab."""
    memory = f"{table.key.removesuffix('_table')}_opened"
    row = show.chosen_row(event, memory, tuple(m.hex if m else "" for m in table.masks))
    if row is not None and isinstance(mask := table.masks[row], HeadMask):
        state.set_mask(mask)
        st.switch_page("pages/masklab.py")


def chosen_lines(found: Any, lines: Lines) -> Any:
    """The result with the chosen lines only. All have been computed, so another choice is shown at once."""
    names, view = lines.names(found), state.view()
    shown = shown_lines(names, view.score, view.orders)
    if not view.present and len(names) > 2:
        st.session_state["curve_orders"] = shown
        st.multiselect("Orders", names, key="curve_orders", on_change=_take_lines, placeholder="the usual ones")
    return lines.only(found, shown)


def _take_lines() -> None:
    state.update(orders=",".join(st.session_state["curve_orders"]))


def shown_lines(names: Sequence[str], score: str, chosen: str) -> list[str]:
    """The lines to draw: the chosen ones, else the usual ones and the oracle, which is last and not drawn alone."""
    wanted = chosen.split(",") if chosen else [score, *USUAL]
    found = [n for n in names if n in wanted or (not chosen and n == names[-1])]
    return found if (chosen and found) or len(found) > 1 else list(names)
