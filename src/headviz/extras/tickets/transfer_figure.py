"""A transfer's matrix as a figure and a table."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import TYPE_CHECKING

from ...display.numbers import interval, metric, p_cell, points
from ...display.sentences import points_changed
from ...display.table import Column, Table
from .transfer_matrix import Entry, Matrix

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from .kept_map import Square

FULL, RANDOM = "every head on", "random masks"


def transfer_figure(found: Matrix, own: Mapping[str, str] | None = None) -> Figure:
    """The matrix: first every head on, then each mask, then random masks of each size."""
    from .kept_map import kept_map

    rows: list[str] = [FULL]
    squares: list[list[Square]] = [[_whole(found, target) for target in found.targets]]
    for source in found.sources:
        mine = (own or {}).get(source, source)
        rows.append(source)
        squares.append([_square(found.entry(source, target), target == mine) for target in found.targets])
    for share in dict.fromkeys(e.sparsity for e in found.random):
        of = {e.target: e for e in found.random if e.sparsity == share}
        rows.append(f"{RANDOM}, {100 * share:.0f} % off")
        squares.append([_square(of.get(target), False) for target in found.targets])
    return kept_map(squares, rows, found.targets)


def _whole(found: Matrix, target: str) -> Square:
    from .kept_map import Square

    one = next((e for e in (*found.entries, *found.random) if e.target == target), None)
    if one is None or one.full is None:
        return Square(None, hover=f"{FULL}\nnot measured")
    value = metric(one.full, one.scale)
    floor = "" if one.constant is None else f"\none answer for all: {metric(one.constant, one.scale)}"
    return Square(1.0, below=value, hover=f"{target}, {FULL}\n{one.metric} {value}{floor}")


def _square(entry: Entry | None, own: bool) -> Square:
    from .kept_map import Square

    if entry is None:
        return Square(None, hover="not measured", own=own)
    value = "" if entry.value is None else metric(entry.value, entry.scale)
    told = _told(entry, value)
    return Square(entry.kept, entry.low, entry.high, value, told, entry.clear, entry.ahead, own)


def _told(e: Entry, value: str) -> str:
    """What is said of a cell when it is pointed at."""
    name = e.source or f"{e.count} {RANDOM}"
    lines = [f"{name} on {e.target}, {100 * e.sparsity:.0f} % of the heads off"]
    if e.remark:
        lines.append(e.remark)
    if e.value is not None:
        full = "" if e.full is None else f", every head on {metric(e.full, e.scale)}"
        spread = "" if e.sd is None else f" ± {metric(e.sd, e.scale)}"
        lines.append(f"{e.metric} {value}{spread}{full}")
    kept = None if e.kept is None else f"{100 * e.kept:.0f} % kept above one answer for all".replace("-", "−")
    lines.append(kept or f"no share: {e.why}")
    if e.change is not None:
        q = "" if e.q is None else f", q {p_cell(e.q)}"
        lines.append(f"change {points_changed(e.change, e.low, e.high, e.scale)}{q}")
    if e.random_low is not None and e.random_high is not None:
        between = f"{metric(e.random_low, e.scale)} to {metric(e.random_high, e.scale)}"
        lines.append(f"a random mask lies in {between}, q {p_cell(e.random_q)}")
    return "\n".join(lines)


def transfer_table(found: Matrix) -> Table:
    """One row for each mask on each model, then those of the random masks."""
    entries = (*found.entries, *found.random)
    scale = entries[0].scale if entries else 100.0

    def value(x: float) -> str:
        return metric(x, scale)

    columns = (
        Column("mask of", value=lambda e: e.source or RANDOM),
        Column("model of", value=attrgetter("target")),
        Column("heads off %", "%.1f", lambda e: 100 * e.sparsity),
        Column("metric", value=attrgetter("metric")),
        Column("value", value, attrgetter("value")),
        Column("every head on", value, attrgetter("full")),
        Column("kept %", "%.1f", lambda e: None if e.kept is None else 100 * e.kept),
        Column(
            "change points",
            lambda change: points(change, scale),
            attrgetter("change"),
            ends=attrgetter("low", "high"),
            ends_format=lambda low, high: interval(low, high, scale),
        ),
        Column("p", value=attrgetter("p")),
        Column("q", value=attrgetter("q")),
        Column("random masks", value, attrgetter("random"), ends=attrgetter("random_low", "random_high")),
        Column("random q", "%.3f", attrgetter("random_q")),
        Column("why not", value=lambda e: e.why or None),
    )
    caption = "Every mask on every model, then the means of the random masks; changes in points against every head on."
    return Table.of("transfer_table", columns, entries, caption=caption)
