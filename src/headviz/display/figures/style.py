"""The style of all figures: frame, margins, fonts, hover, and parts that several figures share.

Text colours come from the page's theme, colours with a meaning from the palette. Nothing here imports plotly, so a page
without a figure does not wait for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ...answers.metrics import OWN, constant_name, points_in
from ...evaluation.verdict import verdict
from ...storage.writing import disk_errors, replace_file

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


# Colours, in one place for the head grid, the figures and the report ---------------------------
#
# Blue and orange differ for the common kinds of colour blindness. Lightness follows the size of the value, so a
# figure also reads in grey. The middle of a diverging scale is the page's background: zero looks empty.


Stops = tuple[str, ...]

DIVERGING_LIGHT: Stops = (
    "#7d3407",
    "#b9591a",
    "#dd8d4c",
    "#f2c59a",
    "#f0efeb",
    "#b4d0ec",
    "#6ba2d8",
    "#2c6fb7",
    "#113b76",
)
DIVERGING_DARK: Stops = (
    "#ffcf9e",
    "#f2a157",
    "#c06c2c",
    "#6f4426",
    "#2b3037",
    "#2a4768",
    "#2f6cad",
    "#5ea2ea",
    "#b3d6ff",
)
SEQUENTIAL_LIGHT: Stops = ("#eef3f4", "#c5e0e5", "#8cc3cd", "#4ba1b2", "#1c7a8f", "#0b576a", "#063846")
SEQUENTIAL_DARK: Stops = ("#252d33", "#1f4854", "#1f6a7c", "#2b90a6", "#5db8cc", "#a0dce9", "#e2f8fc")

BETTER, WORSE, NEUTRAL = "#2c6fb7", "#c4651f", "#8a8d91"
MODELS: Stops = ("#1c7a8f", "#7a5ea8", "#b8860b", "#4ba1b2", "#a98fd0")  # no blue and no orange: those judge
CLASSES: Stops = ("#1c7a8f", "#7a5ea8", "#6f8f2a", "#b0487f", "#b8860b")  # of lines; none of those that judge


@dataclass(frozen=True)
class Scale:
    """How values become colours: ``lo`` and ``hi`` are the ends of ``stops``.

    A diverging scale is symmetric about zero, so that equal strength means equal lightness.
    """

    lo: float
    hi: float
    diverging: bool
    loss: bool = False  # high values are losses, and so orange

    @property
    def light(self) -> Stops:
        return self._turned(DIVERGING_LIGHT if self.diverging else SEQUENTIAL_LIGHT)

    @property
    def dark(self) -> Stops:
        return self._turned(DIVERGING_DARK if self.diverging else SEQUENTIAL_DARK)

    def _turned(self, stops: Stops) -> Stops:
        return stops[::-1] if self.loss else stops


def scale_for(values: ArrayLike, *, signed: bool | None = None) -> Scale:
    """The scale that fits these values; NaN is ignored. ``signed`` forces or forbids a diverging scale.

    To compare grids, make one scale from the values of all of them.
    """
    numbers = np.asarray(values, dtype=float)
    finite = numbers[np.isfinite(numbers)]
    if not finite.size:
        return Scale(-1.0, 1.0, True) if signed else Scale(0.0, 1.0, False)
    low, high = float(finite.min()), float(finite.max())
    if signed if signed is not None else low < 0:
        end = max(abs(low), abs(high)) or 1.0
        return Scale(-end, end, True)
    low = min(0.0, low)
    return Scale(low, high if high > low else low + 1.0, False)


def scale_of_losses(values: ArrayLike) -> Scale:
    """Orange where something is lost, blue where something is gained; NaN is ignored."""
    return replace(scale_for(values, signed=True), loss=True)


def colour(scale: Scale, value: float) -> str:
    """The ``#rrggbb`` of a finite value on a light page; values beyond the ends take the end's colour."""
    stops = scale.light
    place = (value - scale.lo) / (scale.hi - scale.lo) * (len(stops) - 1)
    place = min(max(place, 0.0), len(stops) - 1.0)
    below = min(int(place), len(stops) - 2)
    part = place - below
    a, b = (rgb(stop) for stop in stops[below : below + 2])
    return "#" + "".join(f"{round(x + (y - x) * part):02x}" for x, y in zip(a, b, strict=True))


