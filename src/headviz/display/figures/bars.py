"""Bars and lines of numbers: histograms, the parts of a sum, a training's curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from ...answers.metrics import metric_title
from .style import BETTER, CLASSES, MODELS, NEUTRAL, ROW, WORSE, band, frame, limits, safe

# Figures of distributions: lengths, head scores, bands of correlation --------------------------


def histogram(groups: Sequence[tuple[str, Sequence[float]]], axis: str) -> go.Figure:
    """Histograms in equal bars, side by side."""
    fig = go.Figure()
    first, width = _bars([v for _, values in groups for v in values])
    for k, (name, values) in enumerate(groups):
        fig.add_histogram(
            x=list(values),
            name=name,
            histnorm="percent",
            xbins={"start": first - 0.5, "size": width},
            marker={"color": CLASSES[k % len(CLASSES)]},
            hovertemplate="%{x}: %{y:.1f} %<extra>" + name[:40] + "</extra>",
        )
    fig.update_xaxes(title=axis)
    fig.update_yaxes(title="% of examples" if width == 1 else f"% of examples per {width} {axis}")
    return frame(fig, 260, barmode="group")


def _bars(values: Sequence[float]) -> tuple[int, int]:
    """Where the bars of whole numbers begin, and their width: about thirty from the least to the greatest."""
    low, high = int(min(values, default=0)), int(max(values, default=0))
    return low, max(1, ceil((high - low + 1) / 30))


def value_histogram(values: np.ndarray, significant: np.ndarray, axis: str) -> go.Figure:
    """How many heads have which value, the significant ones apart; zero is marked."""
    measured = np.isfinite(values)
    fig = go.Figure()
    groups = (
        ("not significant", measured & ~significant, NEUTRAL),
        ("significant", measured & significant & ~(values < 0), WORSE),
        ("significant, below 0", measured & significant & (values < 0), BETTER),
    )
    for name, group, colour in groups:
        if name != "significant" and not group.any():
            continue
        fig.add_histogram(
            x=values[group],
            name=name,
            marker={"color": colour},
            nbinsx=40,
            hovertemplate="%{x}: %{y} heads<extra>" + name + "</extra>",
        )
    fig.add_vline(x=0, line_width=1, line_color=NEUTRAL)
    fig.update_xaxes(title=axis)
    fig.update_yaxes(title="heads")
    return frame(fig, 260, barmode="stack")


def bands(rows: Sequence[tuple[str, Sequence[float]]], names: Sequence[str]) -> go.Figure:
    """Share of heads in each band of correlation, one group of bars per model."""
    fig = go.Figure()
    for k, (name, shares) in enumerate(rows):
        fig.add_bar(
            x=list(names),
            y=[100 * s for s in shares],
            name=name,
            marker={"color": CLASSES[k % len(CLASSES)]},
            hovertemplate="%{x}: %{y:.1f} % of heads<extra>" + name[:40] + "</extra>",
        )
    fig.update_xaxes(title="correlation", type="category")
    fig.update_yaxes(title="% of heads")
    return frame(fig, 280, barmode="group")


# -----------------------------------------------------------------------------------------------
# Figures of the parts of one class score: a waterfall, bars of the words that a head reads, curves of explanations.


LEAST = 0.2  # of an axis of probabilities


def waterfall(parts: Sequence[tuple[str, float]], total: str) -> go.Figure:
    """Each part from where the one before it ended, top down, to the score."""
    fig = go.Figure(
        go.Waterfall(
            orientation="h",
            y=[*(safe(name) for name, _ in parts), safe(total)],
            x=[*(v for _, v in parts), 0],
            measure=[*("relative" for _ in parts), "total"],
            increasing={"marker": {"color": BETTER}},
            decreasing={"marker": {"color": WORSE}},
            totals={"marker": {"color": NEUTRAL}},
            connector={"line": {"width": 1, "color": "rgba(128,128,128,.5)"}},
            hovertemplate="%{y}: %{delta:+.4f}<extra></extra>",
            showlegend=False,
        )
    )
    fig.update_yaxes(autorange="reversed")
    fig.update_xaxes(title="class score", zeroline=True)
    return frame(fig, 70 + ROW * (len(parts) + 1))


def token_curves(
    methods: Sequence[str], shares: Sequence[float], sides: Sequence[tuple[str, Any, Any]], measured: str
) -> go.Figure:
    """Side by side (title, [M, K] of methods, [R, K] of random orders): lines, and the random orders' 95 % band."""
    fig = make_subplots(1, len(sides), subplot_titles=[title for title, _, _ in sides], shared_yaxes=True)
    methods = [safe(name) for name in methods]
    for column, (_, curves, random) in enumerate(sides, 1):
        low, middle, high = np.percentile(random, [2.5, 50, 97.5], axis=0)
        lines = [*zip(methods, curves, MODELS, strict=False), ("random orders", middle, NEUTRAL)]
        band(fig, shares, low, high, NEUTRAL, opacity=0.2, row=1, col=column)
        for name, values, colour in lines:
            dash = "dot" if name == "random orders" else "solid"
            fig.add_scatter(
                x=list(shares),
                y=list(values),
                name=name,
                legendgroup=name,
                showlegend=column == 1,
                mode="lines",
                line={"color": colour, "dash": dash, "width": 2},
                hovertemplate=name + " %{y:.3f}<extra></extra>",
                row=1,
                col=column,
            )
    fig.update_xaxes(tickformat=".0%", zeroline=False)
    fig.update_yaxes(title=safe(measured), col=1)
    if measured.startswith("probability"):  # a change of .03 must not fill the figure
        drawn = np.concatenate([np.ravel(values) for _, *tables in sides for values in tables])
        middle = float(drawn.max() + drawn.min()) / 2
        fig.update_yaxes(autorangeoptions={"include": [middle - LEAST / 2, middle + LEAST / 2]})
    fig.update_annotations(font_size=12)
    return frame(fig, 400, top=40).update_layout(legend={"y": -0.14, "yanchor": "top"})


