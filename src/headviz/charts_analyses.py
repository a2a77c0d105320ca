"""Analyses to plotly figures: one figure per result type. No streamlit.

Published figures are drawn hollow and named as such; ours are solid. Text and background are the page's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from .analyses.ablation import Ablation
from .analyses.all_but_one import AllButOne
from .analyses.common import SIGNIFICANT
from .analyses.correlation import CorrelationGrids
from .analyses.cross_dataset import CrossDataset
from .analyses.dynamics import Dynamics
from .analyses.harmful import Harmful
from .analyses.pruning_curve import PruningCurves
from .analyses.redundant import Redundant
from .analyses.scatter import Scatter
from .analyses.speed import Speed
from .heads import HeadId
from .palette import BETTER, CLASSES, NEUTRAL, WORSE, colour, plotly_scale, scale_for
from .reference import find

ROW = 24  # pixels per line of a horizontal chart
FAINT = "rgba(140,146,152,0.55)"


def figure(result: Any) -> go.Figure:
    """The figure of any analysis."""
    return DRAW[type(result)](result)


def write_html(fig: go.Figure, path: str | Path, title: str = "headviz") -> Path:
    """A page of its own, with plotly inside: it opens without a network and has no cloud button."""
    place = Path(path)
    fig.update_layout(title={"text": title, "font": {"size": 15}}, margin_t=64)
    fig.write_html(place, include_plotlyjs=True, config={"showSendToCloud": False, "displaylogo": False})
    return place


def ablation(result: Ablation) -> go.Figure:
    """The grid of costs, significant heads marked, beside the histogram against the baseline."""
    metric = result.subject.metric
    fig = make_subplots(1, 2, column_widths=[0.56, 0.44], horizontal_spacing=0.16)
    layers = len(result.values)
    _grid(fig, result.values, "cost", 1, 1, bar_x=0.47)
    marked = np.argwhere(result.significant())
    fig.add_scatter(
        x=marked[:, 1], y=marked[:, 0], mode="markers", name=f"significant (q < {SIGNIFICANT:g})",
        marker={"symbol": "circle-open", "size": 11, "color": NEUTRAL, "line": {"width": 2}}, hoverinfo="skip",
        row=1, col=1,
    )  # fmt: skip
    without = (result.baseline - result.values)[np.isfinite(result.values)]
    fig.add_histogram(
        x=without, marker={"color": BETTER}, name="heads", nbinsx=30, showlegend=False, row=1, col=2,
        hovertemplate="%{x}: %{y} heads<extra></extra>",
    )  # fmt: skip
    fig.add_vline(x=result.baseline, line={"dash": "dash", "color": WORSE, "width": 2}, row=1, col=2)
    fig.add_annotation(
        x=result.baseline, y=1.0, yref="y2 domain", xref="x2", yanchor="bottom", showarrow=False,
        text=f"baseline {result.baseline:.3f}", font={"size": 11},
    )  # fmt: skip
    fig.update_xaxes(title=f"{metric} without one head", row=1, col=2)
    fig.update_yaxes(title="heads", row=1, col=2)
    return _frame(fig, 110 + max(220, 26 * layers))


def all_but_one(result: AllButOne) -> go.Figure:
    """What each layer's best single head changes, with its interval; Michel et al.'s table beside it for MNLI."""
    rows = result.rows
    fig = go.Figure()
    fig.add_hline(y=0, line={"color": FAINT, "width": 1})
    fig.add_scatter(
        x=[r.layer for r in rows], y=[100 * r.delta for r in rows], mode="markers", name="ours",
        marker={"size": 10, "color": [_tone(r.interval_low, r.interval_high) for r in rows]},
        error_y=_whisker([100 * r.delta for r in rows], [100 * r.interval_low for r in rows],
                         [100 * r.interval_high for r in rows]),
        customdata=[[HeadId(r.layer, r.head).dotted, r.p_value, r.q_value] for r in rows],
        hovertemplate="only head %{customdata[0]} kept<br>%{y:+.2f} points<br>p %{customdata[1]:.3g}, "
                      "q %{customdata[2]:.3g}<extra></extra>",
    )  # fmt: skip
    if result.subject.task == "mnli" and len(result.deltas) == 12:
        name = "table3" if result.select == "same" else "table6"
        fig.add_scatter(
            x=list(range(12)), y=find("michel", name).numbers(name), mode="markers",
            name="published: Michel et al. 2019, BERT-base",
            marker={"symbol": "diamond-open", "size": 9, "color": NEUTRAL},
        )  # fmt: skip
    fig.update_xaxes(title="layer in which one head is kept", dtick=1)
    fig.update_yaxes(title=f"change of {result.subject.metric}, points")
    return _frame(fig, 360)


def cross_dataset(result: CrossDataset) -> go.Figure:
    """One point per head, cost on one data set against cost on the other."""
    a, b = result.first, result.second
    both = np.argwhere(np.isfinite(a.values) & np.isfinite(b.values))
    x = 100 * a.values[tuple(both.T)]
    y = 100 * b.values[tuple(both.T)]
    fig = go.Figure(
        go.Scatter(
            x=x, y=y, mode="markers", text=[str(HeadId(*map(int, h))) for h in both], name="heads", showlegend=False,
            marker={"size": 8, "color": BETTER, "opacity": 0.75},
            hovertemplate="%{text}<br>%{x:+.2f} points, %{y:+.2f} points<extra></extra>",
        )
    )  # fmt: skip
    ends = [float(min(x.min(), y.min())), float(max(x.max(), y.max()))] if len(both) else [0.0, 1.0]
    fig.add_scatter(
        x=ends, y=ends, mode="lines", line={"color": FAINT, "dash": "dot"}, hoverinfo="skip", showlegend=False
    )
    if np.isfinite(result.pearson):
        said = (
            f"r = {result.pearson:.2f} [{result.interval_low:.2f}, {result.interval_high:.2f}], "
            f"p {_p(result.p_value)}, {result.heads} heads"
        )
    else:
        said = "no correlation: one of the tables is constant"
    _note(fig, said)
    for axis, table in ((fig.update_xaxes, a), (fig.update_yaxes, b)):
        axis(title=f"cost on {table.subject.task} {table.subject.split}, points", zeroline=True)
    return _frame(fig, 400)


def pruning_curves(result: PruningCurves) -> go.Figure:
    """Metric against percentage pruned; bands are the paired interval of the change."""
    fig = go.Figure()
    fig.add_hline(y=result.baseline, line={"color": FAINT, "dash": "dash", "width": 1.2})
    for k, curve in enumerate(result.curves):
        tone = CLASSES[k % len(CLASSES)]
        x = [100 * p.sparsity for p in curve.points]
        low = [result.baseline + p.interval_low for p in curve.points]
        high = [result.baseline + p.interval_high for p in curve.points]
        fig.add_scatter(
            x=[*x, *x[::-1]], y=[*high, *low[::-1]], fill="toself", fillcolor=tone, opacity=0.15, mode="none",
            hoverinfo="skip", showlegend=False, legendgroup=curve.name,
        )  # fmt: skip
        fig.add_scatter(
            x=x, y=[p.value for p in curve.points], mode="lines+markers", name=curve.name, legendgroup=curve.name,
            line={"color": tone, "width": 2, "dash": "dot" if curve.name.startswith("oracle") else "solid"},
            marker={"size": 6}, customdata=[[p.delta, p.interval_low, p.interval_high] for p in curve.points],
            hovertemplate="%{x:.0f} % pruned: %{y:.3f}<br>change %{customdata[0]:+.3f} [%{customdata[1]:+.3f}, "
                          "%{customdata[2]:+.3f}]<extra>" + _plain(curve.name) + "</extra>",
        )  # fmt: skip
    fig.update_xaxes(title="heads pruned, %", range=[-2, 102])
    fig.update_yaxes(title=result.subject.metric)
    return _frame(fig, 400)


def speed(result: Speed) -> go.Figure:
    """Examples per second of both models, and their ratio below the arithmetic ceiling."""
    fig = make_subplots(1, 2, column_widths=[0.58, 0.42], horizontal_spacing=0.12)
    names = [f"batch {r.batch}" for r in result.rows]
    for name, rates, tone in (
        ("full model", [(r.full, r.full_sd) for r in result.rows], NEUTRAL),
        (f"{len(result.mask.off)} heads removed", [(r.pruned, r.pruned_sd) for r in result.rows], BETTER),
    ):
        fig.add_bar(
            x=names, y=[mean for mean, _ in rates], name=name, marker={"color": tone}, row=1, col=1,
            error_y={"type": "data", "array": [sd for _, sd in rates], "thickness": 1.2, "width": 4},
            hovertemplate="%{x}: %{y:.1f}/s<extra></extra>",
        )  # fmt: skip
    fig.add_scatter(
        x=names, y=[r.ratio for r in result.rows], mode="markers+text", showlegend=False, textposition="bottom center",
        text=[f"{r.ratio:.2f}×" for r in result.rows], marker={"size": 11, "color": BETTER}, row=1, col=2,
        hovertemplate="%{x}: %{y:.3f}×<extra></extra>",
    )  # fmt: skip
    fig.add_hline(y=result.ceiling, line={"dash": "dash", "color": WORSE}, row=1, col=2)
    fig.add_hline(y=1.0, line={"color": FAINT, "width": 1}, row=1, col=2)
    fig.add_annotation(
        x=0, xref="x2 domain", y=result.ceiling, yref="y2", yanchor="bottom", xanchor="left", showarrow=False,
        text=f"arithmetic ceiling {result.ceiling:.2f}×", font={"size": 11},
    )  # fmt: skip
    top = max([result.ceiling, *(r.ratio for r in result.rows)])
    fig.update_yaxes(title="examples per second", row=1, col=1)
    fig.update_yaxes(
        title="times as fast",
        range=[min(0.9, *(r.ratio - 0.1 for r in result.rows)), top * 1.06],
        row=1,
        col=2,
    )
    return _frame(fig, 360, barmode="group")


def dynamics(result: Dynamics) -> go.Figure:
    """One line per checkpoint, later ones darker: percentage pruned against percentage of the unpruned metric."""
    fig = go.Figure()
    scale = scale_for([0.0, 1.0], signed=False)
    last = max(1, len(result.checkpoints) - 1)
    for k, point in enumerate(result.checkpoints):
        tone = colour(scale, 0.3 + 0.7 * k / last)
        fig.add_scatter(
            x=[100 * s for s in point.sparsities], y=[100 * r for r in point.relative], mode="lines+markers",
            name=point.name, line={"color": tone, "width": 2}, marker={"size": 6},
            hovertemplate="%{x:.0f} % pruned: %{y:.1f} % of " + f"{point.baseline:.3f}"
                          + "<extra>" + _plain(point.name) + "</extra>",
        )  # fmt: skip
    fig.update_xaxes(title="heads pruned, %", range=[-2, 102])
    fig.update_yaxes(title="% of the unpruned metric")
    return _frame(fig, 400)


def correlation_grids(result: CorrelationGrids) -> go.Figure:
    """Pre-trained, fine-tuned and their difference on one scale."""
    grids = (
        ("pre-trained", result.pretrained),
        ("fine-tuned", result.fine_tuned),
        ("difference", result.difference),
    )
    fig = make_subplots(1, 3, subplot_titles=[name for name, _ in grids], horizontal_spacing=0.05)
    every = [float(v) for _, grid in grids for v in grid.ravel()]
    for k, (name, grid) in enumerate(grids):
        _grid(fig, grid, name, 1, k + 1, values=every, show_bar=k == 2)
        fig.update_yaxes(title="layer" if k == 0 else None, row=1, col=k + 1)
    return _frame(fig, 110 + max(200, 22 * len(result.fine_tuned)))


def bands(result: CorrelationGrids) -> go.Figure:
    """Share of heads per correlation band, and the published share of one of them."""
    names = [f"{b.low:g} to {b.high:g}" for b in result.bands]
    fig = go.Figure()
    for name, values, tone in (
        ("pre-trained", [b.pretrained for b in result.bands], NEUTRAL),
        ("fine-tuned", [b.fine_tuned for b in result.bands], BETTER),
    ):
        fig.add_bar(x=names, y=[100 * v for v in values], name=name, marker={"color": tone})
    there = [i for i, b in enumerate(result.bands) if (b.low, b.high) == (0.2, 0.4)]
    if there:
        table = find("bands", "SST-2")
        fig.add_scatter(
            x=[names[there[0]]] * len(table.rows), y=[table.numbers(row)[0] for row in table.rows], mode="markers",
            name="published: BERT-base on " + ", ".join(table.rows), text=list(table.rows),
            marker={"symbol": "diamond-open", "size": 9, "color": WORSE},
            hovertemplate="%{text}: %{y} %<extra></extra>",
        )  # fmt: skip
    fig.update_xaxes(title="correlation of attention and attribution")
    fig.update_yaxes(title="% of heads")
    return _frame(fig, 340, barmode="group")


def scatter(result: Scatter) -> go.Figure:
    """Every connection of one head: attention across, attribution up."""
    tokens = [_plain(token) for token in result.tokens]
    pairs = [f"{q} → {k}" for q in tokens for k in tokens]
    fig = go.Figure(
        go.Scattergl(
            x=result.attention.astype(np.float32), y=result.attribution.astype(np.float32), mode="markers", text=pairs,
            marker={"size": 6, "opacity": 0.55, "color": BETTER}, showlegend=False,
            hovertemplate="%{text}<br>attention %{x:.4f}<br>attribution %{y:.4g}<extra></extra>",
        )
    )  # fmt: skip
    value = "undefined, one of the two is constant" if np.isnan(result.value) else f"{result.value:+.3f}"
    _note(fig, f"{result.head}: {result.coefficient} {value}")
    fig.update_xaxes(title="attention")
    fig.update_yaxes(title=f"{result.method} for “{_plain(result.target)}”", zeroline=True)
    return _frame(fig, 400)


def harmful(result: Harmful) -> go.Figure:
    """What removing each harmful head gains."""
    rows = result.heads
    fig = go.Figure()
    fig.add_vline(x=0, line={"color": FAINT, "width": 1})
    fig.add_scatter(
        x=[100 * r.delta for r in rows], y=[str(r.head) for r in rows], mode="markers", showlegend=False,
        marker={"size": 10, "color": BETTER},
        error_x=_whisker([100 * r.delta for r in rows], [100 * r.interval_low for r in rows],
                         [100 * r.interval_high for r in rows]),
        customdata=[[r.p_value, r.q_value] for r in rows],
        hovertemplate="%{y}: %{x:+.2f} points<br>p %{customdata[0]:.3g}, q %{customdata[1]:.3g}<extra></extra>",
    )  # fmt: skip
    if not rows:
        _note(fig, f"no head does harm at q < {result.level:g} ({result.tested} tested)")
    fig.update_xaxes(title=f"gain in {result.subject.metric} without the head, points")
    fig.update_yaxes(autorange="reversed")
    return _frame(fig, 110 + ROW * max(3, len(rows)))


def redundant(result: Redundant, most: int = 20) -> go.Figure:
    """The costliest pairs: what the two heads cost apart, added up, and together."""
    rows = result.pairs[:most]
    names = [f"{r.first} + {r.second}" for r in rows]
    fig = go.Figure()
    fig.add_vline(x=0, line={"color": FAINT, "width": 1})
    fig.add_scatter(
        x=[100 * (r.cost_first + r.cost_second) for r in rows], y=names, mode="markers", name="one by one, added up",
        marker={"symbol": "line-ns-open", "size": 13, "line": {"width": 2.5}, "color": NEUTRAL},
        hovertemplate="%{y}: %{x:+.2f} points<extra></extra>",
    )  # fmt: skip
    fig.add_scatter(
        x=[100 * r.cost for r in rows], y=names, mode="markers", name="both off", marker={"size": 10, "color": WORSE},
        error_x=_whisker([100 * r.cost for r in rows], [100 * r.interval_low for r in rows],
                         [100 * r.interval_high for r in rows]),
        customdata=[[r.p_value, r.q_value] for r in rows],
        hovertemplate="%{y}: %{x:+.2f} points<br>p %{customdata[0]:.3g}, q %{customdata[1]:.3g}<extra></extra>",
    )  # fmt: skip
    if not rows:
        _note(fig, f"no redundant pair among the {result.evaluated} evaluated of {result.candidates}")
    fig.update_xaxes(title=f"cost in {result.subject.metric}, points")
    fig.update_yaxes(autorange="reversed")
    return _frame(fig, 120 + ROW * max(3, len(rows)))


DRAW: dict[type, Callable[[Any], go.Figure]] = {
    Ablation: ablation,
    AllButOne: all_but_one,
    CrossDataset: cross_dataset,
    PruningCurves: pruning_curves,
    Speed: speed,
    Dynamics: dynamics,
    CorrelationGrids: correlation_grids,
    Scatter: scatter,
    Harmful: harmful,
    Redundant: redundant,
}


def _grid(
    fig: go.Figure,
    grid: np.ndarray,
    name: str,
    row: int,
    col: int,
    values: Sequence[float] | None = None,
    show_bar: bool = True,
    bar_x: float = 1.01,
) -> None:
    """Layers down, heads across, blue above zero and orange below; not measured stays empty."""
    scale = scale_for(list(values) if values is not None else [float(v) for v in grid.ravel()], signed=True)
    stops = plotly_scale(scale.light)
    stops[len(stops) // 2][1] = "rgba(140,146,152,0.12)"  # the page's own shade, light or dark
    fig.add_heatmap(
        z=grid, zmin=scale.lo, zmax=scale.hi, colorscale=stops, xgap=1.5, ygap=1.5, showscale=show_bar,
        colorbar={"thickness": 9, "len": 0.9, "x": bar_x, "tickformat": ".2g"},
        hovertemplate="L%{y}·H%{x}<br>" + name + " %{z:+.4f}<extra></extra>", row=row, col=col,
    )  # fmt: skip
    fig.update_yaxes(
        autorange="reversed", title="layer", dtick=1, showgrid=False, zeroline=False, row=row, col=col
    )
    fig.update_xaxes(title="head", dtick=1, showgrid=False, zeroline=False, row=row, col=col)


def _whisker(values: Sequence[float], low: Sequence[float], high: Sequence[float]) -> dict[str, Any]:
    return {
        "type": "data", "symmetric": False, "thickness": 1.2, "width": 3, "color": NEUTRAL,
        "array": [h - v for v, h in zip(values, high, strict=True)],
        "arrayminus": [v - lo for v, lo in zip(values, low, strict=True)],
    }  # fmt: skip


def _tone(low: float, high: float) -> str:
    if high < 0:
        return WORSE
    return BETTER if low > 0 else NEUTRAL


def _note(fig: go.Figure, text: str) -> None:
    fig.add_annotation(
        x=0.0, y=1.0, xref="paper", yref="paper", xanchor="left", yanchor="bottom", showarrow=False,
        text=_plain(text), font={"size": 12},
    )  # fmt: skip


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"


def _plain(text: str) -> str:
    """A text from data, so that plotly reads no markup and no template in it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("%{", "% {")


def _frame(fig: go.Figure, height: int, **more: Any) -> go.Figure:
    fig.update_layout(
        height=height,
        margin={"l": 8, "r": 12, "t": 34, "b": 8},
        font={"size": 12},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.04, "x": 0, "title": None},
        dragmode=False,
        hoverlabel={"namelength": -1},
        **more,
    )
    fig.update_xaxes(automargin=True, fixedrange=True)
    fig.update_yaxes(automargin=True, fixedrange=True)
    return fig
