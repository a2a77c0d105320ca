"""A self-contained HTML page for reports: headings, tables, figures and mask grids, every text escaped."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from ..display.figures.style import Scale, colour, paper, rgb, scale_for
from ..heads import HeadId, HeadMask, head_name

if TYPE_CHECKING:
    import plotly.graph_objects as go

CELL, LEFT, TOP = 34, 78, 18
RAMP, LETTER = 240, 6.2  # pixels of the legend's colours, and of a letter
EMPTY = "#e4e8eb"


def values_svg(
    values: Any,
    mask: HeadMask,
    *,
    scale: Scale | None = None,
    rows: Sequence[str] | None = None,
    blank: bool = False,
    undecided: Any = None,
    name: str = "",
    marks: Collection[HeadId] = (),
    mark_name: str = "",
) -> str:
    """A value for every head: layers down, heads across, the legend below. Heads that are off carry a cross.

    ``values`` is [L, H] or None. ``blank`` leaves out numbers that would be written as zero. ``undecided`` is a
    table of the heads whose value is not significantly different from 0: they have its colour. ``name`` is what the
    colours mean.
    """
    table = np.full((mask.num_layers, mask.num_heads), np.nan) if values is None else np.asarray(values, dtype=float)
    measured = table[np.isfinite(table)]
    scale = scale or scale_for(measured)
    digits = 1 if np.abs(measured).max(initial=0.0) >= 1 else 2
    cells = [_text(LEFT + CELL * (j + 0.5), TOP - 5, f"H{j}") for j in range(mask.num_heads)]
    off = set(mask.off)
    for i in range(mask.num_layers):
        y = TOP + CELL * i
        cells.append(_text(LEFT - 6, y + 21, rows[i] if rows else f"L{i}", anchor="end"))
        for j in range(mask.num_heads):
            head, value = HeadId(i, j), float(table[i, j])
            fill, text = EMPTY, ""
            if np.isfinite(value):
                fill = colour(scale, 0.0 if undecided is not None and undecided[i][j] else value)
                text = _short(value, digits)
            label = "×" if head in off else "" if blank and round(value, digits) == 0 else text
            title = f"{head_name(head, rows)}{text and f': {text}'}{', switched off' if head in off else ''}"
            x, ink = LEFT + CELL * j, "#ffffff" if _dark(fill) else "#1c2126"
            cells.append(
                f'<g><title>{escape(title)}</title><rect x="{x}" y="{y}" width="{CELL - 2}" height="{CELL - 2}" '
                f'rx="4" fill="{fill}"/>{_text(x + CELL / 2 - 1, y + 20, label, fill=ink)}'
                f"{_dot(x + CELL - 8, y + 6, ink) if head in marks else ''}</g>"
            )
    width, height = LEFT + max(CELL * mask.num_heads, RAMP), TOP + CELL * mask.num_layers
    if measured.size:
        for line in wrap(name, int((width - LEFT) / LETTER)):
            height += 18
            cells.append(_text(LEFT, height, line, anchor="start"))
        cells += _ramp(scale, height + 6)
        height += 36
    signs = [("× switched off", "")] if off else []
    signs += [(mark_name, _dot(LEFT + 4, 0, "currentColor"))] if marks and mark_name else []
    if measured.size and undecided is not None and np.any(undecided):
        signs.append(("grey: 95 % interval includes 0" + (f"; no number: {0:.{digits}f}" if blank else ""), ""))
    for text, sign in signs:
        height += 18
        label = _text(LEFT + (12 if sign else 0), 4, text, anchor="start")
        cells.append(f'<g transform="translate(0 {height - 4})">{sign}{label}</g>')
    height += 6
    return (
        f'<svg class="heads" role="img" aria-label="grid of {mask.num_layers} by {mask.num_heads} heads" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">{"".join(cells)}</svg>'
    )


def _text(x: float, y: float, text: str, *, anchor: str = "middle", fill: str = "currentColor") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="11" fill="{fill}">{escape(text)}</text>'


def _short(value: float, digits: int) -> str:
    """A number without the zero before its point, as the page's cells have it."""
    size = f"{abs(value):.{digits}f}"
    return ("−" if value < 0 and float(size) else "") + size.removeprefix("0" if digits else "")


def _dot(x: float, y: float, fill: str) -> str:
    return f'<circle cx="{x:g}" cy="{y:g}" r="2.5" fill="{fill}"/>'


def _ramp(scale: Scale, y: float) -> list[str]:
    """The colours from end to end with their values; those of a loss begin with the largest."""
    stops, low, high = scale.light, scale.lo, scale.hi
    if scale.loss:
        stops, low, high = stops[::-1], high, low
    step = RAMP / len(stops)
    colours = [
        f'<rect x="{LEFT + step * k:g}" y="{y:g}" width="{step + 0.5:g}" height="9" fill="{stop}"/>'
        for k, stop in enumerate(stops)
    ]
    labels = [(low, 0.0, "start"), (high, 1.0, "end"), *([(0.0, 0.5, "middle")] if scale.diverging else [])]
    return colours + [
        _text(LEFT + RAMP * share, y + 22, f"{value:.3g}".replace("-", "−"), anchor=anchor)
        for value, share, anchor in labels
    ]


def _dark(fill: str) -> bool:
    red, green, blue = rgb(fill)
    return 0.3 * red + 0.59 * green + 0.11 * blue < 130


