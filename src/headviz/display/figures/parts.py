"""Figures of the parts of one class score: a waterfall, bars of the words that a head reads, curves of explanations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from .style import BETTER, MODELS, NEUTRAL, ROW, WORSE, band, frame, safe

LEAST = 0.2  # of an axis of probabilities


def waterfall(parts: Sequence[tuple[str, float]], total: str) -> go.Figure:
    """Each part from where the one before it ended, top down, to the score."""
    names = [safe(name) for name, _ in parts]
    fig = go.Figure(
        go.Waterfall(
            orientation="h",
            y=[*names, safe(total)],
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
    for column, (_, own, random) in enumerate(sides, 1):
        low, middle, high = np.percentile(random, [2.5, 50, 97.5], axis=0)
        lines = [*zip(methods, own, MODELS, strict=False), ("random orders", middle, NEUTRAL)]
        band(fig, shares, low, high, NEUTRAL, opacity=0.2, row=1, col=column)
        for name, values, colour in lines:
            dash = "dot" if name == "random orders" else "solid"
            fig.add_scatter(
                x=list(shares),
                y=list(values),
                name=safe(name),
                legendgroup=safe(name),
                showlegend=column == 1,
                mode="lines",
                line={"color": colour, "dash": dash, "width": 2},
                hovertemplate=safe(name) + " %{y:.3f}<extra></extra>",
                row=1,
                col=column,
            )
    fig.update_xaxes(tickformat=".0%", zeroline=False)
    fig.update_yaxes(title=safe(measured), col=1)
    if measured.startswith("probability"):  # a change of .03 must not fill the figure
        drawn = np.concatenate([np.ravel(values) for _, *both in sides for values in both])
        middle = float(drawn.max() + drawn.min()) / 2
        fig.update_yaxes(autorangeoptions={"include": [middle - LEAST / 2, middle + LEAST / 2]})
    fig.update_annotations(font_size=12)
    framed = frame(fig, 400, top=40)
    return framed.update_layout(legend={"y": -0.14, "yanchor": "top"})


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