def rgb(colour: str) -> tuple[int, ...]:
    """Red, green and blue of ``#rrggbb``, from 0 to 255."""
    return tuple(bytes.fromhex(colour[1:]))


# for figures that do not know whether their page is light or dark: zero is transparent
_EITHER_DIVERGING: Stops = (WORSE, "rgba(140,146,152,0.12)", BETTER)
UNDER_TEXT = [
    [0, "rgba(214,110,30,0.6)"],
    [0.5, "rgba(140,146,152,0.12)"],
    [1, "rgba(60,130,205,0.6)"],
]  # of cells with numbers
_EITHER_SEQUENTIAL: Stops = ("rgba(140,146,152,0.10)", "rgba(28,140,163,0.55)", "#178299")


def either_scale(signed: bool) -> list[list[float | str]]:
    """Colours in plotly's form that read on a light and on a dark page."""
    stops = _EITHER_DIVERGING if signed else _EITHER_SEQUENTIAL
    return [[i / (len(stops) - 1), stop] for i, stop in enumerate(stops)]


def root_scale(signed: bool) -> list[list[float | str]]:
    """The same, with colour by the square root of a value, so that a quarter of the largest has half of it."""
    ends = [(WORSE, -1), (BETTER, 1)] if signed else [("#178299", 1)]
    stops: list[list[float | str]] = []
    for end, sign in ends:
        red, green, blue = rgb(end)
        for step in range(11):
            size = step / 10
            place = 0.5 + 0.5 * sign * size**2 if signed else size**2
            stops.append([place, f"rgba({red},{green},{blue},{0.06 + 0.94 * size:.3f})"])
    return sorted(stops, key=lambda stop: float(stop[0]))


# -----------------------------------------------------------------------------------------------


FONT, SMALL = 12, 11
FAMILY = "Source Sans, 'Source Sans 3', Inter, Segoe UI, Helvetica Neue, Arial, Liberation Sans, sans-serif"
ROW = 26  # pixels per line of a horizontal chart
FAINT = "rgba(140,146,152,0.65)"  # lines that stand behind
GRID = "rgba(140,146,152,0.22)"
CLEAR = "rgba(0,0,0,0)"
# on a transparent paper plotly would guess a dark box behind its buttons
MODEBAR = {"bgcolor": CLEAR, "color": "rgba(140,146,152,0.75)", "activecolor": "rgba(140,146,152,1)"}


def safe(text: str) -> str:
    """A text from data, escaped so that plotly reads no markup and no template in it."""
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("%{", "% {")


# of lines, so that colour is not all: as many marks, and then with other strokes
MARKS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star")
STROKES = ("solid", "dash", "dashdot", "longdash")


