"""The winning tickets of a run or a sweep, next to the published ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from ....display.table import Table
from ....errors import UserError
from ....evaluation.verdict import MARGIN
from ....options import Option
from ....pruning.algorithms import ALGORITHMS
from ....ui.pages.runs.listing import state_of
from ....ui.shell import controls, show
from ....ui.shell.messages import plain, refused
from ..thesis_tables import table_62
from ..winning import together

if TYPE_CHECKING:
    from ....runs.reading import RunView


def retrains(view: RunView) -> bool:
    """Whether the run's algorithm retrains the pruned models; only then are there tickets."""
    known = ALGORITHMS.get(str(view.record.spec.get("algorithm")))
    return known is not None and known.retrains


def tickets(views: Sequence[RunView]) -> None:
    """The highest share of heads removed at which a retrained model is as good as the full one, and published ones."""

    able = [v for v in views if retrains(v) and v.record.spec.get("retrain_full", True)]
    states = together([s for v in able if (s := state_of(v)) is not None])
    rows = table_62(states).rows
    if not rows:
        retrain = ", ".join(a.title for a in ALGORITHMS.values() if a.retrains)
        st.info(
            f"No winning tickets yet. They need an algorithm that retrains ({plain(retrain)}), the full model "
            "trained too, and at least one finished step of every seed.",
            icon=":material/confirmation_number:",
        )
        return
    if any(len(s.plan["seeds"]) < 2 for s in states):
        st.info("With one seed there is no spread, so nothing follows: give several seeds.", icon=":material/info:")
    asked = Option("margin", MARGIN, least=0.1, most=100, title="Loss that would matter, points")
    margin = controls.field(st.container(), asked, "run_tickets_margin", width=260, step=0.5)
    try:
        table = table_62(states, margin())
    except UserError as wrong:
        refused(wrong)
        return
    caption = (
        "Highest share of heads removed at which the mean over seeds, plus one standard deviation, reaches the full "
        "model's mean; metrics in per cent. Published: BERT-base, 2024 thesis, Table 6.2. "
    )
    cells = [["–" if v in ("", None) else v for v in row] for row in table.rows]
    show.table(Table("run_tickets", table.header, cells, caption + " ".join(table.notes)))
