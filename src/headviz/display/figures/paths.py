"""The figure of the strongest paths: layers as rows, the answer on top, a line for each path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import plotly.graph_objects as go

from ...heads import HeadId
from ..table import Column, Table
from .palette import BETTER, NEUTRAL, WORSE
from .style import SMALL, frame

if TYPE_CHECKING:
    from ...attribution.paths import Edge

DASHES = {"answer": "solid", "queries": "dot", "keys": "dash", "values": "solid"}
SIDE = {"answer": 0.0, "queries": -0.12, "keys": 0.12, "values": 0.0}  # lines between the same heads lie side by side
WIDEST = 7.0  # pixels
NODE = "#5f6468"


def way(edge: Edge) -> str:
    """``3.5 → 9.10 queries``"""
    return f"{edge.sender.dotted} → {'answer' if edge.receiver is None else f'{edge.receiver.dotted} {edge.into}'}"


def paths_table(edges: Sequence[Edge], several: bool) -> Table:
    """The paths as a table; with an interval where they are means over ``several`` pairs."""
    ends = (lambda edge: (edge.low, edge.high)) if several else None
    columns = (Column("path", value=way), Column("share of the way", "%+.3f", lambda edge: edge.effect, ends=ends))
    return Table.of("path_table", columns, edges)


def paths_figure(edges: Sequence[Edge], layers: int, heads: int) -> go.Figure:
    """Blue paths move the answer towards the donor's, orange ones away from it; width is strength."""
    largest = max((abs(edge.effect) for edge in edges), default=0.0) or 1.0
    fig, named = go.Figure(), set()
    for edge in sorted(edges, key=lambda e: abs(e.effect)):  # the strongest on top
        x0, y0 = _place(edge.sender, layers, heads)
        x1, y1 = _place(edge.receiver, layers, heads)
        colour = BETTER if edge.effect > 0 else WORSE
        line = {"color": colour, "width": 1 + WIDEST * abs(edge.effect) / largest, "dash": DASHES[edge.into]}
        said = f"{edge.effect:+.3f}" + (f" [{edge.low:+.3f}, {edge.high:+.3f}]" if edge.low == edge.low else "")
        steps = [i / 20 for i in range(21)]  # points to point at
        fig.add_scatter(
            x=[x0 + t * (x1 - x0) + SIDE[edge.into] for t in steps],
            y=[y0 + t * (y1 - y0) for t in steps],
            mode="lines",
            line=line,
            opacity=0.8,
            hovertemplate=f"{way(edge)}: {said}<extra></extra>".replace("-", "−"),
            showlegend=False,
        )
        named.add(edge.into)
    for into in ("queries", "keys", "values", "answer"):
        if into in named:
            line = {"color": NEUTRAL, "width": 2, "dash": DASHES[into]}
            fig.add_scatter(x=[None], y=[None], mode="lines", line=line, name=f"into {into}")
    nodes = sorted({edge.sender for edge in edges} | {edge.receiver for edge in edges if edge.receiver is not None})
    places = [_place(node, layers, heads) for node in [*nodes, None]]
    lowest = min((node.layer for node in nodes), default=0)
    fig.add_scatter(
        x=[x for x, _ in places],
        y=[y for _, y in places],
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
