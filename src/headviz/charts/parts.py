"""Figures of the parts of one class score: a waterfall, and bars of the words that a head reads."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from .palette import BETTER, NEUTRAL, WORSE
from .style import ROW, frame, safe


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
