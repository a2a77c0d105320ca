"""Figures in which a point, a cell or a line is one head."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from ..analyses.ablation import Ablation
from ..analyses.by_slice import BySlice
from ..analyses.common import SIGNIFICANT
from ..analyses.correlation import CorrelationGrids
from ..analyses.cross_dataset import CrossDataset
from ..analyses.harmful import Harmful
from ..analyses.redundant import Redundant
from ..analyses.scatter import Scatter
from ..heads import HeadId, head_name
from ..reference import find
from .palette import BETTER, NEUTRAL, WORSE, either_scale, scale_for
from .parts import FAINT, ROW, frame, grid, note, p_text, plain, whisker


def ablation(result: Ablation) -> go.Figure:
    """The grid of costs, significant heads marked, beside the histogram against the baseline."""
    metric = result.subject.metric
    fig = make_subplots(1, 2, column_widths=[0.56, 0.44], horizontal_spacing=0.24)
    layers = len(result.values)
    grid(fig, result.subject.scale * result.values, "cost, points", 1, 1, bar_x=0.435)
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
    return frame(fig, 110 + max(220, 26 * layers))


def by_slice(result: BySlice) -> go.Figure:
    """Kinds of examples down, the heads that they hang on across; a block on the diagonal is a specialist."""
    heads = result.telling()
    layer, head = np.array(heads, dtype=int).reshape(-1, 2).T
    unit = result.subject.scale
    values, low, high = (
        unit * t[:, layer, head] for t in (result.values, result.interval_low, result.interval_high)
    )
    marked = result.significant()[:, layer, head]
    columns = [plain(head_name(h, result.subject.rows)) for h in heads]
    rows = [plain(k.name) for k in result.slices]
    ends = [
        [f"[{a:+.1f}, {b:+.1f}]" for a, b in zip(*row, strict=True)] for row in zip(low, high, strict=True)
    ]
    scale = scale_for([float(v) for v in values.ravel()], signed=True)
    fig = go.Figure(
        go.Heatmap(
            z=values, x=columns, y=rows, customdata=ends, zmin=scale.lo, zmax=scale.hi, colorscale=either_scale(True),
            xgap=1.5, ygap=1.5, colorbar={"thickness": 9, "len": 0.9},
            hovertemplate="%{y}<br>without %{x}: cost %{z:+.2f} points %{customdata}<extra></extra>",
        )
    )  # fmt: skip
    if marked.any():
        down, across = np.nonzero(marked)
        strong = np.abs(values[down, across]) > 0.4 * scale.hi  # where grey would not be seen
        fig.add_scatter(
            x=[columns[j] for j in across], y=[rows[i] for i in down], mode="markers",
            name=f"significant (q < {SIGNIFICANT:g})", showlegend=False,
            marker={"symbol": "circle-open", "size": 9, "color": ["white" if s else NEUTRAL for s in strong],
                    "line": {"width": 1.5}}, hoverinfo="skip",
        )  # fmt: skip
    fig.update_yaxes(autorange="reversed", showgrid=False, zeroline=False, type="category", dtick=1)
    fig.update_xaxes(title="head", showgrid=False, zeroline=False, type="category", dtick=1, tickangle=-60)
    return frame(fig, 130 + ROW * max(3, len(rows)))


def cross_dataset(result: CrossDataset) -> go.Figure:
    """One point per head, cost on one data set against cost on the other."""
    a, b = result.first, result.second
    both = np.argwhere(np.isfinite(a.values) & np.isfinite(b.values))
    x = a.subject.scale * a.values[tuple(both.T)]
    y = b.subject.scale * b.values[tuple(both.T)]
    fig = go.Figure(
        go.Scatter(
            x=x, y=y, mode="markers", showlegend=False, name="heads",
            text=[head_name(HeadId(*map(int, h)), a.subject.rows) for h in both],
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
            f"p {p_text(result.p_value)}, {result.heads} heads"
        )
    else:
        said = "no correlation: one of the tables is constant"
    note(fig, said)
    for axis, table in ((fig.update_xaxes, a), (fig.update_yaxes, b)):
        axis(title=f"cost on {table.subject.task} {table.subject.split}, points", zeroline=True)
    return frame(fig, 400)


def correlation_grids(result: CorrelationGrids) -> go.Figure:
    """Pre-trained, fine-tuned and their difference on one scale."""
    grids = (
        ("pre-trained", result.pretrained),
        ("fine-tuned", result.fine_tuned),
        ("difference", result.difference),
    )
    fig = make_subplots(1, 3, subplot_titles=[name for name, _ in grids], horizontal_spacing=0.05)
    every = [float(v) for _, table in grids for v in table.ravel()]
    for k, (name, table) in enumerate(grids):
        grid(fig, table, name, 1, k + 1, values=every, show_bar=k == 2)
        fig.update_yaxes(title="layer" if k == 0 else None, row=1, col=k + 1)
    return frame(fig, 110 + max(200, 22 * len(result.fine_tuned)))


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
    return frame(fig, 340, barmode="group")


def scatter(result: Scatter) -> go.Figure:
    """Every connection of one head: attention across, attribution up."""
    tokens = [plain(token) for token in result.tokens]
    pairs = [f"{q} → {k}" for q in tokens for k in tokens]
    fig = go.Figure(
        go.Scattergl(
            x=result.attention.astype(np.float32), y=result.attribution.astype(np.float32), mode="markers", text=pairs,
            marker={"size": 6, "opacity": 0.55, "color": BETTER}, showlegend=False,
            hovertemplate="%{text}<br>attention %{x:.4f}<br>attribution %{y:.4g}<extra></extra>",
        )
    )  # fmt: skip
    value = "undefined, one of the two is constant" if np.isnan(result.value) else f"{result.value:+.3f}"
    note(fig, f"{result.head}: {result.coefficient} {value}")
    fig.update_xaxes(title="attention")
    fig.update_yaxes(title=f"{result.method} for “{plain(result.target)}”", zeroline=True)
    return frame(fig, 400)


def harmful(result: Harmful) -> go.Figure:
    """What removing each harmful head gains."""
    rows, unit = result.heads, result.subject.scale
    fig = go.Figure()
    fig.add_vline(x=0, line={"color": FAINT, "width": 1})
    fig.add_scatter(
        x=[unit * r.delta for r in rows], y=[head_name(r.head, result.subject.rows) for r in rows], mode="markers",
        showlegend=False,
        marker={"size": 10, "color": BETTER},
        error_x=whisker([unit * r.delta for r in rows], [unit * r.interval_low for r in rows],
                         [unit * r.interval_high for r in rows]),
        customdata=[[r.p_value, r.q_value] for r in rows],
        hovertemplate="%{y}: %{x:+.2f} points<br>p %{customdata[0]:.3g}, q %{customdata[1]:.3g}<extra></extra>",
    )  # fmt: skip
    if not rows:
        note(fig, f"no head does harm at q < {result.level:g} ({result.tested} tested)")
    fig.update_xaxes(title=f"gain in {result.subject.metric} without the head, points")
    fig.update_yaxes(autorange="reversed")
    return frame(fig, 110 + ROW * max(3, len(rows)))


def redundant(result: Redundant, most: int = 20) -> go.Figure:
    """The costliest pairs: what the two heads cost apart, added up, and together."""
    rows, unit = result.pairs[:most], result.subject.scale
    names = [f"{r.first} + {r.second}" for r in rows]
    fig = go.Figure()
    fig.add_vline(x=0, line={"color": FAINT, "width": 1})
    fig.add_scatter(
        x=[unit * (r.cost_first + r.cost_second) for r in rows], y=names, mode="markers", name="one by one, added up",
        marker={"symbol": "line-ns-open", "size": 13, "line": {"width": 2.5}, "color": NEUTRAL},
        hovertemplate="%{y}: %{x:+.2f} points<extra></extra>",
    )  # fmt: skip
    fig.add_scatter(
        x=[unit * r.cost for r in rows], y=names, mode="markers", name="both off", marker={"size": 10, "color": WORSE},
        error_x=whisker([unit * r.cost for r in rows], [unit * r.interval_low for r in rows],
                         [unit * r.interval_high for r in rows]),
        customdata=[[r.p_value, r.q_value] for r in rows],
        hovertemplate="%{y}: %{x:+.2f} points<br>p %{customdata[0]:.3g}, q %{customdata[1]:.3g}<extra></extra>",
    )  # fmt: skip
    if not rows:
        note(fig, f"no redundant pair among the {result.evaluated} evaluated of {result.candidates}")
    fig.update_xaxes(title=f"cost in {result.subject.metric}, points")
    fig.update_yaxes(autorange="reversed")
    return frame(fig, 120 + ROW * max(3, len(rows)))
