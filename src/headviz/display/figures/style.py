"""The style of all figures: frame, margins, fonts, hover, and parts that several figures share.

Text colours come from the page's theme, colours with a meaning from ``palette``. Nothing here imports plotly, so a page
without a figure does not wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...evaluation.verdict import verdict
from ...storage.writing import disk_errors, replace_file
from .palette import BETTER, CLASSES, NEUTRAL, WORSE, either_scale, scale_for

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

FONT, SMALL = 12, 11
ROW = 26  # pixels per line of a horizontal chart
FAINT = "rgba(140,146,152,0.65)"  # lines that stand behind
GRID = "rgba(140,146,152,0.22)"
CLEAR = "rgba(0,0,0,0)"
# on a transparent paper plotly would guess a dark box behind its buttons
MODEBAR = {"bgcolor": CLEAR, "color": "rgba(140,146,152,0.75)", "activecolor": "rgba(140,146,152,1)"}


def safe(text: str) -> str:
    """A text from data, escaped so that plotly reads no markup and no template in it."""
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("%{", "% {")


def frame(fig: Figure, height: int, *, top: int = 8, **more: Any) -> Figure:
    """Size, margins, legend and axes of every figure. ``top`` leaves room above for a note; ``more`` is layout."""
    fig.update_layout(
        height=height,
        margin={"l": 8, "r": 12, "t": top, "b": 8},
        font={"size": FONT},
        hoverlabel={"namelength": -1},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0, "title": None},
        dragmode=False,
        paper_bgcolor=CLEAR,
        plot_bgcolor=CLEAR,
        modebar=MODEBAR,
        colorway=list(CLASSES),
        **more,
    )
    fig.update_xaxes(automargin=True, fixedrange=True, gridcolor=GRID)
    fig.update_yaxes(automargin=True, fixedrange=True, gridcolor=GRID)
    return fig


def grid(
    fig: Figure,
    table: np.ndarray,
    name: str,
    row: int,
    col: int,
    values: Sequence[float] | None = None,
    show_bar: bool = True,
    bar_x: float = 1.01,
    losses: bool = False,
    grey: np.ndarray | None = None,
) -> None:
    """Layers down, heads across, blue above zero and orange below, or the reverse for ``losses``.

    ``grey`` is a table of the heads whose value is not told apart from 0: they have its colour.
    """
    scale = scale_for(list(values) if values is not None else [float(v) for v in table.ravel()], signed=True)
    fig.add_heatmap(
        z=table if grey is None else np.where(grey & np.isfinite(table), 0.0, table),
        customdata=table,
        zmin=scale.lo,
        zmax=scale.hi,
        colorscale=either_scale(True),
        reversescale=losses,
        xgap=1.5,
        ygap=1.5,
        showscale=show_bar,
        colorbar=colour_bar(name, x=bar_x),
        hovertemplate="L%{y}·H%{x}<br>" + name + " %{customdata:+.4f}<extra></extra>",
        row=row,
        col=col,
    )
    fig.update_yaxes(autorange="reversed", title="layer", dtick=1, showgrid=False, zeroline=False, row=row, col=col)
    fig.update_xaxes(title="head", dtick=1, showgrid=False, zeroline=False, row=row, col=col)


def colour_bar(title: str, **more: Any) -> dict[str, Any]:
    """What the colours of a map say, beside it."""
    said = {"text": safe(title), "side": "right", "font": {"size": SMALL}}
    return {"thickness": 9, "len": 0.9, "x": 1.01, "tickformat": ".2~g", "title": said, **more}


def band(
    fig: Figure, x: Sequence[float], low: Sequence[float], high: Sequence[float], colour: str, **more: Any
) -> None:
    """The interval around a line, as an area of its colour. ``more`` is its legend group, or its place."""
    fig.add_scatter(
        x=[*x, *x[::-1]],
        y=[*high, *low[::-1]],
        fill="toself",
        fillcolor=colour,
        mode="none",
        hoverinfo="skip",
        showlegend=False,
        **{"opacity": 0.15, **more},
    )


def constant_line(fig: Figure, value: float, **place: Any) -> None:
    """What the best constant answer reaches, dotted."""
    font = {"size": SMALL, "color": NEUTRAL}
    named = {"annotation_text": "one class for all", "annotation_position": "bottom left", "annotation_font": font}
    fig.add_hline(y=value, line={"color": FAINT, "dash": "dot", "width": 1}, **named, **place)


def whisker(values: Sequence[float], low: Sequence[float], high: Sequence[float]) -> dict[str, Any]:
    """Intervals of points, as plotly's error bars."""
    return {
        "type": "data",
        "symmetric": False,
        "thickness": 1.2,
        "width": 3,
        "color": NEUTRAL,
        "array": [h - v for v, h in zip(values, high, strict=True)],
        "arrayminus": [v - lo for v, lo in zip(values, low, strict=True)],
    }


def tone(low: float, high: float) -> str:
    """The colour of a change with this interval."""
    return {"loss": WORSE, "gain": BETTER}.get(verdict(low, high), NEUTRAL)


def note(fig: Figure, text: str) -> None:
    """A line above the picture, at its left."""
    fig.add_annotation(
        x=0.0,
        y=1.0,
        xref="paper",
        yref="paper",
        xanchor="left",
        yanchor="bottom",
        showarrow=False,
        text=safe(text),
        font={"size": FONT},
    )


def write_html(fig: Figure, path: str | Path, title: str = "headviz") -> Path:
    """Write the figure as a page that contains plotly and needs no network."""
    place = Path(path)
    fig.update_layout(title={"text": title, "font": {"size": 15}}, margin_t=64)
    page = fig.to_html(include_plotlyjs=True, config={"showSendToCloud": False, "displaylogo": False})
    with disk_errors(place, len(page)):
        replace_file(place, page)
    return place
