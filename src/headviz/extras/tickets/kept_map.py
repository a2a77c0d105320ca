"""The matrix of a transfer: what each mask keeps on each target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from ...display.figures.style import NEUTRAL, colour_bar, frame, safe, scale_for
from ...display.numbers import percent
from ...evaluation.verdict import undecided

PALE, MOST = 20.0, 100.0  # per cent lost that has the full colour: at least, and at most
HOVER = {"align": "left", "bgcolor": "#2b3037", "font": {"color": "white"}}
LINE = 46  # pixels of a row
COLOURS = [[0, "rgba(214,110,30,0.6)"], [0.5, "rgba(140,146,152,0.12)"], [1, "rgba(60,130,205,0.6)"]]


@dataclass(frozen=True)
class Square:
    """One cell: the share that is kept (None = blank), and the interval of the change that decides its colour."""

    kept: float | None
    low: float | None = None
    high: float | None = None
    below: str = ""  # a second line, such as the metric
    hover: str = ""
    clear: bool = False  # the change is told apart from none: bold
    ahead: bool = False  # better than random masks: marked
    own: bool = False  # the mask's own target: outlined


def kept_map(squares: Sequence[Sequence[Square]], rows: Sequence[str], columns: Sequence[str]) -> go.Figure:
    """Masks down, targets across. Orange lost something, blue gained, grey is not told apart from no change."""
    table = np.array([[np.nan if s.kept is None else 100 * (s.kept - 1) for s in row] for row in squares], dtype=float)
    low, high = (
        np.array([[np.nan if (v := getattr(s, end)) is None else v for s in row] for row in squares], dtype=float)
        for end in ("low", "high")
    )
    table = np.clip(table, -MOST, MOST)  # of what is worse than one answer for all, all is lost
    scale = scale_for([float(v) for v in table.ravel() if v == v] + [PALE], signed=True)
    fig = go.Figure(
        go.Heatmap(
            z=np.where(undecided(low, high) & np.isfinite(table), 0.0, table),
            customdata=[[safe_lines(s.hover) for s in row] for row in squares],
            zmin=scale.lo,
            zmax=scale.hi,
            colorscale=COLOURS,
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
    return frame(fig, 90 + LINE * max(3, len(rows)), top=34)


def safe_lines(text: str) -> str:
    """Lines of a hover, each escaped."""
    return "<br>".join(safe(line) for line in text.split("\n"))


def _text(square: Square) -> str:
    if square.kept is None:
        return "–"
    share = f"{100 * square.kept:.0f} %".replace("-", "−")
    share = f"<b>{share}</b>" if square.clear else share
    small = f"<br><span style='font-size:11px'>{safe(square.below)}</span>" if square.below else ""
    return share + (" ▲" if square.ahead else "") + small
