"""Tables that the terminal, the pages and the reports share: of heads, of a change, of paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..answers.comparison import Delta
from ..heads import HeadId
from . import numbers
from .table import Column, Ends, Format, Table

if TYPE_CHECKING:
    import numpy as np

    from ..attribution.paths import Edge


# -----------------------------------------------------------------------------------------------
# A table of heads: one value for each, with its interval and its tests. The terminal and the pages draw it.


def heads_table(
    key: str,
    heads: Iterable[HeadId],
    title: str,
    values: np.ndarray,
    ends: tuple[np.ndarray, np.ndarray] | None = None,
    tests: Mapping[str, np.ndarray] | None = None,
    *,
    form: Format = "",
    ranked: bool = False,
    **more: Any,
) -> Table:
    """The heads in the order that is given. ``values``, ``ends`` and ``tests`` (p, q) are tables [L, H]; ``ranked``
    numbers the heads. ``more`` goes to the table."""

    def of(table: np.ndarray) -> Any:
        return lambda item: float(table[item[1]])

    def interval(item: tuple[int, HeadId]) -> Ends:
        low, high = ends or (values, values)
        return float(low[item[1]]), float(high[item[1]])

    columns = (
        *((Column("rank", value=lambda item: item[0]),) if ranked else ()),
        Column("head", value=lambda item: item[1]),
        Column(title, form, of(values), ends=None if ends is None else interval),
        *(Column(name, value=of(table)) for name, table in (tests or {}).items()),
    )
    return Table.of(key, columns, enumerate(heads, 1), **more)


# The table of a change: metrics or slices before and after -------------------------------------


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


# -----------------------------------------------------------------------------------------------
# Paths between heads.


def way(edge: Edge) -> str:
    """``3.5 → 9.10 queries``"""
    return f"{edge.sender.dotted} → {'answer' if edge.receiver is None else f'{edge.receiver.dotted} {edge.into}'}"


def paths_table(edges: Sequence[Edge], several: bool) -> Table:
    """The paths as a table; with an interval where they are means over ``several`` pairs."""
    ends = (lambda edge: (edge.low, edge.high)) if several else None
    columns = (Column("path", value=way), Column("share of the way", "%+.3f", lambda edge: edge.effect, ends=ends))
    return Table.of("path_table", columns, edges)
