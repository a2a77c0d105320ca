"""A self-contained HTML page for reports: headings, tables, figures and mask grids, every text escaped."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from ..display.figures.style import Scale, colour, paper, scale_for
from ..heads import HeadId, HeadMask, head_name

if TYPE_CHECKING:
    import plotly.graph_objects as go

CELL, LEFT, TOP = 34, 78, 18
RAMP, LETTER = 240, 6.2  # pixels of the legend's colours, and of a letter
EMPTY = "#e4e8eb"


def grid_svg(
    values: Any,
    mask: HeadMask,
    *,
    scale: Scale | None = None,
    rows: Sequence[str] | None = None,
    blank: bool = False,
    grey: Any = None,
    name: str = "",
    marks: Collection[HeadId] = (),
    mark_name: str = "",
) -> str:
    """Layers down, heads across. ``values`` is [L, H] or None; heads that are off carry a cross.

    ``blank`` leaves out the numbers of heads whose value is zero; ``grey`` is a table of those that have the
    colour of zero; ``name`` is what the colours mean. The legend stands below.
    """
    table = None if values is None else np.asarray(values, dtype=float)
    known = [] if table is None else [float(v) for v in table.ravel() if np.isfinite(v)]
    fitted = scale or scale_for(known)
    digits = 1 if max(map(abs, known), default=0.0) >= 1 else 2
    cells = [_text(LEFT + CELL * (j + 0.5), TOP - 5, f"H{j}") for j in range(mask.num_heads)]
    off = set(mask.off)
    for i in range(mask.num_layers):
        y = TOP + CELL * i
        cells.append(_text(LEFT - 6, y + 21, rows[i] if rows else f"L{i}", anchor="end"))
        for j in range(mask.num_heads):
            head, value = HeadId(i, j), float("nan") if table is None else float(table[i, j])
            fill = colour(fitted, 0.0 if grey is not None and grey[i][j] else value) if np.isfinite(value) else EMPTY
            text = _short(value, digits) if np.isfinite(value) else ""
            shown = "×" if head in off else "" if blank and value == 0 else text
            title = f"{head_name(head, rows)}{text and f': {text}'}{', switched off' if head in off else ''}"
            x, ink = LEFT + CELL * j, "#ffffff" if _dark(fill) else "#1c2126"
            cells.append(
                f'<g><title>{escape(title)}</title><rect x="{x}" y="{y}" width="{CELL - 2}" height="{CELL - 2}" '
                f'rx="4" fill="{fill}"/>{_text(x + CELL / 2 - 1, y + 20, shown, fill=ink)}'
                f"{_dot(x + CELL - 8, y + 6, ink) if head in marks else ''}</g>"
            )
    width, height = LEFT + CELL * mask.num_heads, TOP + CELL * mask.num_layers
    width = max(width, LEFT + RAMP)
    if known:
        for line in wrap(name, int((width - LEFT) / LETTER)):
            height += 18
            cells.append(_text(LEFT, height, line, anchor="start"))
        cells += _ramp(fitted, height + 6)
        height += 36
    signs = [("× switched off", "")] if off else []
    signs += [(mark_name, _dot(LEFT + 4, 0, "currentColor"))] if marks and mark_name else []
    if known and grey is not None and np.any(grey):
        signs.append(("grey: 95 % interval includes 0" + ("; no number: 0.0" if blank else ""), ""))
    for text, sign in signs:
        height += 18
        drawn = _text(LEFT + (12 if sign else 0), 4, text, anchor="start")
        cells.append(f'<g transform="translate(0 {height - 4})">{sign}{drawn}</g>')
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
    stops = scale.light[::-1] if scale.loss else scale.light
    low, high = (scale.hi, scale.lo) if scale.loss else (scale.lo, scale.hi)
    step = RAMP / len(stops)
    colours = [
        f'<rect x="{LEFT + step * k:g}" y="{y:g}" width="{step + 0.5:g}" height="9" fill="{stop}"/>'
        for k, stop in enumerate(stops)
    ]
    ends = [(low, 0.0, "start"), (high, 1.0, "end"), *([(0.0, 0.5, "middle")] if scale.diverging else [])]
    return colours + [
        _text(LEFT + RAMP * place, y + 22, f"{value:.3g}".replace("-", "−"), anchor=anchor)
        for value, place, anchor in ends
    ]


def _dark(fill: str) -> bool:
    red, green, blue = (int(fill[i : i + 2], 16) for i in (1, 3, 5))
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

    def __init__(self, title: str, under: str = "") -> None:
        self.title = title
        self._parts = [f"<h1>{escape(title)}</h1>"]
        if under:
            self.text(under, soft=True)
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
        made = paper(fig).to_html(
            full_html=False,
            include_plotlyjs=self._figures == 1,
            config={"showSendToCloud": False, "displaylogo": False, "modeBarButtons": [["toImage", "resetScale2d"]]},
        )
        self._parts.append(f'<div class="plot">{made}</div>')

    def grid(self, name: str, picture: str) -> None:
        """A grid of heads from ``grid_svg``, with what its colours mean."""
        self._parts.append(f'<p><b>{escape(name)}</b></p><div class="scroll">{picture}</div>')

    def masks(self, named: Sequence[tuple[str, HeadMask]]) -> None:
        """Small grids: rows are layers, columns heads, pale squares are removed heads."""
        grids = "".join(
            f"<figure>{_grid(mask)}<figcaption>{escape(name)}</figcaption></figure>" for name, mask in named
        )
        self._parts.append(f'<div class="masks">{grids}</div>')

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


def _cell(value: Any, column: str = "") -> str:
    if value is None or value != value:
        return "–"
    if column.replace("_", " ") in P_COLUMNS and isinstance(value, float) and 0 <= value < SMALL_P:
        return f"< {SMALL_P:g}"
    if isinstance(value, float):
        return f"{value:.4g}".replace("-", "−")
    return f"{value:,}".replace("-", "−") if isinstance(value, int) else str(value)


def _grid(mask: HeadMask) -> str:
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
