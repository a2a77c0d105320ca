"""How a change is shown: the table of metrics or slices before and after, and its words in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from ..answers.comparison import Delta
from ..tasks import points_in
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


def points_changed(delta: float | None, low: float | None, high: float | None, scale: float) -> str:
    """A change in a sentence, with its interval where one is known: ``−2.2 points [−5.1, +0.6]``."""
    known = low is not None and high is not None and low == low and high == high
    return f"{numbers.points(delta, scale)} points" + (f" {numbers.interval(low, high, scale)}" if known else "")


def metric_change(metric: str, delta: float, low: float, high: float) -> str:
    """The sentence without its end: ``accuracy changes by −2.2 points [−5.1, +0.6]``."""
    return f"{metric} changes by {points_changed(delta, low, high, points_in(metric))}"
