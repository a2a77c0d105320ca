"""What the figures of analyses share: the frame, head grids, whiskers, notes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from .palette import BETTER, NEUTRAL, WORSE, either_scale, scale_for

ROW = 24  # pixels per line of a horizontal chart
FAINT = "rgba(140,146,152,0.55)"


def frame(fig: go.Figure, height: int, **more: Any) -> go.Figure:
    fig.update_layout(
        height=height,
        margin={"l": 8, "r": 12, "t": 34, "b": 8},
        font={"size": 12},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.04, "x": 0, "title": None},
        dragmode=False,
        hoverlabel={"namelength": -1},
        **more,
    )
    fig.update_xaxes(automargin=True, fixedrange=True)
    fig.update_yaxes(automargin=True, fixedrange=True)
    return fig


def grid(
    fig: go.Figure,
    table: np.ndarray,
    name: str,
    row: int,
    col: int,
    values: Sequence[float] | None = None,
    show_bar: bool = True,
    bar_x: float = 1.01,
) -> None:
    """Layers down, heads across, blue above zero and orange below; not measured stays empty."""
    scale = scale_for(list(values) if values is not None else [float(v) for v in table.ravel()], signed=True)
    fig.add_heatmap(
        z=table, zmin=scale.lo, zmax=scale.hi, colorscale=either_scale(True), xgap=1.5, ygap=1.5, showscale=show_bar,
        colorbar={"thickness": 9, "len": 0.9, "x": bar_x, "tickformat": ".2g"},
        hovertemplate="L%{y}·H%{x}<br>" + name + " %{z:+.4f}<extra></extra>", row=row, col=col,
    )  # fmt: skip
    fig.update_yaxes(
        autorange="reversed", title="layer", dtick=1, showgrid=False, zeroline=False, row=row, col=col
    )
    fig.update_xaxes(title="head", dtick=1, showgrid=False, zeroline=False, row=row, col=col)


def whisker(values: Sequence[float], low: Sequence[float], high: Sequence[float]) -> dict[str, Any]:
    return {
        "type": "data", "symmetric": False, "thickness": 1.2, "width": 3, "color": NEUTRAL,
        "array": [h - v for v, h in zip(values, high, strict=True)],
        "arrayminus": [v - lo for v, lo in zip(values, low, strict=True)],
    }  # fmt: skip


def tone(low: float, high: float) -> str:
    if high < 0:
        return WORSE
    return BETTER if low > 0 else NEUTRAL


def note(fig: go.Figure, text: str) -> None:
    fig.add_annotation(
        x=0.0, y=1.0, xref="paper", yref="paper", xanchor="left", yanchor="bottom", showarrow=False,
        text=plain(text), font={"size": 12},
    )  # fmt: skip


def p_text(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"


def plain(text: str) -> str:
    """A text from data, so that plotly reads no markup and no template in it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("%{", "% {")