def token_bars(values: Sequence[float], tokens: Sequence[str], title: str) -> go.Figure:
    """One bar per token, in the order of the text."""
    names = [f"{i} {safe(token)}" for i, token in enumerate(tokens)]  # equal tokens must not share a bar
    fig = go.Figure(
        go.Bar(
            x=list(values),
            y=names,
            orientation="h",
            marker={"color": [BETTER if v >= 0 else WORSE for v in values]},
            hovertemplate="%{y}: %{x:+.4f}<extra></extra>",
        )
    )
    fig.update_yaxes(autorange="reversed", ticktext=[safe(t) for t in tokens], tickvals=names)
    fig.update_xaxes(title=safe(title), zeroline=True)
    return frame(fig, 90 + max(15, 320 // max(1, len(tokens))) * len(tokens))


# A training's learning curve -------------------------------------------------------------------


def learning_curve(points: Sequence[Mapping[str, Any]], metric: str) -> go.Figure:
    """A training's loss by update (left) and a dev metric after each epoch (right)."""
    fig = make_subplots(specs=[[{"secondary_y": True}]])
    losses = [(p["step"], p["loss"]) for p in points if p.get("loss") is not None]
    of_dev = [(p["step"], (p.get("metrics") or {}).get(metric)) for p in points]
    measured = [(x, float(y)) for x, y in of_dev if y is not None]
    if losses:
        fig.add_scatter(
            x=[x for x, _ in losses],
            y=[y for _, y in losses],
            mode="lines",
            name="training loss",
            line={"color": NEUTRAL, "width": 1.6},
            hovertemplate="update %{x}: loss %{y:.4f}<extra></extra>",
        )
    if measured:
        fig.add_scatter(
            x=[x for x, _ in measured],
            y=[y for _, y in measured],
            mode="lines+markers",
            name=f"dev {safe(metric)}",
            line={"color": MODELS[0], "width": 2.2},
            marker={"size": 7},
            cliponaxis=False,
            secondary_y=True,
            hovertemplate="update %{x}: " + safe(metric) + " %{y:.4f}<extra></extra>",
        )
    updates = [x for x, _ in (*losses, *measured)] or [0]
    fig.update_xaxes(title="updates", zeroline=False, tickformat=",d", dtick=1 if max(updates) < 10 else None)
    most = max((y for _, y in losses), default=1.0)
    fig.update_yaxes(title="loss", range=[0, 1.05 * most], secondary_y=False)
    ends = _around(metric, [y for _, y in measured])
    fig.update_yaxes(title=safe(metric_title(metric)), showgrid=False, range=ends, secondary_y=True)
    return frame(fig, 320)


def _around(metric: str, values: Sequence[float]) -> list[float] | None:
    """An axis that holds the values of a metric with room on both sides, also where there is one value; it ends where
    the metric does."""
    if not values:
        return None
    room = max(0.02, 0.1 * (max(values) - min(values)))
    lowest, highest = limits([metric], values) or (-np.inf, np.inf)
    return [max(lowest, min(values) - room), min(highest, max(values) + room)]