_STYLE = """
:root { color-scheme: light dark; --ink: #1c2126; --soft: #66707a; --line: #d9dee3; --page: #ffffff; --on: #1c7a8f;
  --off: #e4e8eb; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaee; --soft: #9aa5af; --line: #39424a; --page: #14181c;
  --on: #5db8cc; --off: #2b3138; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 76rem;
  margin: 2rem auto; padding: 0 1rem; }
p, dl, pre, .plot { max-width: 62rem; box-sizing: border-box; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p, dd { margin: .25rem 0; } .soft { color: var(--soft); } .scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .45rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } th { font-weight: 600; vertical-align: bottom;
  white-space: normal; }
td { vertical-align: top; } th.words, td.words { text-align: left; }
th.prose, td.prose { text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 8rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; } dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
pre { background: var(--off); padding: .6rem; overflow-x: auto; font-size: .85rem; }
.masks { display: flex; flex-wrap: wrap; gap: 1rem; } .masks figure { margin: 0; } figcaption { font-size: .8rem;
  color: var(--soft); }
svg .on { fill: var(--on); } svg .off { fill: var(--off); }
.plot { background: #fff; overflow-x: auto; }
"""


class Page:
    """A self-contained HTML page, built from top to bottom."""

    def __init__(self, title: str, subtitle: str = "") -> None:
        self.title = title
        self._parts = [f"<h1>{escape(title)}</h1>"]
        if subtitle:
            self.text(subtitle, soft=True)
        self._figures = 0

    def heading(self, text: str) -> None:
        self._parts.append(f"<h2>{escape(text)}</h2>")

    def text(self, text: str, soft: bool = False) -> None:
        self._parts.append(f"<p{' class=soft' if soft else ''}>{escape(text)}</p>")

    def facts(self, pairs: Sequence[tuple[str, Any]]) -> None:
        """Names and values; values that are None or empty are left out."""
        rows = "".join(
            f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in pairs if value not in (None, "")
        )
        self._parts.append(f"<dl>{rows}</dl>")

    def table(self, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        kinds = [_kind([row[i] for row in rows]) for i in range(len(header))]
        head = "".join(f"<th{k}>{escape(h)}</th>" for h, k in zip(header, kinds, strict=True))
        body = "".join(
            "<tr>"
            + "".join(f"<td{k}>{escape(_cell(v, h))}</td>" for h, v, k in zip(header, row, kinds, strict=True))
            + "</tr>"
            for row in rows
        )
        self._parts.append(
            f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        )

    def code(self, text: str) -> None:
        self._parts.append(f"<pre>{escape(text)}</pre>")

    def figure(self, fig: go.Figure) -> None:
        """A plotly figure as it is on paper. The first one embeds the library, so the page needs no network."""
        self._figures += 1
        html = paper(fig).to_html(
            full_html=False,
            include_plotlyjs=self._figures == 1,
            config={"showSendToCloud": False, "displaylogo": False, "modeBarButtons": [["toImage", "resetScale2d"]]},
        )
        self._parts.append(f'<div class="plot">{html}</div>')

    def values(self, title: str, **options: Any) -> None:
        """A grid of heads with their values; ``options`` are those of ``values_svg``."""
        self._parts.append(f'<p><b>{escape(title)}</b></p><div class="scroll">{values_svg(**options)}</div>')

    def masks(self, masks: Sequence[tuple[str, HeadMask]]) -> None:
        """Small grids, each with its caption: rows are layers, columns heads, pale squares are removed heads."""
        figures = "".join(
            f"<figure>{_mask_svg(mask)}<figcaption>{escape(caption)}</figcaption></figure>" for caption, mask in masks
        )
        self._parts.append(f'<div class="masks">{figures}</div>')

    def html(self) -> str:
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape(self.title)}</title><style>{_STYLE}</style></head>\n<body>\n"
            + "\n".join(self._parts)
            + "\n</body></html>\n"
        )


_FIGURE = re.compile(r"[+−-]?\d[\d.,]*( (%|s|min|h))?( \[[^\]]*\])?")  # 0.458 [0.415, 0.502], 12 s, −3.1
LONG = 24  # characters from which a column's texts are broken into lines
SMALL_P = 0.001
P_COLUMNS = ("p", "q", "p value", "q value")


def _kind(column: Sequence[Any]) -> str:
    """The CSS class of a column: numbers flush right, words flush left, long texts wrapped."""
    texts = [v for v in column if isinstance(v, str) and v != "–"]
    if all(map(_FIGURE.fullmatch, texts)):
        return ""
    return ' class="prose"' if max(map(len, texts)) > LONG else ' class="words"'


def _cell(value: Any, column: str) -> str:
    if value is None or value != value:
        return "–"
    if column.replace("_", " ") in P_COLUMNS and isinstance(value, float) and 0 <= value < SMALL_P:
        return f"< {SMALL_P:g}"
    if isinstance(value, float):
        return f"{value:.4g}".replace("-", "−")
    return f"{value:,}".replace("-", "−") if isinstance(value, int) else str(value)


def _mask_svg(mask: HeadMask) -> str:
    size = 8  # pixels of a head
    square = f'width="{size - 1}" height="{size - 1}"'
    squares = "".join(
        f'<rect class="{"on" if kept else "off"}" x="{h * size}" y="{layer * size}" {square}/>'
        for layer, row in enumerate(mask.array())
        for h, kept in enumerate(row)
    )
    width, height = mask.num_heads * size, mask.num_layers * size
    return (
        f'<svg role="img" aria-label="{escape(str(mask))}" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">{squares}</svg>'
    )
