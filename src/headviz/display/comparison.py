"""The table of a change: metrics or slices before and after."""

from __future__ import annotations

from collections.abc import Sequence

from ..answers.comparison import Delta
from . import numbers
from .table import Column, Table


def change_table(
    key: str,
    first: str,
    deltas: Sequence[Delta],
    caption: str = "",
    sides: tuple[str, str, str] = ("full", "masked", "change"),
) -> Table:
    """One row per metric or slice; ``first`` is the title of their names. ``sides`` name both models and the change."""
    scale = deltas[0].scale if deltas else 100.0
    before, after, change = sides

    def metric(value: float) -> str:
        return numbers.metric(value, scale)

    columns = (
        Column(first, value=lambda d: d.name or d.metric),
        Column("n", "{:,}".format, lambda d: d.n, "examples"),
        Column(before, metric, lambda d: d.full),
        Column(after, metric, lambda d: d.masked),
        Column(
            f"{change}, points",
            lambda v: numbers.points(v, scale),
            lambda d: d.delta,
            "paired on the same examples",
            name=change,
            ends=lambda d: (d.interval_low, d.interval_high),
            ends_format=lambda low, high: numbers.interval(low, high, scale),
        ),
        Column("p", value=lambda d: d.p_value),
    )
    return Table.of(key, columns, deltas, caption=caption)
