"""Figures of one text: its connections as maps, arcs and points, and the attributions of its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike
from plotly.subplots import make_subplots

from ...heads import HeadId
from ..table import way
from .style import (
    BETTER,
    FONT,
    GRID,
    MODELS,
    NEUTRAL,
    SMALL,
    UNDER_TEXT,
    WORSE,
    colour_bar,
    either_scale,
    frame,
    root_scale,
    safe,
    scale_for,
)

if TYPE_CHECKING:
    from ...attribution.maps import Arc
    from ...attribution.paths import Edge


MANY = 5000  # from so many points on they are drawn by WebGL


def matrix(
    values: np.ndarray,
    queries: Sequence[str],
    keys: Sequence[str],
    name: str,
    signed: bool,
    end: float | None = None,
    root: bool = False,
) -> go.Figure:
    """One map, queries down and keys across. ``end`` fixes the colour scale, to compare maps; with ``root``, colours go
    by the square root of a value."""
    values = np.asarray(values, dtype=np.float32)
    high = end or scale_for(values, signed=signed).hi
    fig = go.Figure(
        go.Heatmap(
            z=values,
            zmin=-high if signed else 0,
            zmax=high,
            colorscale=root_scale(signed) if root else either_scale(signed),
            colorbar=colour_bar(name),
            hovertemplate="%{y} → %{x}<br>" + name + " %{z:.4f}<extra></extra>",
        )
    )
    size = 11 if max(len(queries), len(keys)) <= 34 else 9
    for update, tokens in ((fig.update_yaxes, queries), (fig.update_xaxes, keys)):
        update(
            tickmode="array",
            tickvals=list(range(len(tokens))),
            ticktext=[safe(t) for t in tokens],
            tickfont={"size": size},
            showgrid=False,
            zeroline=False,
            title="",
        )
    fig.update_yaxes(autorange="reversed")
    fig.update_xaxes(side="top", tickangle=-55)
    row = 15 if len(queries) <= 34 else 11  # pixels in which the name of a token can be read
    return frame(fig, 150 + max(row, 320 // max(1, len(queries))) * len(queries), least=160 + 14 * len(keys))


SMALLEST = 100  # colours are linear below this part of the largest value


def symmetric_log(values: Any, top: float) -> Any:
    """Values from −top to top as −1 to 1: linear near zero, logarithmic beyond a hundredth of the largest."""
    return np.sign(values) * np.log1p(SMALLEST * np.abs(values) / top) / np.log1p(SMALLEST)


CELLS, FINEST = 40, 127  # cells at a side of a small map; steps of its colours


def thumbnails(maps: np.ndarray) -> tuple[np.ndarray, int]:
    """Maps [H, Q, K] in which one cell shows the strongest of a block, and the tokens at a block's side."""
    block = -(-max(maps.shape[1:]) // CELLS)
    if block <= 1:
        return maps, 1
    heads, rows, columns = maps.shape
    padded = np.zeros((heads, -(-rows // block) * block, -(-columns // block) * block), dtype=maps.dtype)
    padded[:, :rows, :columns] = maps
    blocks = padded.reshape(heads, padded.shape[1] // block, block, -1, block).swapaxes(2, 3)
    blocks = blocks.reshape(*blocks.shape[:3], block * block)
    strongest = np.abs(blocks).argmax(axis=-1)[..., None]
    return np.take_along_axis(blocks, strongest, axis=-1)[..., 0], block


def head_maps(maps: np.ndarray, names: Sequence[str], name: str, signed: bool, chosen: int | None) -> go.Figure:
    """Maps of several heads [H, Q, K] on one scale; the chosen one is named in bold.

    The scale is logarithmic away from zero, because otherwise one strong connection would leave all others white.
    Signed maps have their totals next to the names. Of long texts a cell shows the strongest of a block.
    """
    columns = 6
    rows = -(-len(names) // columns)
    totals = [f" Σ {np.abs(m).sum():.2g}" if signed else "" for m in maps]
    titles = [safe(n) + total for n, total in zip(names, totals, strict=True)]
    titles = [f"<b>{title}</b>" if i == chosen else title for i, title in enumerate(titles)]
    fig = make_subplots(
        rows, columns, subplot_titles=titles, horizontal_spacing=0.015, vertical_spacing=0.16 / rows + 0.02
    )
    maps, block = thumbnails(maps)
    top = scale_for(maps, signed=signed).hi
    marks = [-top, -top / 10, 0.0, top / 10, top] if signed else [0.0, top / 10, top]
    legend = colour_bar(
        name,
        tickvals=[FINEST * float(symmetric_log(v, top)) for v in marks],
        ticktext=[f"{v:.2g}".replace("-", "−") for v in marks],
    )
    for i, values in enumerate(maps):
        fig.add_heatmap(
            z=np.rint(FINEST * symmetric_log(np.nan_to_num(values), top)).astype(np.int8),
            zmin=-FINEST if signed else 0,
            zmax=FINEST,
            x0=0,
            y0=0,
            dx=block,
            dy=block,
            showscale=i == 0,
            colorbar=legend,
            colorscale=either_scale(signed),
            name=safe(names[i]),
            customdata=values.astype(np.float32),
            hovertemplate="query %{y}, key %{x}<br>%{customdata:.4f}<extra></extra>",
            row=i // columns + 1,
            col=i % columns + 1,
        )
    fig = frame(fig, 40 + 150 * rows, top=24, least=720 if signed else 600)
    fig.update_annotations(font_size=SMALL)
    fig.update_xaxes(showticklabels=False, showgrid=False, zeroline=False)
    fig.update_yaxes(showticklabels=False, showgrid=False, zeroline=False, autorange="reversed")
    return fig


def titled_maps(
    panels: Sequence[tuple[str, np.ndarray | str]], tokens: Sequence[str], name: str, signed: bool
) -> go.Figure:
    """Small maps (title, [T, T]) on one colour scale. A text instead of a map is shown in its place."""
    top = scale_for([m for _, m in panels if not isinstance(m, str)], signed=signed).hi
    columns = 5
    rows = -(-len(panels) // columns)
    titles = [title for title, _ in panels]
    fig = make_subplots(
        rows, columns, subplot_titles=titles, horizontal_spacing=0.014, vertical_spacing=0.2 / max(2, rows)
    )
    tokens = [safe(t) for t in tokens]
    pairs = [[f"{q} → {k}" for k in tokens] for q in tokens]
    end = len(tokens) - 0.5
    fig.update_xaxes(showticklabels=False, showgrid=False, zeroline=False, range=[-0.5, end])
    fig.update_yaxes(showticklabels=False, showgrid=False, zeroline=False, range=[end, -0.5])
    for i, (title, panel) in enumerate(panels):
        place = {"row": i // columns + 1, "col": i % columns + 1}
        if isinstance(panel, str):
            _boxed_text(fig, panel, end / 2, place)
            continue
        fig.add_heatmap(
            z=np.asarray(panel, np.float32),
            zmin=-top if signed else 0,
            zmax=top,
            colorscale=either_scale(signed),
            text=pairs,
            name=title,
            showscale=i == 0,
            colorbar=colour_bar(name),
            hovertemplate="%{text}<br>" + name + " %{z:.4f}<extra>" + title + "</extra>",
            **place,
        )
    fig.update_annotations(font_size=FONT)
    return frame(fig, 36 + 175 * rows, top=28, least=600)


def _boxed_text(fig: go.Figure, text: str, middle: float, place: dict[str, int]) -> None:
    """A text in the middle of a subplot, with a border around it."""
    fig.add_scatter(
        x=[middle],
        y=[middle],
        mode="text",
        text=[text],
        hoverinfo="skip",
        showlegend=False,
        textfont={"size": FONT},
        **place,
    )
    fig.update_xaxes(showline=True, linecolor=GRID, mirror=True, **place)
    fig.update_yaxes(showline=True, linecolor=GRID, mirror=True, **place)


def arcs(connections: Sequence[Arc], queries: Sequence[str], keys: Sequence[str], signed: bool) -> go.Figure:
    """The strongest connections as lines from queries (left) to keys (right); stronger ones are wider and darker."""
    queries, keys = [safe(q) for q in queries], [safe(k) for k in keys]
    fig = go.Figure()
    top = max((abs(a.value) for a in connections), default=1.0)
    for a in reversed(connections):
        strength = abs(a.value) / top
        colour = MODELS[0] if not signed else BETTER if a.value > 0 else WORSE
        bend = 0.12 * (a.key - a.query)
        fig.add_scatter(
            x=[0.0, 0.35, 0.65, 1.0],
            y=[a.query, a.query + bend, a.key - bend, a.key],
            mode="lines",
            line={"shape": "spline", "width": 0.6 + 4.4 * strength, "color": colour},
            opacity=0.2 + 0.75 * strength,
            showlegend=False,
            name=f"{queries[a.query]} → {keys[a.key]}",
            meta={"query": a.query, "key": a.key, "value": a.value},
            hovertemplate=f"{queries[a.query]} → {keys[a.key]}<br>{a.value:.4f}<extra></extra>",
        )
    size = 12 if max(len(queries), len(keys)) <= 28 else 9
    for x, tokens, side, end in ((-0.03, queries, "middle left", "query"), (1.03, keys, "middle right", "key")):
        fig.add_scatter(
            x=[x] * len(tokens),
            y=list(range(len(tokens))),
            mode="text",
            text=list(tokens),
            textposition=side,
            textfont={"size": size},
            hoverinfo="none",  # without a label; tools.js shows the token's arcs alone
            meta={"end": end},
            showlegend=False,
        )
    rows = max(len(queries), len(keys))
    fig = frame(fig, 60 + max(12, min(20, 640 // max(1, rows))) * rows)
    fig.update_xaxes(visible=False, range=[-0.42, 1.42])
    fig.update_yaxes(visible=False, range=[rows - 0.3, -0.7])
    return fig


def scatter(x: ArrayLike, y: ArrayLike, names: Sequence[str], x_title: str, y_title: str) -> go.Figure:
    """A cloud of points with its names on hover."""
    x_title, y_title = safe(x_title), safe(y_title)
    kind = go.Scattergl if np.size(x) > MANY else go.Scatter
    fig = go.Figure(
        kind(
            x=np.asarray(x, dtype=np.float32),
            y=np.asarray(y, dtype=np.float32),
            mode="markers",
            text=[safe(n) for n in names],
            marker={"size": 6, "opacity": 0.9, "color": MODELS[0]},
            hovertemplate="%{text}<br>" + x_title + " %{x:.3g}<br>" + y_title + " %{y:.3g}<extra></extra>",
        )
    )
    # no SI prefixes: an attribution of 50µ means nothing
    fig.update_xaxes(title=x_title, zeroline=True, tickformat=".2~g")
    fig.update_yaxes(title=y_title, zeroline=True, tickformat=".2~g")
    return frame(fig, 360)


def word_rows(
    names: Sequence[str], label: str, values: np.ndarray, special: Sequence[bool], tokens: Sequence[str]
) -> go.Figure:
    """Each word's value by each method [M, T], on a scale of its own: the methods do not measure in one unit."""
    words = np.where(special, 0.0, values)
    largest = np.abs(words).max(axis=1, keepdims=True)
    shares = np.divide(words, largest, out=np.zeros_like(words), where=largest > 0)
    return token_rows([(name, label, row) for name, row in zip(names, shares, strict=True)], tokens)


def token_rows(rows: Sequence[tuple[str, str, np.ndarray]], tokens: Sequence[str]) -> go.Figure:
    """Signed values of each token, one row per (name, class, values), on one scale."""
    values = np.stack([v for _, _, v in rows]).astype(np.float32)
    scale = scale_for(values, signed=True)
    names = [safe(f"{name} → {label}") for name, label, _ in rows]
    tokens = [safe(t) for t in tokens]
    written = len(tokens) <= 24  # beyond, the numbers would not fit
    fig = go.Figure(
        go.Heatmap(
            z=values,
            zmin=scale.lo,
            zmax=scale.hi,
            colorscale=UNDER_TEXT if written else either_scale(True),
            xgap=2,
            ygap=4,
            text=[[f"{t} {v:+.3g}" for t, v in zip(tokens, row, strict=True)] for row in values],
            hovertemplate="%{text}<extra></extra>",
            colorbar=colour_bar("attribution"),
        )
    )
    if written:
        _written(fig, values)
    fig.update_yaxes(
        tickvals=list(range(len(names))), ticktext=names, autorange="reversed", showgrid=False, zeroline=False
    )
    fig.update_xaxes(
        tickvals=list(range(len(tokens))),
        ticktext=list(tokens),
        side="top",
        showgrid=False,
        zeroline=False,
        tickangle=-45 if written else -90,
        tickfont={"size": 12 if written else 11},
    )
    return frame(fig, 110 + 40 * len(rows), least=240 + (30 if written else 14) * len(tokens))


def _written(fig: go.Figure, values: np.ndarray) -> None:
    """Write the values on the cells, as a trace: it takes the page's text colour."""
    top = float(np.abs(values).max()) or 1.0
    digits = min(3, max(1, 1 - int(np.floor(np.log10(top)))))
    rows, columns = np.indices(values.shape).reshape(2, -1).tolist()
    fig.add_scatter(
        x=columns,
        y=rows,
        mode="text",
        hoverinfo="skip",
        showlegend=False,
        text=[_short(float(v), digits) for v in values.ravel()],
        textfont={"size": 10},
    )


def _short(value: float, digits: int) -> str:
    """A value without the zero before its point, empty where it rounds to nothing."""
    text = f"{value:+.{digits}f}"
    return "" if float(text) == 0 else text.replace("0.", ".", 1).replace("-", "−").replace("+", "")


# -----------------------------------------------------------------------------------------------
# The figure of the strongest paths: layers as rows, the answer on top, a line for each path.


DASHES = {"answer": "solid", "queries": "dot", "keys": "dash", "values": "solid"}
SIDE = {"answer": 0.0, "queries": -0.12, "keys": 0.12, "values": 0.0}  # lines between the same heads lie side by side
WIDEST = 7.0  # pixels
NODE = "#5f6468"


def paths_figure(edges: Sequence[Edge], layers: int, heads: int) -> go.Figure:
    """Blue paths move the answer towards the donor's, orange ones away from it; width is strength."""
    largest = max((abs(edge.effect) for edge in edges), default=0.0) or 1.0
    fig = go.Figure()
    for edge in sorted(edges, key=lambda e: abs(e.effect)):  # the strongest on top
        x0, y0 = _place(edge.sender, layers, heads)
        x1, y1 = _place(edge.receiver, layers, heads)
        colour = BETTER if edge.effect > 0 else WORSE
        line = {"color": colour, "width": 1 + WIDEST * abs(edge.effect) / largest, "dash": DASHES[edge.into]}
        tip = f"{edge.effect:+.3f}" + (f" [{edge.low:+.3f}, {edge.high:+.3f}]" if edge.low == edge.low else "")
        positions = [i / 20 for i in range(21)]  # points of the line that show the tip
        fig.add_scatter(
            x=[x0 + t * (x1 - x0) + SIDE[edge.into] for t in positions],
            y=[y0 + t * (y1 - y0) for t in positions],
            mode="lines",
            line=line,
            opacity=0.8,
            hovertemplate=f"{way(edge)}: {tip}<extra></extra>".replace("-", "−"),
            showlegend=False,
        )
    inputs = {edge.into for edge in edges}
    for into in ("queries", "keys", "values", "answer"):
        if into in inputs:
            line = {"color": NEUTRAL, "width": 2, "dash": DASHES[into]}
            fig.add_scatter(x=[None], y=[None], mode="lines", line=line, name=f"into {into}")
    nodes = sorted({edge.sender for edge in edges} | {edge.receiver for edge in edges if edge.receiver is not None})
    x, y = zip(*(_place(node, layers, heads) for node in [*nodes, None]), strict=True)
    lowest = min((node.layer for node in nodes), default=0)
    fig.add_scatter(
        x=x,
        y=y,
        mode="markers+text",
        marker={"size": [*(32 for _ in nodes), 46], "color": NODE, "opacity": 1},
        text=[*(node.dotted for node in nodes), "answer"],
        textposition="middle center",
        textfont={"size": SMALL, "color": "white"},
        hoverinfo="skip",
        showlegend=False,
    )
    fig.update_xaxes(visible=False, range=[-0.6, heads - 0.4])
    fig.update_yaxes(title="layer", tickvals=list(range(layers)), zeroline=False, range=[lowest - 0.6, layers + 0.6])
    rows = layers + 1 - lowest
    return frame(fig, 110 + (56 if rows < 8 else 42) * rows)


def _place(head: HeadId | None, layers: int, heads: int) -> tuple[float, float]:
    """Heads side by side in their layer, the answer in the middle above all."""
    return ((heads - 1) / 2, float(layers)) if head is None else (float(head.head), float(head.layer))
