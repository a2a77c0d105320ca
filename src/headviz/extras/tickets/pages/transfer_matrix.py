"""The matrix of a transfer on the page: its sentence, its figure, its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from ....ui.shell import show, state
from ....ui.shell.messages import plain

if TYPE_CHECKING:
    from ..transfer import Cell
    from ..transfer_matrix import Matrix

FORMULA = r"\text{kept} = \frac{m(\text{mask}) - m(\text{one answer})}{m(\text{every head}) - m(\text{one answer})}"
SOURCE = (
    "2024 thesis, §7.2. With 95 %, a random mask lies within mean ± t·sd·√(1 + 1/n) of the n that were drawn; q values "
    "are Benjamini–Hochberg over the matrix."
)


def draw(cells: Sequence[Cell], own: Mapping[str, str] | None) -> None:
    """``own`` says which target each mask was found on; None = the one of its name."""
    from ..transfer_figure import transfer_figure, transfer_table
    from ..transfer_matrix import finding, matrix

    found = matrix(cells)
    show.finding(finding(found, own, state.view().margin))
    show.figure(
        transfer_figure(found, own), "transfer_matrix", _caption(found), formula=FORMULA, source=SOURCE, wide="40"
    )
    if unknown := [e for e in found.entries if e.why]:
        e = unknown[0]
        more = f" The same or alike for {len(unknown) - 1} more." if len(unknown) > 1 else ""
        st.caption(plain(f"Without a share: {e.source} on {e.target}, because {e.why}.{more}"))
    show.table(transfer_table(found), record=found.to_dict())


def _caption(found: Matrix) -> str:
    paired = "over the seeds" if found.retrained else "over the examples"
    beside = ""
    if found.random:
        counts = sorted({e.count for e in found.random})
        beside = f" ▲: better than {' to '.join(map(str, counts))} random masks of as many heads (q < 0.05)."
    return (
        "The share of the metric above one answer for all that each mask keeps; below it the metric. Outlined: the "
        "mask's own task. Orange lost, blue gained; grey: the 95 % interval, paired "
        f"{paired}, includes no change. Bold: q < 0.05.{beside}"
    )
