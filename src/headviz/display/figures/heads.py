"""Figures in which a cell or a line is one head, or one pair of heads."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

import numpy as np
import plotly.graph_objects as go

from ...evaluation.verdict import undecided
from ..numbers import interval
from .style import FAINT, NEUTRAL, ROW, colours, frame, note, safe, whisker


def relation_map(points: np.ndarray, relations: Sequence[str]) -> go.Figure:
    """What every head has above chance [L, H, R], in points: relations down, heads across, layer by layer.

    A relation that no head has a value for has no row.
    """
    layers, heads = points.shape[:2]
    rows = points.reshape(layers * heads, -1).T
    measured = np.isfinite(rows).any(axis=1)
    rows, relations = rows[measured], list(compress(relations, measured))
    fig = go.Figure(
        go.Heatmap(
            z=rows,
            y=relations,
            customdata=[[f"L{i}·H{j}" for i in range(layers) for j in range(heads)]] * len(rows),
            **colours(rows, "points above chance", signed=True),
            hovertemplate="%{customdata}, %{y}: %{z:+.1f} points<extra></extra>",
        )
    )
    for layer in range(1, layers):
        fig.add_vline(x=layer * heads - 0.5, line={"color": NEUTRAL, "width": 0.5})
    fig.update_xaxes(
        title="layer, its heads from left to right",
        tickvals=[heads * (layer + 0.5) - 0.5 for layer in range(layers)],
        ticktext=[f"L{layer}" for layer in range(layers)],
        showgrid=False,
        zeroline=False,
    )
    fig.update_yaxes(autorange="reversed", showgrid=False, zeroline=False)
    return frame(fig, 110 + 22 * len(relations), least=320 + 26 * layers)


def marked_map(
    values: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    marked: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    mark_name: str,
) -> go.Figure:
    """Costs in points, [rows, columns], with their intervals on hover and rings around the marked ones.

    A cost whose interval includes 0 has the colour of 0.
    """
    rows, columns = [safe(r) for r in rows], [safe(c) for c in columns]
    labels = [
        [
            "–" if c != c else f"{c:+.2f} points ".replace("-", "−") + interval(a, b, 1)
            for c, a, b in zip(*row, strict=True)
        ]
        for row in zip(values, low, high, strict=True)
    ]
    fig = go.Figure(
        go.Heatmap(
            z=np.where(undecided(low, high) & np.isfinite(values), 0.0, values),
            x=columns,
            y=rows,
            customdata=labels,
            **colours(values, "cost, points", signed=True),
            reversescale=True,  # a cost is a loss, and so orange
            xgap=1.5,
            ygap=1.5,
            hovertemplate="%{y}<br>without %{x}: cost %{customdata}<extra></extra>",
        )
    )
    if marked.any():
        down, across = np.nonzero(marked)
        strong = np.abs(values[down, across]) > 0.4 * fig.data[0].zmax  # where grey would not be seen
        fig.add_scatter(
            x=[columns[j] for j in across],
            y=[rows[i] for i in down],
            mode="markers",
            name=mark_name,
            showlegend=False,
            hoverinfo="skip",
            marker={
                "symbol": "circle-open",
                "size": 9,
                "color": ["white" if s else NEUTRAL for s in strong],
                "line": {"width": 1.5},
            },
        )
    fig.update_yaxes(autorange="reversed", showgrid=False, zeroline=False, type="category", dtick=1)
    fig.update_xaxes(title="head", showgrid=False, zeroline=False, type="category", dtick=1, tickangle=-60)
    return frame(fig, 130 + ROW * max(3, len(rows)), top=34, least=240 + 16 * len(columns))


def head_map(values: np.ndarray, name: str, low: np.ndarray | None = None, high: np.ndarray | None = None) -> go.Figure:
    """A value for every head [L, H], with its interval on hover; not measured stays empty."""
    ends = None
    if low is not None and high is not None:
        ends = [
            ["" if a != a else f" [{a:.3g}, {b:.3g}]" for a, b in zip(*row, strict=True)]
            for row in zip(low, high, strict=True)
        ]
    fig = go.Figure(
        go.Heatmap(
            z=values,
            customdata=ends,
            **colours(values, name),
            xgap=1.5,
            ygap=1.5,
            hovertemplate=f"L%{{y}}·H%{{x}}<br>{safe(name)} %{{z:.4g}}{'%{customdata}' if ends else ''}<extra></extra>",
        )
    )
    fig.update_yaxes(autorange="reversed", title="layer", dtick=1, showgrid=False, zeroline=False)
    fig.update_xaxes(title="head", dtick=1, showgrid=False, zeroline=False)
    return frame(fig, 90 + ROW * max(3, len(values)), top=34)


def pair_map(values: np.ndarray, names: Sequence[str], name: str) -> go.Figure:
    """A value for every pair of heads [H, H], on one scale around zero; orange is below zero."""
    fig = go.Figure(
        go.Heatmap(
            z=np.round(values, 5),
            x=list(names),
            y=list(names),
            **colours(values, name, signed=True),
            hovertemplate=f"%{{y}} and %{{x}}<br>{safe(name)} %{{z:+.4f}}<extra></extra>",
        )
    )
    for axes in (fig.update_xaxes, fig.update_yaxes):
        # the names stand next to the square, wherever in the width it is
        axes(showgrid=False, zeroline=False, type="category", tickfont_size=9, constrain="domain")
    fig.update_yaxes(autorange="reversed", scaleanchor="x")
    return frame(fig, max(320, min(760, 90 + 5 * len(names))), top=34)


def changes(
    names: Sequence[str],
    intervals: Sequence[tuple[float, float, float]],
    tests: Sequence[tuple[float, float]],
    *,
    axis: str,
    colour: str,
    nothing: str,
    name: str = "",
    second: tuple[str, Sequence[float]] | None = None,
) -> go.Figure:
    """One line per name: (value, low, high) in points, (p, q) on hover, and ``second`` a second value as a stroke."""
    fig = go.Figure()
    fig.add_vline(x=0, line={"color": FAINT, "width": 1})
    if second is not None:
        fig.add_scatter(
            x=list(second[1]),
            y=list(names),
            mode="markers",
            name=second[0],
            marker={"symbol": "line-ns-open", "size": 13, "line": {"width": 2.5}, "color": NEUTRAL},
            hovertemplate="%{y}: %{x:+.2f} points<extra></extra>",
        )
    values = [v for v, _, _ in intervals]
    fig.add_scatter(
        x=values,
        y=list(names),
        mode="markers",
        name=name,
        showlegend=bool(name),
        marker={"size": 10, "color": colour},
        error_x=whisker(values, [low for _, low, _ in intervals], [high for _, _, high in intervals]),
        customdata=[list(t) for t in tests],
        hovertemplate="%{y}: %{x:+.2f} points<br>p %{customdata[0]:.3g}, q %{customdata[1]:.3g}<extra></extra>",
    )
    if not names:
        note(fig, nothing)
    fig.update_xaxes(title=axis)
    fig.update_yaxes(autorange="reversed")
    return frame(fig, 120 + ROW * max(3, len(names)), top=34)
