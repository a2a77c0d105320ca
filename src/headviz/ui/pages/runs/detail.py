"""One run on the Runs page. While it runs, its state line is updated every second or so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from .... import plugins
from ....display.table import Table
from ....errors import RunError
from ....runs.kinds import RUNS, kind_title
from ...shell import frame, show, state
from ...shell.messages import plain
from ...shell.tables import TABS
from . import faster, listing, models, steps
from . import head_table as tableview
from . import sweep as sweepview
from .models import of_another_model

if TYPE_CHECKING:
    from ....runs.reading import RunView


def watch(ids: Sequence[str]) -> RunView:
    """The first run with all its details, the others as further curves on its figure. Gives the first."""
    views = [listing.look(i, log_lines=0) for i in ids]
    first = views[0]
    record = first.record
    st.subheader(plain(record.title))
    st.caption(f"{plain(kind_title(record.kind))}  ·  {plain(listing.about(first))}")
    of_another_model(first)
    busy = any(map(listing.busy, views))
    st.fragment(_live, run_every=listing.POLL if busy else None)(_seen(views), [v.record.id for v in views])
    if record.parent and frame.controls():
        st.button(
            "Back to its sweep",
            key="run_parent",
            icon=":material/arrow_upward:",
            type="tertiary",
            on_click=_go,
            args=(record.parent,),
        )
    if record.kind == "prune":
        steps.detail(first, views[1:])
    elif record.kind == "sweep":
        sweepview.detail(first)
    elif record.kind == "finetune":
        models.finetuned(first)
    elif record.kind == "faster":
        faster.detail(first)
    elif record.kind in ("score", "ablation"):
        tableview.detail(first)
    elif record.kind in RUNS and (draw := RUNS[record.kind].draw) is not None:
        plugins.function(draw)(first)
    else:
        _outcome(first)
    listing.log(first)
    return first


def of_a_tab() -> tuple[str, str] | None:
    """The recipe of what a plugin's tab has just drawn; None where there is none."""
    made = [plugins.function(tab.recipe)() for tab in TABS.values() if tab.recipe is not None]
    return next((recipe for recipe in made if recipe is not None), None)


def _go(run_id: str) -> None:
    state.update(run=run_id, step=0)


def _seen(views: Sequence[RunView]) -> tuple[Any, ...]:
    """What the page below depends on. When it changes, the page is drawn again."""
    return tuple(
        (v.record.id, v.state, len(v.steps), len(v.baseline), *((c.state, len(c.steps)) for c in v.children))
        for v in views
    )


def _live(seen: tuple[Any, ...], ids: Sequence[str]) -> None:
    listing.look_again()
    try:
        views = [listing.look(i, log_lines=0) for i in ids]
    except RunError:  # somebody has deleted it
        st.rerun()
    listing.state_line(views[0])
    if _seen(views) != seen:
        st.rerun()


def _outcome(view: RunView) -> None:
    """A kind of run without its own figure: its numbers, and where to find the rest."""
    numbers = {k: v for k, v in view.outcome.items() if isinstance(v, int | float | str) and not isinstance(v, bool)}
    if numbers:
        show.table(Table("run_outcome", ("", "value"), list(numbers.items()), "The results that are single numbers."))
    if view.steps:
        st.caption("All results are in the report as JSON.")
