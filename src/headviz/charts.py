"""Data to plotly figures. No streamlit: the report and notebooks draw with the same functions.

Backgrounds and text colours are left to the page's theme; colours with a meaning come from ``palette``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from .palette import BETTER, CLASSES, NEUTRAL, WORSE, plotly_scale, scale_for

if TYPE_CHECKING:
    from .comparison import Delta

FONT = 12
ROW = 26  # pixels per line of a horizontal chart


def _layout(fig: go.Figure, height: int, **more: Any) -> go.Figure:
    fig.update_layout(
        height=height,
        margin={"l": 8, "r": 12, "t": 28 if more.get("title") else 8, "b": 8},
        font={"size": FONT},
        hoverlabel={"namelength": -1},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0, "title": None},
        dragmode=False,
        **more,
    )
    fig.update_xaxes(automargin=True, fixedrange=True)
    fig.update_yaxes(automargin=True, fixedrange=True)
    return fig


def slices(deltas: Sequence[Delta], metric: str) -> go.Figure:
    """One line per slice: the full model, the masked one, the interval of the change as a whisker."""
    order = sorted(deltas, key=lambda d: (d.delta, d.name), reverse=True)
    names = [d.name for d in order]
    fig = go.Figure()
    for d in order:
        fig.add_shape(
            type="line", x0=d.full, x1=d.masked, y0=d.name, y1=d.name, layer="below",
            line={"color": WORSE if d.delta < 0 else BETTER, "width": 5}, opacity=0.28,
        )  # fmt: skip
    fig.add_scatter(
        x=[d.full for d in order], y=names, mode="markers", name="full model",
        marker={"symbol": "line-ns-open", "size": 13, "line": {"width": 2.5}, "color": NEUTRAL},
        hovertemplate="%{y}<br>full model %{x:.3f}<extra></extra>",
    )  # fmt: skip
    fig.add_scatter(
        x=[d.masked for d in order], y=names, mode="markers", name="masked",
        marker={"size": 10, "color": [_direction(d) for d in order]},
        error_x={
            "type": "data", "symmetric": False, "thickness": 1.2, "width": 3, "color": NEUTRAL,
            "array": [d.interval_high - d.delta for d in order],
            "arrayminus": [d.delta - d.interval_low for d in order],
        },
        customdata=[[100 * d.delta, 100 * d.interval_low, 100 * d.interval_high, d.n] for d in order],
        hovertemplate="%{y}<br>masked %{x:.3f}<br>change %{customdata[0]:+.1f} points "
        "[%{customdata[1]:+.1f}, %{customdata[2]:+.1f}]<br>%{customdata[3]} examples<extra></extra>",
    )  # fmt: skip
    fig.update_xaxes(title=metric, range=[-0.02, 1.02] if _shares(order) else None)
    return _layout(fig, 76 + ROW * max(2, len(order)))


def _direction(d: Delta) -> str:
    if d.interval_high < 0:
        return WORSE
    return BETTER if d.interval_low > 0 else NEUTRAL


def _shares(deltas: Sequence[Delta]) -> bool:
    return all(0 <= v <= 1 for d in deltas for v in (d.full, d.masked) if v == v)


def confusion(full: np.ndarray, masked: np.ndarray, labels: Sequence[str]) -> go.Figure:
    """The masked model's confusion matrix, coloured by its difference from the full model's."""
    change = masked.astype(int) - full.astype(int)
    scale = scale_for([float(v) for v in change.ravel()] or [0.0], signed=True)
    fig = go.Figure(
        go.Heatmap(
            z=change, x=list(labels), y=list(labels), zmin=scale.lo, zmax=scale.hi, xgap=2, ygap=2,
            colorscale=[[0, "#dd8d4c"], [0.5, "rgba(140,146,152,0.12)"], [1, "#6ba2d8"]], showscale=False,
            text=[[f"{m}<br><sup>{_plus(c)}</sup>" for m, c in zip(a, b, strict=True)]
                  for a, b in zip(masked, change, strict=True)],
            texttemplate="%{text}", customdata=full,
            hovertemplate="gold %{y}, predicted %{x}<br>masked %{text}<br>full model %{customdata}<extra></extra>",
        )
    )  # fmt: skip
    fig.update_yaxes(autorange="reversed", title="gold")
    fig.update_xaxes(title="predicted", side="bottom")
    return _layout(fig, 90 + 52 * len(labels))


def _plus(value: int) -> str:
    return "±0" if value == 0 else f"{value:+d}".replace("-", "−")


def probabilities(columns: Sequence[tuple[str, Sequence[float]]], labels: Sequence[str]) -> go.Figure:
    """Class probabilities of several models on one text, one group of bars per class."""
    fig = go.Figure()
    for k, (name, values) in enumerate(columns):
        fig.add_bar(
            y=list(labels), x=list(values), name=name, orientation="h", marker={"color": CLASSES[k % len(CLASSES)]},
            text=[f"{v:.2f}" for v in values], textposition="auto", hovertemplate="%{y} %{x:.3f}<extra>" + name[:40] + "</extra>",
        )  # fmt: skip
    fig.update_xaxes(range=[0, 1], title="probability")
    fig.update_yaxes(autorange="reversed")
    return _layout(fig, 70 + len(labels) * (14 + 18 * len(columns)), barmode="group", bargap=0.25)


def histogram(
    groups: Sequence[tuple[str, Sequence[float]]], axis: str, band: tuple[float, float] | None = None
) -> go.Figure:
    """Overlaid histograms; ``band`` is marked, for example the lengths that a filter keeps."""
    fig = go.Figure()
    for k, (name, values) in enumerate(groups):
        fig.add_histogram(
            x=list(values), name=name, opacity=0.62, marker={"color": CLASSES[k % len(CLASSES)]},
            hovertemplate="%{x}: %{y}<extra>" + name[:40] + "</extra>",
        )  # fmt: skip
    if band is not None:
        fig.add_vrect(x0=band[0], x1=band[1], fillcolor=NEUTRAL, opacity=0.18, line_width=0, layer="below")
    fig.update_xaxes(title=axis)
    fig.update_yaxes(title="examples")
    return _layout(fig, 260, barmode="overlay")


def matrix(
    values: np.ndarray, tokens: Sequence[str], name: str, signed: bool, end: float | None = None
) -> go.Figure:
    """One T×T map, queries down and keys across; equal tokens stay apart."""
    ticks = [f"{t}​" + "​" * i for i, t in enumerate(tokens)]  # zero-width marks keep repeated tokens apart
    values = np.asarray(values, dtype=float)
    scale = scale_for([float(v) for v in values.ravel()], signed=signed)
    high = end or scale.hi
    colours = plotly_scale(scale.light)
    fig = go.Figure(
        go.Heatmap(
            z=values, x=ticks, y=ticks, zmin=-high if signed else 0, zmax=high, colorscale=colours,
            colorbar={"thickness": 9, "len": 0.85, "title": None, "tickformat": ".2g", "x": 1.01},
            hovertemplate="%{y} → %{x}<br>" + name + " %{z:.4f}<extra></extra>",
        )
    )  # fmt: skip
    fig.update_yaxes(autorange="reversed", title="query", tickfont={"size": 10}, dtick=1)
    fig.update_xaxes(title="key", side="top", tickangle=-60, tickfont={"size": 10}, dtick=1)
    return _layout(fig, min(620, 190 + 17 * len(tokens)))


def scatter(
    x: Sequence[float], y: Sequence[float], names: Sequence[str], x_title: str, y_title: str
) -> go.Figure:
    """A cloud of points with its names on hover."""
    fig = go.Figure(
        go.Scattergl(
            x=list(x), y=list(y), mode="markers", text=list(names),
            marker={"size": 6, "opacity": 0.6, "color": BETTER},
            hovertemplate="%{text}<br>" + x_title + " %{x:.3g}<br>" + y_title + " %{y:.3g}<extra></extra>",
        )
    )  # fmt: skip
    fig.update_xaxes(title=x_title, zeroline=True)
    fig.update_yaxes(title=y_title, zeroline=True)
    return _layout(fig, 360)
