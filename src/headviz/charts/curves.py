"""Figures over layers, sparsities, batch sizes and checkpoints."""

from __future__ import annotations

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from ..analyses.all_but_one import AllButOne
from ..analyses.dynamics import Dynamics
from ..analyses.pruning_curve import PruningCurves
from ..analyses.speed import Speed
from ..heads import HeadId
from ..reference import find
from .palette import BETTER, CLASSES, NEUTRAL, WORSE
from .parts import FAINT, frame, plain, tone, whisker


def all_but_one(result: AllButOne) -> go.Figure:
    """What each layer's best single head changes, with its interval; Michel et al.'s table beside it for MNLI."""
    rows, unit = result.rows, result.subject.scale
    fig = go.Figure()
    fig.add_hline(y=0, line={"color": FAINT, "width": 1})
    fig.add_scatter(
        x=[r.layer for r in rows], y=[unit * r.delta for r in rows], mode="markers", name="ours",
        marker={"size": 10, "color": [tone(r.interval_low, r.interval_high) for r in rows]},
        error_y=whisker([unit * r.delta for r in rows], [unit * r.interval_low for r in rows],
                         [unit * r.interval_high for r in rows]),
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
    named = result.subject.rows
    ticks = {"tickvals": list(range(len(named))), "ticktext": list(named)} if named else {"dtick": 1}
    fig.update_xaxes(title="layer in which one head is kept", **ticks)
    fig.update_yaxes(title=f"change of {result.subject.metric}, points")
    return frame(fig, 360)


def pruning_curves(result: PruningCurves) -> go.Figure:
    """Metric against percentage pruned; bands are the paired interval of the change."""
    fig = go.Figure()
    unit = result.subject.scale
    fig.add_hline(y=result.baseline, line={"color": FAINT, "dash": "dash", "width": 1.2})
    for k, curve in enumerate(result.curves):
        shade = CLASSES[k % len(CLASSES)]
        x = [100 * p.sparsity for p in curve.points]
        low = [result.baseline + p.interval_low for p in curve.points]
        high = [result.baseline + p.interval_high for p in curve.points]
        fig.add_scatter(
            x=[*x, *x[::-1]], y=[*high, *low[::-1]], fill="toself", fillcolor=shade, opacity=0.15, mode="none",
            hoverinfo="skip", showlegend=False, legendgroup=curve.name,
        )  # fmt: skip
        fig.add_scatter(
            x=x, y=[p.value for p in curve.points], mode="lines+markers", name=curve.name, legendgroup=curve.name,
            line={"color": shade, "width": 2, "dash": "dot" if curve.name.startswith("oracle") else again(k)},
            marker={"size": 6},
            customdata=[[unit * v for v in (p.delta, p.interval_low, p.interval_high)] for p in curve.points],
            hovertemplate="%{x:.0f} % pruned: %{y:.4g}<br>change %{customdata[0]:+.2f} points "
                          "[%{customdata[1]:+.2f}, %{customdata[2]:+.2f}]<extra>" + plain(curve.name) + "</extra>",
        )  # fmt: skip
    fig.update_xaxes(title="heads pruned, %", range=[-2, 102])
    fig.update_yaxes(title=result.subject.metric)
    return frame(fig, 400)


def again(place: int) -> str:
    """Colours that come a second time are told apart by their dashes."""
    return ("solid", "dash", "dashdot")[place // len(CLASSES) % 3]


def speed(result: Speed) -> go.Figure:
    """Examples per second of both models, and their ratio below the arithmetic ceiling."""
    fig = make_subplots(1, 2, column_widths=[0.58, 0.42], horizontal_spacing=0.12)
    names = [f"batch {r.batch}" for r in result.rows]
    for name, rates, shade in (
        ("full model", [(r.full, r.full_sd) for r in result.rows], NEUTRAL),
        (f"{len(result.mask.off)} heads removed", [(r.pruned, r.pruned_sd) for r in result.rows], BETTER),
    ):
        fig.add_bar(
            x=names, y=[mean for mean, _ in rates], name=name, marker={"color": shade}, row=1, col=1,
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
    return frame(fig, 360, barmode="group")


def dynamics(result: Dynamics) -> go.Figure:
    """One line per checkpoint, later ones stronger: percentage pruned against percentage of the unpruned metric."""
    fig = go.Figure()
    last = max(1, len(result.checkpoints) - 1)
    for k, point in enumerate(result.checkpoints):
        part = k / last  # more ink and more width: both read on a light and on a dark page
        fig.add_scatter(
            x=[100 * s for s in point.sparsities], y=[100 * r for r in point.relative], mode="lines+markers",
            name=point.name, line={"color": f"rgba(28,140,163,{0.3 + 0.7 * part:.2f})", "width": 1.5 + 1.5 * part},
            marker={"size": 5 + 2 * part},
            hovertemplate="%{x:.0f} % pruned: %{y:.1f} % of " + f"{point.baseline:.3f}"
                          + "<extra>" + plain(point.name) + "</extra>",
        )  # fmt: skip
    fig.update_xaxes(title="heads pruned, %", range=[-2, 102])
    fig.update_yaxes(title="% of the unpruned metric")
    return frame(fig, 400, showlegend=True)
