"""Runs to plotly figures: curves of several runs, a head's maps over steps, a learning curve. No streamlit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from ..runs import baselines
from .palette import BETTER, CLASSES, NEUTRAL, either_scale, scale_for

if TYPE_CHECKING:
    from ..runs.stepmaps import StepMaps

FAINT = "rgba(140,146,152,0.75)"
GRID = "rgba(140,146,152,0.22)"
# on a transparent paper plotly would guess a dark box behind its buttons
MODEBAR = {
    "bgcolor": "rgba(0,0,0,0)",
    "color": "rgba(140,146,152,0.75)",
    "activecolor": "rgba(140,146,152,1)",
}


@dataclass(frozen=True)
class Curve:
    """One run's metric against sparsity: a line per seed where there are several, and their mean."""

    name: str
    metric: str
    baseline: float | None  # of the full models that the steps are compared with, mean over seeds
    by_seed: Mapping[
        int, Sequence[tuple[float, float]]
    ]  # seed -> (sparsity, value), as far as they are known
    against: str = baselines.GIVEN  # which full model that is
    given: float | None = None  # θ*, where the steps are compared with another model

    @property
    def means(self) -> list[tuple[float, float, float | None]]:
        """(sparsity, mean, sd over seeds); sd is None with fewer than two."""
        found: dict[float, list[float]] = {}
        for points in self.by_seed.values():
            for x, y in points:
                found.setdefault(round(x, 9), []).append(y)
        return [(x, mean(v), stdev(v) if len(v) > 1 else None) for x, v in sorted(found.items())]


def curve_of(run: Mapping[str, Any], metric: str | None = None, name: str | None = None) -> Curve | None:
    """The curve of a run as JSON (``RunView.to_json``); None before there is anything to draw.

    It begins at 0 % with the full model that the steps are compared with, each seed with its own where it has one.
    """
    points = [*run["baseline"], *run["steps"]]
    if not points or any(s.get("sparsity") is None for s in points):
        return None
    metric = metric or next(iter(points[0]["metrics"]), None)
    if metric is None:
        return None
    which = baselines.against(run.get("spec") or {}, run["baseline"])
    by_seed: dict[int, list[tuple[float, float]]] = {}
    for step in run["steps"]:
        seed = step.get("seed")
        own = by_seed.setdefault(int(seed or 0), [])
        full = baselines.full_of(run["baseline"], seed, which)
        for s in (full, step) if not own else (step,):
            if s is not None and (value := s["metrics"].get(metric)) is not None:
                own.append((s["sparsity"], value))
    full_mean = baselines.summary(run["baseline"], which, metric)
    given = baselines.summary(run["baseline"], baselines.GIVEN, metric)
    return Curve(
        name or f"{run['title']} ({run['id']})", metric, full_mean and full_mean[0],
        {seed: own for seed, own in by_seed.items() if own}, which,
        given[0] if given and which != baselines.GIVEN else None,
    )  # fmt: skip


def chance(metric: str, labels: Sequence[str]) -> float | None:
    """What drawing answers evenly would reach; None where that depends on more than the number of classes."""
    if metric == "accuracy" and len(labels) > 1:
        return 1 / len(labels)
    return 0.0 if metric in ("matthews", "pearson", "spearman") else None


