"""Data to plotly figures. No streamlit: the report and notebooks draw with the same functions.

Backgrounds and text colours are left to the page's theme; colours with a meaning come from ``palette``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from .palette import BETTER, CLASSES, NEUTRAL, WORSE, either_scale, scale_for

if TYPE_CHECKING:
    from .comparison import Delta
    from .connections import Arc

FONT = 12
ROW = 26  # pixels per line of a horizontal chart


def safe(text: str) -> str:
    """A text from data, so that plotly reads no markup and no template in it."""
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("%{", "% {")


def _layout(fig: go.Figure, height: int, **more: Any) -> go.Figure:
    fig.update_layout(
        height=height,
        margin={"l": 8, "r": 12, "t": 28 if more.get("title") else 8, "b": 8},
        font={"size": FONT},
        hoverlabel={"namelength": -1},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0, "title": None},
        dragmode=False,
        **more,
    )
    fig.update_xaxes(automargin=True, fixedrange=True)
    fig.update_yaxes(automargin=True, fixedrange=True)
    return fig


def slices(deltas: Sequence[Delta], metric: str) -> go.Figure:
    """One line per slice: the full model, the masked one, the interval of the change as a whisker."""
    order = sorted(deltas, key=lambda d: (d.delta, d.name), reverse=True)
    names = [safe(d.name) for d in order]
    fig = go.Figure()
    # the way from one value to the other; two traces with gaps, because one shape per slice takes five times as long
    for colour, part in (
        (WORSE, [d for d in order if d.delta < 0]),
        (BETTER, [d for d in order if d.delta > 0]),
    ):
        fig.add_scatter(
            x=[v for d in part for v in (d.full, d.masked, None)], mode="lines", hoverinfo="skip",
            y=[v for d in part for v in (safe(d.name), safe(d.name), None)], showlegend=False, opacity=0.28,
            line={"color": colour, "width": 5},
        )  # fmt: skip
    fig.add_scatter(
        x=[d.full for d in order], y=names, mode="markers", name="full model",
        marker={"symbol": "line-ns-open", "size": 13, "line": {"width": 2.5}, "color": NEUTRAL},
        hovertemplate="%{y}<br>full model %{x:.3f}<extra></extra>",
    )  # fmt: skip
    fig.add_scatter(
        x=[d.masked for d in order], y=names, mode="markers", name="masked",
        marker={"size": 10, "color": [_direction(d) for d in order]},
        error_x={
            "type": "data", "symmetric": False, "thickness": 1.2, "width": 3, "color": NEUTRAL,
            "array": [d.interval_high - d.delta for d in order],
            "arrayminus": [d.delta - d.interval_low for d in order],
        },
        customdata=[[d.scale * v for v in (d.delta, d.interval_low, d.interval_high)] + [d.n] for d in order],
        hovertemplate="%{y}<br>masked %{x:.3f}<br>change %{customdata[0]:+.1f} points "
        "[%{customdata[1]:+.1f}, %{customdata[2]:+.1f}]<br>%{customdata[3]} examples<extra></extra>",
    )  # fmt: skip
    fig.update_xaxes(title=metric, range=[-0.02, 1.02] if _shares(order) else None)
    fig.update_yaxes(categoryorder="array", categoryarray=names)
    return _layout(fig, 76 + ROW * max(2, len(order)))


def _direction(d: Delta) -> str:
    if d.interval_high < 0:
        return WORSE
    return BETTER if d.interval_low > 0 else NEUTRAL


def _shares(deltas: Sequence[Delta]) -> bool:
    return all(0 <= v <= 1 for d in deltas for v in (d.full, d.masked) if v == v)


def confusion(full: np.ndarray, masked: np.ndarray, labels: Sequence[str]) -> go.Figure:
    """The masked model's confusion matrix, coloured by its difference from the full model's.

    Blue is better everywhere: more right answers on the diagonal, fewer wrong ones beside it.
    """
    change = masked.astype(int) - full.astype(int)
    better = change * np.where(np.eye(*change.shape) == 1, 1, -1)
    scale = scale_for([float(v) for v in change.ravel()] or [0.0], signed=True)
    names = [safe(x) for x in labels]
    fig = go.Figure(
        go.Heatmap(
            z=better, x=names, y=names, zmin=scale.lo, zmax=scale.hi, xgap=2, ygap=2, showscale=False,
            colorscale=[[0, "rgba(214,110,30,0.6)"], [0.5, "rgba(140,146,152,0.12)"], [1, "rgba(60,130,205,0.6)"]],
            text=[[_plus(c) for c in row] for row in change], customdata=np.stack([masked, full], axis=-1),
            hovertemplate="gold %{y}, predicted %{x}<br>masked %{customdata[0]} (%{text})"
            "<br>full model %{customdata[1]}<extra></extra>",
        )
    )  # fmt: skip
    # numbers as a trace of their own: they take the page's text colour, light or dark, where a heatmap's cannot
    cells = [(gold, said) for gold in range(len(names)) for said in range(len(names))]
    fig.add_scatter(
        x=[names[said] for _, said in cells], y=[names[gold] for gold, _ in cells], mode="text", hoverinfo="skip",
        text=[f"{int(masked[c])}<br><span style='font-size:11px'>{_plus(change[c])}</span>" for c in cells],
        textfont={"size": 15}, showlegend=False,
    )  # fmt: skip
    fig.update_xaxes(showgrid=False)
    fig.update_yaxes(showgrid=False)
    fig.update_yaxes(autorange="reversed", title="gold")
    fig.update_xaxes(title="predicted", side="bottom")
    return _layout(fig, 90 + 52 * len(labels))


def _plus(value: int) -> str:
    return "±0" if value == 0 else f"{value:+d}".replace("-", "−")


def probabilities(columns: Sequence[tuple[str, Sequence[float]]], labels: Sequence[str]) -> go.Figure:
    """Class probabilities of several models on one text, one group of bars per class."""
    fig = go.Figure()
    for k, (name, values) in enumerate(columns):
        name = safe(name)
        fig.add_bar(
            y=[safe(x) for x in labels], x=list(values), name=name,
            orientation="h", marker={"color": CLASSES[k % len(CLASSES)]},
            text=[f"{v:.2f}" for v in values], textposition="outside", textfont={"size": 11}, cliponaxis=False,
            hovertemplate="%{y} %{x:.3f}<extra>" + name[:40] + "</extra>",
        )  # fmt: skip
    fig.update_xaxes(range=[0, 1.08], tickvals=[0, 0.25, 0.5, 0.75, 1], title="probability")
    fig.update_yaxes(autorange="reversed")
    fig = _layout(fig, 100 + len(labels) * (14 + 18 * len(columns)), barmode="group", bargap=0.25)
    return fig.update_layout(margin_t=54)  # the legend's line, and above it one for the camera


def histogram(
    groups: Sequence[tuple[str, Sequence[float]]], axis: str, band: tuple[float, float] | None = None
) -> go.Figure:
    """Overlaid histograms; ``band`` is marked, for example the lengths that a filter keeps."""
    fig = go.Figure()
    for k, (name, values) in enumerate(groups):
        fig.add_histogram(
            x=list(values), name=name, opacity=0.62, histnorm="percent", marker={"color": CLASSES[k % len(CLASSES)]},
            hovertemplate="%{x}: %{y:.1f} %<extra>" + name[:40] + "</extra>",
        )  # fmt: skip
    if band is not None:
        fig.add_vrect(x0=band[0], x1=band[1], fillcolor=NEUTRAL, opacity=0.18, line_width=0, layer="below")
    fig.update_xaxes(title=axis)
    fig.update_yaxes(title="% of examples")
    return _layout(fig, 260, barmode="overlay")


def matrix(
    values: np.ndarray,
    queries: Sequence[str],
    keys: Sequence[str],
    name: str,
    signed: bool,
    end: float | None = None,
) -> go.Figure:
    """One map, queries down and keys across. ``end`` fixes the colour scale, to compare maps."""
    values = np.asarray(values, dtype=np.float32)
    queries, keys = [safe(q) for q in queries], [safe(k) for k in keys]
    scale = scale_for([float(v) for v in values.ravel()], signed=signed)
    high = end or scale.hi
    fig = go.Figure(
        go.Heatmap(
            z=values, zmin=-high if signed else 0, zmax=high, colorscale=either_scale(signed),
            colorbar={"thickness": 9, "len": 0.9, "tickformat": ".2g", "x": 1.01},
            text=[[f"{q} → {k}" for k in keys] for q in queries],
            hovertemplate="%{text}<br>" + name + " %{z:.4f}<extra></extra>",
        )
    )  # fmt: skip
    _token_axes(fig, queries, keys)
    return _layout(fig, min(640, 150 + max(15, 320 // max(1, len(queries))) * len(queries)))


def _token_axes(fig: go.Figure, queries: Sequence[str], keys: Sequence[str]) -> None:
    size = 11 if max(len(queries), len(keys)) <= 28 else 8
    common: dict[str, Any] = {
        "tickmode": "array",
        "tickfont": {"size": size},
        "showgrid": False,
        "zeroline": False,
    }
    fig.update_yaxes(
        tickvals=list(range(len(queries))),
        ticktext=list(queries),
        autorange="reversed",
        title="query",
        **common,
    )
    fig.update_xaxes(
        tickvals=list(range(len(keys))), ticktext=list(keys), side="top", tickangle=-55, title="", **common
    )


def layer(
    maps: np.ndarray, names: Sequence[str], signed: bool, chosen: int | None, columns: int = 6
) -> go.Figure:
    """All heads of a layer as small maps [H, Q, K] on one scale; the chosen one is named in bold."""
    from plotly.subplots import make_subplots

    rows = -(-len(names) // columns)
    titles = [f"<b>{n}</b>" if i == chosen else n for i, n in enumerate(names)]
    fig = make_subplots(
        rows, columns, subplot_titles=titles, horizontal_spacing=0.015, vertical_spacing=0.16 / rows + 0.02
    )
    scale = scale_for([float(v) for v in maps.ravel()], signed=signed)
    for i in range(len(names)):
        fig.add_heatmap(
            z=maps[i].astype(np.float32), zmin=-scale.hi if signed else 0, zmax=scale.hi, showscale=False,
            colorscale=either_scale(signed), hovertemplate="query %{y}, key %{x}<br>%{z:.4f}<extra></extra>",
            row=i // columns + 1, col=i % columns + 1,
        )  # fmt: skip
    fig = _layout(fig, 40 + 150 * rows)
    fig.update_annotations(font_size=11)
    fig.update_xaxes(showticklabels=False, showgrid=False, zeroline=False)
    fig.update_yaxes(showticklabels=False, showgrid=False, zeroline=False, autorange="reversed")
    fig.update_layout(margin={"t": 24})
    return fig


def arcs(found: Sequence[Arc], queries: Sequence[str], keys: Sequence[str], signed: bool) -> go.Figure:
    """The strongest connections as lines from queries (left) to keys (right); width and strength say how strong."""
    queries, keys = [safe(q) for q in queries], [safe(k) for k in keys]
    fig = go.Figure()
    top = max((abs(a.value) for a in found), default=1.0)
    for a in reversed(found):
        strength = abs(a.value) / top
        colour = BETTER if not signed or a.value > 0 else WORSE
        bend = 0.12 * (a.key - a.query)
        fig.add_scatter(
            x=[0.0, 0.35, 0.65, 1.0], y=[a.query, a.query + bend, a.key - bend, a.key],
            mode="lines", line={"shape": "spline", "width": 0.6 + 4.4 * strength, "color": colour},
            opacity=0.2 + 0.75 * strength, showlegend=False,
            hovertemplate=f"{queries[a.query]} → {keys[a.key]}<br>{a.value:.4f}<extra></extra>".replace("%", "%%"),
        )  # fmt: skip
    size = 12 if max(len(queries), len(keys)) <= 28 else 9
    for x, tokens, side in ((-0.03, queries, "middle left"), (1.03, keys, "middle right")):
        fig.add_scatter(
            x=[x] * len(tokens), y=list(range(len(tokens))), mode="text", text=list(tokens), textposition=side,
            textfont={"size": size}, hoverinfo="skip", showlegend=False,
        )  # fmt: skip
    rows = max(len(queries), len(keys))
    fig = _layout(fig, 60 + max(12, min(20, 640 // max(1, rows))) * rows)
    fig.update_xaxes(visible=False, range=[-0.42, 1.42])
    fig.update_yaxes(visible=False, range=[rows - 0.3, -0.7])
    return fig


def scatter(
    x: Sequence[float], y: Sequence[float], names: Sequence[str], x_title: str, y_title: str
) -> go.Figure:
    """A cloud of points with its names on hover."""
    fig = go.Figure(
        go.Scatter(
            x=np.asarray(x, dtype=np.float32), y=np.asarray(y, dtype=np.float32), mode="markers",
            text=[safe(n) for n in names],
            marker={"size": 6, "opacity": 0.6, "color": BETTER},
            hovertemplate="%{text}<br>" + x_title + " %{x:.3g}<br>" + y_title + " %{y:.3g}<extra></extra>",
        )
    )  # fmt: skip
    fig.update_xaxes(title=x_title, zeroline=True)
    fig.update_yaxes(title=y_title, zeroline=True)
    return _layout(fig, 360)


def value_histogram(values: np.ndarray, significant: np.ndarray, axis: str) -> go.Figure:
    """How many heads have which value, the significant ones apart; zero is marked."""
    known = np.isfinite(values)
    fig = go.Figure()
    for name, mask, colour in (
        ("not significant", ~significant, NEUTRAL),
        ("significant", significant, WORSE),
    ):
        fig.add_histogram(
            x=values[known & mask], name=name, marker={"color": colour}, nbinsx=40,
            hovertemplate="%{x}: %{y} heads<extra>" + name + "</extra>",
        )  # fmt: skip
    fig.add_vline(x=0, line_width=1, line_color=NEUTRAL)
    fig.update_xaxes(title=axis)
    fig.update_yaxes(title="heads")
    return _layout(fig, 260, barmode="stack")


def bands(rows: Sequence[tuple[str, Sequence[float]]], names: Sequence[str]) -> go.Figure:
    """Share of heads in each band of correlation, one group of bars per model."""
    fig = go.Figure()
    for k, (name, shares) in enumerate(rows):
        fig.add_bar(
            x=list(names), y=[100 * s for s in shares], name=name, marker={"color": CLASSES[k % len(CLASSES)]},
            hovertemplate="%{x}: %{y:.1f} % of heads<extra>" + name[:40] + "</extra>",
        )  # fmt: skip
    fig.update_xaxes(title="correlation", type="category")
    fig.update_yaxes(title="% of heads")
    return _layout(fig, 280, barmode="group")


def token_rows(rows: Sequence[tuple[str, str, np.ndarray]], tokens: Sequence[str]) -> go.Figure:
    """Signed values of each token, one row per (name, class, values), on one scale."""
    values = np.stack([v for _, _, v in rows]).astype(np.float32)
    scale = scale_for([float(v) for v in values.ravel()], signed=True)
    names = [safe(f"{name} → {label}") for name, label, _ in rows]
    tokens = [safe(t) for t in tokens]
    fig = go.Figure(
        go.Heatmap(
            z=values, zmin=scale.lo, zmax=scale.hi, colorscale=either_scale(True), xgap=2, ygap=4,
            text=[[f"{t} {v:+.2f}" for t, v in zip(tokens, row, strict=True)] for row in values],
            hovertemplate="%{text}<extra></extra>", colorbar={"thickness": 9, "tickformat": ".2g"},
        )
    )  # fmt: skip
    fig.update_yaxes(tickvals=list(range(len(names))), ticktext=names, autorange="reversed", showgrid=False)
    fig.update_xaxes(
        tickvals=list(range(len(tokens))), ticktext=list(tokens), side="top", showgrid=False,
        tickangle=-45 if len(tokens) <= 24 else -90, tickfont={"size": 12 if len(tokens) <= 24 else 11},
    )  # fmt: skip
    return _layout(fig, 110 + 40 * len(rows))
