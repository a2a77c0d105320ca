"""A self-contained HTML page for reports: headings, tables, figures and mask grids, every text escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from ..heads import HeadMask

if TYPE_CHECKING:
    import plotly.graph_objects as go

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
.plot text { fill: var(--ink) !important; }
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
        """A plotly figure. The first one embeds the library, so the page needs no network."""
        self._figures += 1
        made = fig.to_html(
            full_html=False,
            include_plotlyjs=self._figures == 1,
            config={"showSendToCloud": False, "displaylogo": False, "modeBarButtons": [["toImage", "resetScale2d"]]},
        )
        self._parts.append(f'<div class="plot">{made}</div>')

    def grid(self, name: str, picture: str) -> None:
        """A grid of heads from ``grid_picture``, with what its colours mean."""
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