def run_curves(curves: Sequence[Curve], height: int = 400, by_chance: float | None = None) -> go.Figure:
    """Metric against percentage pruned, one colour per run; thin lines are seeds, bands one sd over them.

    Dashed: the full model that a run's steps are compared with; dotted: θ* where that is another one, and chance.
    """
    fig = go.Figure()
    several_runs = len(curves) > 1
    for i, curve in enumerate(curves):
        tone = CLASSES[i % len(CLASSES)]
        if curve.baseline is not None:
            called = "" if several_runs else baselines.NAMES[curve.against]
            if called and len(curve.by_seed) > 1 and curve.against != baselines.GIVEN:
                called += " (mean over seeds)"
            tint = tone if several_runs else FAINT
            _level(fig, curve.baseline, tint, "dash", called, below=bool(curve.given))
        several = len(curve.by_seed) > 1
        means = curve.means
        band = [(x, m, s) for x, m, s in means if s is not None]
        if band:
            xs = [100 * x for x, _, _ in band]
            fig.add_scatter(
                x=[*xs, *xs[::-1]],
                y=[*(m + s for _, m, s in band), *(m - s for _, m, s in reversed(band))],
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
    # runs of one model share its line; with several models no one is "the" model as given
    given = {round(c.given, 9) for c in curves if c.given is not None}
    if len(given) == 1:
        _level(fig, given.pop(), FAINT, "dot", baselines.NAMES[baselines.GIVEN])
    if by_chance is not None and curves:
        _level(fig, by_chance, FAINT, "dot", "chance", side="left")  # where curves are highest
    fig.update_xaxes(title="heads pruned, %", range=[-2, 102], gridcolor=GRID, zeroline=False)
    fig.update_yaxes(title=curves[0].metric if curves else "", gridcolor=GRID, zeroline=False)
    fig.update_layout(
        height=height,
        margin={"l": 60, "r": 16, "t": 32, "b": 48},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        modebar=MODEBAR,
        showlegend=several_runs,
        legend={"orientation": "h", "y": -0.25},
    )
    return fig


def _level(
    fig: go.Figure, value: float, colour: str, dash: str, name: str, below: bool = False, side: str = "right"
) -> None:
    """A line across, named at one end."""
    place = f"{'bottom' if below else 'top'} {side}"
    more = {
        "annotation_text": name,
        "annotation_position": place,
        "annotation_font": {"size": 11, "color": NEUTRAL},
    }
    fig.add_hline(y=value, line={"color": colour, "dash": dash, "width": 1}, **(more if name else {}))  # fmt: skip


def step_maps(found: StepMaps, name: str, columns: int = 5) -> go.Figure:
    """A head's ``attention`` or ``attribution`` after every step as small maps on one colour scale.

    A step after which the head, or the step's model, is gone keeps its place and says so.
    """
    signed = name == "attribution"
    maps = [getattr(s, name) for s in found.steps]
    scale = scale_for([float(v) for m in maps if m is not None for v in m.ravel()], signed=signed)
    rows = -(-len(maps) // columns)
    titles = ["all heads" if s.step == 0 else f"{100 * s.sparsity:.0f} % removed" for s in found.steps]
    fig = make_subplots(
        rows, columns, subplot_titles=titles, horizontal_spacing=0.014, vertical_spacing=0.2 / max(2, rows)
    )
    tokens = [escape(t).replace("%{", "% {") for t in found.tokens]
    pairs = [[f"{q} → {k}" for k in tokens] for q in tokens]
    end = len(tokens) - 0.5
    fig.update_xaxes(showticklabels=False, showgrid=False, zeroline=False, fixedrange=True, range=[-0.5, end])
    fig.update_yaxes(showticklabels=False, showgrid=False, zeroline=False, fixedrange=True, range=[end, -0.5])
    for i, (step, values) in enumerate(zip(found.steps, maps, strict=True)):
        row, column = i // columns + 1, i % columns + 1
        if values is not None:
            fig.add_heatmap(
                z=np.asarray(values, np.float32), zmin=-scale.hi if signed else 0, zmax=scale.hi,
                colorscale=either_scale(signed), text=pairs, showscale=i == 0,
                colorbar={"thickness": 9, "len": 0.9, "tickformat": ".2g", "x": 1.01},
                hovertemplate="%{text}<br>" + name + " %{z:.4f}<extra>" + titles[i] + "</extra>", row=row, col=column,
            )  # fmt: skip
            continue
        middle = [end / 2]
        fig.add_scatter(
            x=middle, y=middle, mode="text", text=["removed" if step.state == "removed" else "model<br>not kept"],
            hoverinfo="skip", showlegend=False, textfont={"size": 12, "color": NEUTRAL}, row=row, col=column,
        )  # fmt: skip
        fig.update_xaxes(showline=True, linecolor=GRID, mirror=True, row=row, col=column)
        fig.update_yaxes(showline=True, linecolor=GRID, mirror=True, row=row, col=column)
    fig.update_layout(
        height=36 + 175 * rows, margin={"l": 8, "r": 12, "t": 28, "b": 8}, dragmode=False,
        paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)", hoverlabel={"namelength": -1}, modebar=MODEBAR,
    )  # fmt: skip
    fig.update_annotations(font_size=12)
    return fig


def learning_curve(points: Sequence[Mapping[str, Any]], metric: str, height: int = 320) -> go.Figure:
    """A training's loss by update (left) and a dev metric after each epoch (right)."""
    fig = make_subplots(specs=[[{"secondary_y": True}]])
    losses = [(p["step"], p["loss"]) for p in points if p.get("loss") is not None]
    measured = [(p["step"], (p.get("metrics") or {}).get(metric)) for p in points]
    measured = [(x, y) for x, y in measured if y is not None]
    if losses:
        fig.add_scatter(
            x=[x for x, _ in losses], y=[y for _, y in losses], mode="lines", name="training loss",
            line={"color": NEUTRAL, "width": 1.6}, hovertemplate="update %{x}: loss %{y:.4f}<extra></extra>",
        )  # fmt: skip
    if measured:
        fig.add_scatter(
            x=[x for x, _ in measured], y=[y for _, y in measured], mode="lines+markers", name=f"dev {escape(metric)}",
            line={"color": BETTER, "width": 2.2}, marker={"size": 7}, secondary_y=True,
            hovertemplate="update %{x}: " + escape(metric) + " %{y:.4f}<extra></extra>",
        )  # fmt: skip
    fig.update_xaxes(title="updates", gridcolor=GRID, zeroline=False, fixedrange=True)
    fig.update_yaxes(title="loss", gridcolor=GRID, rangemode="tozero", fixedrange=True, secondary_y=False)
    fig.update_yaxes(title=escape(metric), showgrid=False, fixedrange=True, secondary_y=True)
    fig.update_layout(
        height=height, margin={"l": 8, "r": 8, "t": 8, "b": 8}, dragmode=False,
        paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)", modebar=MODEBAR,
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0},
    )  # fmt: skip
    return fig
