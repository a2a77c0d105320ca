"""What the views of the analyses share: where a result belongs, and how its points are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from ....heads import HeadId
from ...shell import show

COST = r"c_h = m(\text{full}) - m(\text{full without } h)"
DECIMALS = "%.2f"  # of points in tables
PAIRED = "q: Benjamini-Hochberg over all heads; intervals: paired on the same examples, 95 %."


@dataclass(frozen=True)
class Place:
    """What a view knows beside the result: the task, and the names of the grid's rows where it has stacks."""

    task: str
    rows: tuple[str, ...] | None = None

    def head(self, layer: int, head: int) -> str:
        return show.head_name(HeadId(layer, head), self.rows)


def in_points(*names: str) -> dict[str, Any]:
    """Columns of points have equal decimals, or one could not compare them at a glance; their CSV has them all."""
    return {n: st.column_config.NumberColumn(format=DECIMALS) for n in (*names, "95 % low", "95 % high")}
