"""Figures of distributions: lengths, head scores, bands of correlation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from .style import BETTER, CLASSES, NEUTRAL, WORSE, frame


def histogram(
    groups: Sequence[tuple[str, Sequence[float]]], axis: str, band: tuple[float, float] | None = None
) -> go.Figure:
    """Overlaid histograms in equal bars; ``band`` is marked, for example the lengths that a filter keeps."""
    fig, first, width = go.Figure(), *_bars([v for _, values in groups for v in values])
    for k, (name, values) in enumerate(groups):
        fig.add_histogram(
            x=list(values),
            name=name,
            opacity=0.62,
            histnorm="percent",
            xbins={"start": first - 0.5, "size": width},
            marker={"color": CLASSES[k % len(CLASSES)]},
            hovertemplate="%{x}: %{y:.1f} %<extra>" + name[:40] + "</extra>",
        )
    if band is not None:
        fig.add_vrect(x0=band[0], x1=band[1], fillcolor=NEUTRAL, opacity=0.18, line_width=0, layer="below")
    fig.update_xaxes(title=axis)
    fig.update_yaxes(title="% of examples" if width == 1 else f"% of examples per {width} {axis}")
    return frame(fig, 260, barmode="overlay")


def _bars(values: Sequence[float]) -> tuple[int, int]:
    """Where the bars of whole numbers begin, and their width: about thirty from the least to the greatest."""
    if not values:
        return 0, 1
    low, high = int(min(values)), int(max(values))
    return low, max(1, -(-(high - low + 1) // 30))


def value_histogram(values: np.ndarray, significant: np.ndarray, axis: str) -> go.Figure:
    """How many heads have which value, the significant ones apart; zero is marked."""
    known = np.isfinite(values)
    fig = go.Figure()
    groups = (
        ("not significant", ~significant, NEUTRAL),
        ("significant", significant & ~(values < 0), WORSE),
        ("significant, below 0", significant & (values < 0), BETTER),
    )
    for name, mask, colour in groups:
        if name != "significant" and not (known & mask).any():
            continue
        fig.add_histogram(
            x=values[known & mask],
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
