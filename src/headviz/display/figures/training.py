"""A training's learning curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from .style import MODELS, NEUTRAL, frame, safe


def learning_curve(points: Sequence[Mapping[str, Any]], metric: str) -> go.Figure:
    """A training's loss by update (left) and a dev metric after each epoch (right)."""
    fig = make_subplots(specs=[[{"secondary_y": True}]])
    losses = [(p["step"], p["loss"]) for p in points if p.get("loss") is not None]
    measured = [(p["step"], (p.get("metrics") or {}).get(metric)) for p in points]
    measured = [(x, y) for x, y in measured if y is not None]
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
            secondary_y=True,
            hovertemplate="update %{x}: " + safe(metric) + " %{y:.4f}<extra></extra>",
        )
    fig.update_xaxes(title="updates", zeroline=False)
    fig.update_yaxes(title="loss", rangemode="tozero", secondary_y=False)
    fig.update_yaxes(title=safe(metric), showgrid=False, secondary_y=True)
    return frame(fig, 320)