def frame(fig: Figure, height: int, *, top: int = 8, least: int = 0, **layout: Any) -> Figure:
    """Size, margins, legend, axes and marks of every figure.

    ``top`` leaves room above for a note; ``least`` is the width in pixels below which its texts would meet: a page
    scrolls it, paper scales it.
    """
    fig.update_layout(
        height=height,
        meta={"least": least},
        margin={"l": 8, "r": 12, "t": top, "b": 8},
        font={"size": FONT},
        hoverlabel={"namelength": -1},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0, "title": None},
        dragmode=False,
        paper_bgcolor=CLEAR,
        plot_bgcolor=CLEAR,
        modebar=MODEBAR,
        colorway=list(CLASSES),
        **layout,
    )
    fig.update_xaxes(automargin=True, fixedrange=True, gridcolor=GRID)
    fig.update_yaxes(automargin=True, fixedrange=True, gridcolor=GRID)
    lines = [t for t in fig.data if t.type == "scatter" and "lines" in (t.mode or "") and t.name]
    lines = [t for t in lines if t.x is not None and len(t.x) > 1]
    for k, name in enumerate(dict.fromkeys(t.name for t in lines if t.showlegend is not False)):
        mark, stroke = MARKS[k % len(MARKS)], STROKES[k // len(MARKS) % len(STROKES)]
        for line in (t for t in lines if t.name == name and not t.marker.symbol and t.line.dash in (None, "solid")):
            line.update(
                mode="lines+markers", marker={"symbol": mark, "size": line.marker.size or 6}, line={"dash": stroke}
            )
    return fig


# A figure on paper: the same picture on white, in dark ink, as wide as a column or as two ------------


INK, PAPER, PAPER_GRID, PAPER_LINE = "#1c2126", "#ffffff", "#e3e6e9", "#b9bfc5"
COLUMNS = {1: 84, 2: 174}  # millimetres of one and of two columns of a page
MILLIMETRE = 5  # pixels, so that type is 7 points high
LETTER, KEY, LINE = 6.6, 46, 19  # pixels of a letter, of a legend's sign with its gaps, and of a legend's line
ANNOTATION, NAME = 52, 44  # letters of a line of a note and of a name in one column


def paper(fig: Figure, columns: int = 2) -> Figure:
    """The figure as files and reports have it: on white, in dark ink, as wide as one or two columns."""
    layout, names = paper_layout(fig, columns)
    printed = type(fig)(fig).update_layout(layout, overwrite=True)
    for trace, name in zip(printed.data, names, strict=True):
        trace.name = name
    return printed


def paper_layout(fig: Figure, columns: int) -> tuple[dict[str, Any], list[str | None]]:
    """The layout of the figure on paper, and the names of its traces there.

    A figure that needs more room for its texts is drawn wider, and scaled when it is saved.
    """
    printed = type(fig)(layout=fig.layout)
    width = max(COLUMNS[columns] * MILLIMETRE, (printed.layout.meta or {}).get("least", 0))
    widths = width / (COLUMNS[1] * MILLIMETRE)  # of one column
    names = [_lines(t.name, int(NAME * widths)) if t.name else None for t in fig.data]
    printed.for_each_annotation(lambda a: a.update(text=_lines(a.text, int(ANNOTATION * widths))))
    height = (printed.layout.height or 400) + LINE * max(0, _legend_lines(fig, names, width) - 1)
    printed.update_layout(
        template="none",
        width=width,
        height=min(height, round(0.9 * width)) if printed.layout.yaxis.scaleanchor else height,  # a square
        paper_bgcolor=PAPER,
        plot_bgcolor=PAPER,
        font={"color": INK, "family": FAMILY, "size": FONT},
        margin_b=12,
        legend_maxheight=10_000,  # none of its lines is behind a scroll bar
    )
    line = {"gridcolor": PAPER_GRID, "zerolinecolor": PAPER_LINE, "linecolor": PAPER_LINE, "ticks": ""}
    for axis in (*printed.select_xaxes(), *printed.select_yaxes()):
        axis.update(line, title_standoff=6)
    printed.update_xaxes(ticklabelstandoff=3)  # the first number does not meet that of the other axis
    layout = printed.to_plotly_json()["layout"]
    layout["template"] = {"data": {}, "layout": {}}
    return layout, names


def _lines(text: str, letters: int) -> str:
    """A text broken into lines; one with markup stays as it is."""
    return text if "<" in text else "<br>".join(wrap(text, letters)) or text


def _legend_lines(fig: Figure, names: Sequence[str | None], width: float) -> int:
    """The lines of text in the legend, as plotly lays it out: one row, or rows of equal columns."""
    shown = [(t, name) for t, name in zip(fig.data, names, strict=True) if name and t.showlegend is not False]
    entries = {t.legendgroup or name: name.split("<br>") for t, name in shown if t.type != "heatmap"}.values()
    if fig.layout.showlegend is False or (len(entries) < 2 and not fig.layout.showlegend):
        return 0
    sizes = [KEY + LETTER * max(map(len, lines)) for lines in entries]
    columns = len(sizes) if sum(sizes) <= width else max(1, int(width // max(sizes)))
    return ceil(len(sizes) / columns) * max(map(len, entries), default=0)


# -----------------------------------------------------------------------------------------------


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
    undecided: np.ndarray | None = None,
) -> None:
    """Layers down, heads across, blue above zero and orange below, or the reverse for ``losses``.

    ``values`` are all that share the scale, by default the table's. ``undecided`` is a table of the heads whose value
    is not significantly different from 0: they have its colour.
    """
    scale = scale_for(table if values is None else values, signed=True)
    fig.add_heatmap(
        z=table if undecided is None else np.where(undecided & np.isfinite(table), 0.0, table),
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


def colour_bar(name: str, **options: Any) -> dict[str, Any]:
    """What the colours of a map mean, next to it. ``options`` are plotly's."""
    title = {"text": safe(name), "side": "right", "font": {"size": SMALL}}
    return {"thickness": 9, "len": 0.9, "x": 1.01, "tickformat": ".2~g", "title": title, **options}


def colours(values: ArrayLike, name: str, *, signed: bool | None = None) -> dict[str, Any]:
    """Scale and colour bar of a map of these values; ``signed`` as in ``scale_for``."""
    scale = scale_for(values, signed=signed)
    return {
        "zmin": scale.lo,
        "zmax": scale.hi,
        "colorscale": either_scale(scale.diverging),
        "colorbar": colour_bar(name),
    }


CORRELATIONS = ("matthews", "pearson", "spearman")  # metrics that may be negative


def limits(metrics: Iterable[str], values: Iterable[float]) -> tuple[int, int] | None:
    """Where the scale of these metrics ends: a share's at 0 and 1, a correlation's at −1 and 1; None for others."""
    names = list(metrics)
    negative = [name in CORRELATIONS for name in names]
    if any(negative):
        return (-1, 1) if all(negative) else None
    shares = all(name not in OWN and points_in(name) == 100 for name in names)
    return (0, 1) if shares and all(0 <= v <= 1 for v in values if v == v) else None


def band(
    fig: Figure, x: Sequence[float], low: Sequence[float], high: Sequence[float], colour: str, **options: Any
) -> None:
    """The interval around a line, as an area of its colour. ``options`` are its legend group, or its place."""
    fig.add_scatter(
        x=[*x, *x[::-1]],
        y=[*high, *low[::-1]],
        fill="toself",
        fillcolor=colour,
        mode="none",
        hoverinfo="skip",
        showlegend=False,
        **{"opacity": 0.15, **options},
    )


def constant_line(fig: Figure, value: float, metric: str, **place: Any) -> None:
    """What the best constant answer reaches in a metric, dotted."""
    fig.add_hline(
        y=value,
        line={"color": FAINT, "dash": "dot", "width": 1},
        annotation_text=constant_name(metric),
        annotation_position="bottom left",
        annotation_font={"size": SMALL},
        **place,
    )


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


SPOKEN = 40  # values of a line that are read out


def in_words(fig: Figure) -> list[tuple[str, str]]:
    """What a figure draws, as text: the name of each line, bar or map, and its values."""
    rows = []
    for trace in fig.data:
        if trace.type == "heatmap" and trace.z is not None:
            shown = np.asarray(() if trace.customdata is None else trace.customdata)  # by the pointer
            # colours that are no values: on a logarithmic scale, say
            table = shown if shown.ndim == 2 and shown.dtype.kind == "f" else trace.z
            values = [float(v) for row in table for v in row if v is not None and v == v]
            ends = f"from {min(values):.3g} to {max(values):.3g}" if values else "nothing measured"
            rows.append((trace.name or "map", f"{len(trace.z)} rows, values {ends}"))
        elif trace.type == "histogram":
            values = [float(v) for v in trace.x if v == v]
            ends = f" from {min(values):.3g} to {max(values):.3g}" if values else ""
            rows.append((trace.name or "values", f"{len(values)} values{ends}"))
        elif isinstance(trace.meta, dict) and "value" in trace.meta:  # a connection, whose places mean nothing
            rows.append((trace.name or "value", _word(trace.meta["value"])))
        elif getattr(trace, "hoverinfo", None) not in ("skip", "none") and trace.x is not None and trace.y is not None:
            points = [f"{_word(x)}: {_word(y)}" for x, y in zip(trace.x, trace.y, strict=False) if x is not None]
            ending = f" and {len(points) - SPOKEN} more" if len(points) > SPOKEN else ""
            rows.append((trace.name or "values", ", ".join(points[:SPOKEN]) + ending))
    return rows


def _word(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, int | float | np.number) else str(value)


def write_html(fig: Figure, path: str | Path, title: str = "headviz") -> Path:
    """Write the figure as a page that contains plotly and needs no network."""
    path = Path(path)
    fig.update_layout(title={"text": title, "font": {"size": 15}}, margin_t=64)
    page = fig.to_html(include_plotlyjs=True, config={"showSendToCloud": False, "displaylogo": False})
    with disk_errors(path, len(page)):
        replace_file(path, page)
    return path
