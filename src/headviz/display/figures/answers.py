"""Figures of answers: metrics by slice, confusion matrices, class probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from ...answers.metrics import constant_name, metric_title
from ..numbers import interval, points
from .style import BETTER, FAINT, MODELS, NEUTRAL, ROW, UNDER_TEXT, WORSE, frame, limits, safe, scale_for, tone, whisker

if TYPE_CHECKING:
    from ...answers.answer import Answer
    from ...answers.comparison import Delta


def slices(
    deltas: Sequence[Delta], metric: str, constant: float | None = None, answer: Answer | None = None
) -> go.Figure:
    """One line per slice: the full model, the masked one, the interval of the change. Dotted: the best constant."""
    order = sorted(deltas, key=lambda d: (d.delta, d.name), reverse=True)
    names = [safe(d.name) for d in order]
    ends = limits((d.metric for d in order), (v for d in order for v in (d.full, d.masked)))
    shares = ends == (0, 1)
    fig = go.Figure()
    if constant is not None:
        fig.add_vline(
            x=constant,
            line={"color": FAINT, "width": 1, "dash": "dot"},
            annotation={"text": constant_name(metric, answer)},
            # the slices that lose most are on top; a name that runs over the end is cut
            annotation_position="bottom right" if not shares or constant < 0.5 else "bottom left",
        )
    # the way from one value to the other: traces with gaps, because one shape per slice takes five times as long
    for colour in (WORSE, BETTER, NEUTRAL):
        changed = [d for d in order if d.delta and tone(d.interval_low, d.interval_high) == colour]
        fig.add_scatter(
            x=[v for d in changed for v in (d.full, d.masked, None)],
            mode="lines",
            hoverinfo="skip",
            y=[v for d in changed for v in (safe(d.name), safe(d.name), None)],
            showlegend=False,
            opacity=0.28,
            line={"color": colour, "width": 5},
        )
    fig.add_scatter(
        x=[d.full for d in order],
        y=names,
        mode="markers",
        name="no mask",
        marker={"symbol": "line-ns-open", "size": 13, "line": {"width": 2.5}, "color": NEUTRAL},
        hovertemplate="%{y}<br>no mask %{x:.3f}<extra></extra>",
    )
    fig.add_scatter(
        x=[d.masked for d in order],
        y=names,
        mode="markers",
        name="masked",
        marker={"size": 10, "color": [tone(d.interval_low, d.interval_high) for d in order]},
        error_x=_whiskers(order, ends),
        customdata=[[points(d.delta, d.scale), interval(d.interval_low, d.interval_high, d.scale), d.n] for d in order],
        hovertemplate="%{y}<br>masked %{x:.3f}<br>change %{customdata[0]} points %{customdata[1]}"
        "<br>%{customdata[2]} examples<extra></extra>",
    )
    fig.update_xaxes(title=metric_title(metric), range=[-0.02, 1.02] if shares else None)
    below = 0 if constant is None else 0.8  # a row's share for the name of the dotted line
    fig.update_yaxes(categoryorder="array", categoryarray=names, range=[-0.5 - below, len(order) - 0.5])
    return frame(fig, 76 + int(ROW * (max(2, len(order)) + below)))


def _whiskers(deltas: Sequence[Delta], ends: tuple[int, int] | None) -> dict[str, Any]:
    """The intervals of the changes around the masked values; they end where a share or a correlation ends."""
    intervals = np.array([(d.full + d.interval_low, d.full + d.interval_high) for d in deltas], dtype=float)
    if ends is not None:
        intervals = intervals.clip(*ends)
    low, high = intervals.reshape(-1, 2).T
    return whisker([d.masked for d in deltas], list(low), list(high))


def metric_bars(
    metrics: Mapping[str, float], constant: Mapping[str, float | None], answer: Answer | None = None
) -> go.Figure:
    """One bar per metric; the stroke is what the best constant answer reaches."""
    names = [safe(name) for name in metrics]
    fig = go.Figure(
        go.Bar(y=names, x=list(metrics.values()), orientation="h", marker={"color": MODELS[0]}, name="model")
    )
    fig.add_scatter(
        y=names,
        x=[constant.get(name) for name in metrics],
        mode="markers",
        name=constant_name(next(iter(metrics)), answer),
        marker={"symbol": "line-ns-open", "size": 18, "line": {"width": 2.5}, "color": NEUTRAL},
    )
    fig.update_traces(hovertemplate="%{y} %{x:.4f}<extra></extra>")
    fig.update_yaxes(autorange="reversed")
    return frame(fig, 110 + ROW * max(2, len(names)), top=34)


SOME = 0.02  # of the examples: a change of so many answers has the full colour


def confusion(full: np.ndarray, masked: np.ndarray, labels: Sequence[str]) -> go.Figure:
    """The masked model's confusion matrix, coloured by its difference from the full model's.

    Blue is better everywhere: more right answers on the diagonal, fewer wrong ones next to it.
    """
    change = masked.astype(int) - full.astype(int)
    better = change * np.where(np.eye(*change.shape) == 1, 1, -1)
    few = SOME * float(full.sum())  # a change of single answers stays pale
    scale = scale_for([*change.ravel(), few], signed=True)
    names = [safe(x) for x in labels]
    fig = go.Figure(
        go.Heatmap(
            z=better,
            x=names,
            y=names,
            zmin=scale.lo,
            zmax=scale.hi,
            xgap=2,
            ygap=2,
            showscale=False,
            colorscale=UNDER_TEXT,
            text=[[_plus(c) for c in row] for row in change],
            customdata=np.stack([masked, full], axis=-1),
            hovertemplate="gold %{y}, predicted %{x}<br>masked %{customdata[0]} (%{text})"
            "<br>no mask %{customdata[1]}<extra></extra>",
        )
    )
    # numbers as a trace of their own: they take the page's text colour, light or dark, where a heatmap's cannot
    cells = [(gold, predicted) for gold in range(len(names)) for predicted in range(len(names))]
    fig.add_scatter(
        x=[names[predicted] for _, predicted in cells],
        y=[names[gold] for gold, _ in cells],
        mode="text",
        hoverinfo="skip",
        text=[f"{int(masked[c])}<br><span style='font-size:11px'>{_plus(change[c])}</span>" for c in cells],
        textfont={"size": 15},
        showlegend=False,
    )
    fig.update_yaxes(autorange="reversed", title="gold", showgrid=False)
    fig.update_xaxes(title="predicted", side="bottom", showgrid=False)
    return frame(fig, 114 + 52 * len(labels), top=32)  # the tools stand above the corner cell, not on it


def _plus(value: int) -> str:
    return "±0" if value == 0 else f"{value:+d}".replace("-", "−")


# the model that others are compared with has a shape, not a colour
REFERENCE = {"color": "rgba(0,0,0,0)", "line": {"color": NEUTRAL, "width": 2}}


def probabilities(columns: Sequence[tuple[str, Sequence[float]]], labels: Sequence[str]) -> go.Figure:
    """Class probabilities of several models on one text, one group of bars per class."""
    fig = go.Figure()
    for k, (name, values) in enumerate(columns):
        name = safe(name)
        fig.add_bar(
            y=[safe(x) for x in labels],
            x=list(values),
            name=name,
            orientation="h",
            marker=REFERENCE if k == 0 else {"color": MODELS[(k - 1) % len(MODELS)]},
            text=[f"{v:.3f}" for v in values],
            textposition="outside",
            textfont={"size": 11},
            cliponaxis=False,
            hovertemplate="%{y} %{x:.3f}<extra>" + name[:40] + "</extra>",
        )
    fig.update_xaxes(range=[0, 1.08], tickvals=[0, 0.25, 0.5, 0.75, 1], title="probability")
    fig.update_yaxes(autorange="reversed", showgrid=False)  # a line of its class would strike a bar's number through
    # the legend's line, and above it one for the camera
    height = 100 + len(labels) * (14 + 18 * len(columns))
    return frame(fig, height, top=54, barmode="group", bargap=0.25)
