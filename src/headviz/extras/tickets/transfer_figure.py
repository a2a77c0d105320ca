"""A transfer's matrix as a figure and a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
import plotly.graph_objects as go

from ...display.figures.style import NEUTRAL, UNDER_TEXT, colour_bar, frame, safe, scale_for
from ...display.numbers import interval, metric, p_cell, percent, points
from ...display.sentences import points_changed
from ...display.table import Column, Table
from ...evaluation.verdict import undecided
from .transfer_matrix import Entry, Matrix

PALE, MOST = 20.0, 100.0  # per cent lost that has the full colour: at least, and at most
HOVER = {"align": "left", "bgcolor": "#2b3037", "font": {"color": "white"}}
LINE = 46  # pixels of a row


@dataclass(frozen=True)
class Square:
    """One cell: the share that is kept (None = blank), and the interval of the change that decides its colour."""

    kept: float | None
    low: float | None = None
    high: float | None = None
    below: str = ""  # a second line, such as the metric
    hover: str = ""
    clear: bool = False  # the change is significant: bold
    ahead: bool = False  # better than random masks: marked
    own: bool = False  # the mask's own target: outlined


def kept_map(squares: Sequence[Sequence[Square]], rows: Sequence[str], columns: Sequence[str]) -> go.Figure:
    """Masks down, targets across. Orange lost something, blue gained, grey is not significant."""
    table = np.array([[np.nan if s.kept is None else 100 * (s.kept - 1) for s in row] for row in squares], dtype=float)
    low, high = (np.array([[getattr(s, end) for s in row] for row in squares], dtype=float) for end in ("low", "high"))
    table = np.clip(table, -MOST, MOST)  # of what is worse than one answer for all, all is lost
    scale = scale_for([float(v) for v in table.ravel() if v == v] + [PALE], signed=True)
    fig = go.Figure(
        go.Heatmap(
            z=np.where(undecided(low, high) & np.isfinite(table), 0.0, table),
            customdata=[["<br>".join(map(safe, s.hover.split("\n"))) for s in row] for row in squares],
            zmin=scale.lo,
            zmax=scale.hi,
            colorscale=UNDER_TEXT,
            xgap=2,
            ygap=2,
            colorbar=colour_bar(
                "lost or gained",
                tickvals=[scale.lo, 0, scale.hi],
                ticktext=[percent(scale.lo / 100), "0", percent(scale.hi / 100)],
            ),
            hoverlabel=HOVER,
            hovertemplate="%{customdata}<extra></extra>",
        )
    )
    # numbers as a trace of their own: they take the page's text colour, light or dark, where a heatmap's cannot
    cells = [(i, j, s) for i, row in enumerate(squares) for j, s in enumerate(row)]
    fig.add_scatter(
        x=[j for _, j, _ in cells],
        y=[i for i, _, _ in cells],
        mode="text",
        hoverinfo="skip",
        text=[_text(s) for _, _, s in cells],
        textfont={"size": 14},
        showlegend=False,
    )
    for i, j, s in cells:
        if s.own:
            ends = {"x0": j - 0.47, "x1": j + 0.47, "y0": i - 0.45, "y1": i + 0.45}
            fig.add_shape(type="rect", **ends, line={"color": NEUTRAL, "width": 2})
    fig.update_yaxes(
        autorange="reversed",
        tickvals=list(range(len(rows))),
        ticktext=[safe(r) for r in rows],
        title="mask of",
        showgrid=False,
        zeroline=False,
    )
    fig.update_xaxes(
        tickvals=list(range(len(columns))),
        ticktext=[safe(c) for c in columns],
        title="model and data of",
        side="top",
        showgrid=False,
        zeroline=False,
    )
    return frame(fig, 90 + LINE * max(3, len(rows)), top=34, least=220 + 60 * len(columns))


def _text(square: Square) -> str:
    if square.kept is None:
        return "–"
    share = f"{100 * square.kept:.0f} %".replace("-", "−")
    share = f"<b>{share}</b>" if square.clear else share
    small = f"<br><span style='font-size:11px'>{safe(square.below)}</span>" if square.below else ""
    return share + (" ▲" if square.ahead else "") + small


FULL, RANDOM = "every head on", "random masks"


def transfer_figure(result: Matrix, own_targets: Mapping[str, str] | None = None) -> go.Figure:
    """The matrix: first every head on, then each mask, then random masks of each size."""
    rows = [FULL]
    squares = [[_whole(result, target) for target in result.targets]]
    for source in result.sources:
        own_target = (own_targets or {}).get(source, source)
        rows.append(source)
        squares.append([_square(result.entry(source, target), target == own_target) for target in result.targets])
    for share in dict.fromkeys(e.sparsity for e in result.random):
        by_target = {e.target: e for e in result.random if e.sparsity == share}
        rows.append(f"{RANDOM}, {100 * share:.0f} % off")
        squares.append([_square(by_target.get(target), False) for target in result.targets])
    return kept_map(squares, rows, result.targets)


def _whole(result: Matrix, target: str) -> Square:
    entry = next((e for e in (*result.entries, *result.random) if e.target == target), None)
    if entry is None or entry.full is None:
        return Square(None, hover=f"{FULL}\nnot measured")
    value = metric(entry.full, entry.scale)
    floor = "" if entry.constant is None else f"\none answer for all: {metric(entry.constant, entry.scale)}"
    return Square(1.0, below=value, hover=f"{target}, {FULL}\n{entry.metric} {value}{floor}")


def _square(entry: Entry | None, own: bool) -> Square:
    if entry is None:
        return Square(None, hover="not measured", own=own)
    value = "" if entry.value is None else metric(entry.value, entry.scale)
    text = _entry_text(entry, value)
    return Square(entry.kept, entry.low, entry.high, value, text, entry.clear, entry.ahead, own)


def _entry_text(e: Entry, value: str) -> str:
    """The tooltip of a cell."""
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


def transfer_table(result: Matrix) -> Table:
    """One row for each mask on each model, then those of the random masks."""
    entries = (*result.entries, *result.random)
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
