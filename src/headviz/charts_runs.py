"""Runs to plotly figures: the curves of one run or several on one picture. No streamlit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from statistics import mean, stdev
from typing import Any

import plotly.graph_objects as go

from .palette import CLASSES

FAINT = "rgba(140,146,152,0.75)"
GRID = "rgba(140,146,152,0.22)"


@dataclass(frozen=True)
class Curve:
    """One run's metric against sparsity: a line per seed where there are several, and their mean."""

    name: str
    metric: str
    baseline: float | None  # of the model with every head
    by_seed: Mapping[
        int, Sequence[tuple[float, float]]
    ]  # seed -> (sparsity, value), as far as they are known

    @property
    def means(self) -> list[tuple[float, float, float | None]]:
        """(sparsity, mean, sd over seeds); sd is None with fewer than two."""
        found: dict[float, list[float]] = {}
        for points in self.by_seed.values():
            for x, y in points:
                found.setdefault(round(x, 9), []).append(y)
        return [(x, mean(v), stdev(v) if len(v) > 1 else None) for x, v in sorted(found.items())]


def curve_of(run: Mapping[str, Any], metric: str | None = None) -> Curve | None:
    """The curve of a run as JSON (``RunView.to_json``); None before there is anything to draw."""
    points = [*run["baseline"], *run["steps"]]
    if not points or any(s.get("sparsity") is None for s in points):
        return None
    name = metric or next(iter(points[0]["metrics"]), None)
    if name is None:
        return None
    full = [s["metrics"].get(name) for s in run["baseline"]]
    known = [v for v in full if v is not None]
    by_seed: dict[int, list[tuple[float, float]]] = {}
    for step in run["steps"]:
        value = step["metrics"].get(name)
        if value is not None:
            by_seed.setdefault(int(step.get("seed") or 0), []).append((step["sparsity"], value))
    return Curve(f"{run['title']} ({run['id']})", name, mean(known) if known else None, by_seed)


def run_curves(curves: Sequence[Curve], height: int = 400) -> go.Figure:
    """Metric against percentage pruned, one colour per run; thin lines are seeds, bands one sd over them."""
    fig = go.Figure()
    for i, curve in enumerate(curves):
        tone = CLASSES[i % len(CLASSES)]
        if curve.baseline is not None:
            fig.add_hline(
                y=curve.baseline,
                line={"color": tone if len(curves) > 1 else FAINT, "dash": "dash", "width": 1},
            )
        several = len(curve.by_seed) > 1
        means = curve.means
        spread = [(x, m, s) for x, m, s in means if s is not None]
        if spread:
            xs = [100 * x for x, _, _ in spread]
            fig.add_scatter(
                x=[*xs, *xs[::-1]],
                y=[*(m + s for _, m, s in spread), *(m - s for _, m, s in reversed(spread))],
                fill="toself", fillcolor=tone, opacity=0.15, mode="none", hoverinfo="skip", showlegend=False,
                legendgroup=curve.name,
            )  # fmt: skip
        for seed, points in sorted(curve.by_seed.items()) if several else ():
            fig.add_scatter(
                x=[100 * x for x, _ in points], y=[y for _, y in points], mode="lines", opacity=0.4,
                line={"color": tone, "width": 1}, legendgroup=curve.name, showlegend=False,
                hovertemplate=f"seed {seed}: %{{x:.0f}} % pruned, %{{y:.4f}}<extra></extra>",
            )  # fmt: skip
        fig.add_scatter(
            x=[100 * x for x, _, _ in means], y=[m for _, m, _ in means], mode="lines+markers",
            name=escape(curve.name), legendgroup=curve.name, line={"color": tone, "width": 2}, marker={"size": 6},
            hovertemplate="%{x:.0f} % pruned: %{y:.4f}<extra></extra>",
        )  # fmt: skip
    fig.update_xaxes(title="heads pruned, %", range=[-2, 102], gridcolor=GRID, zeroline=False)
    fig.update_yaxes(title=curves[0].metric if curves else "", gridcolor=GRID, zeroline=False)
    fig.update_layout(
        height=height,
        margin={"l": 60, "r": 16, "t": 16, "b": 48},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        showlegend=len(curves) > 1,
        legend={"orientation": "h", "y": -0.25},
    )
    return fig
