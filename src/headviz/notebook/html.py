"""A view as a small piece of HTML: a finding, a grid of heads, tables, and all of it once more as text.

Colours come with their own transparency and the ink is the page's, so the same piece reads on a light and on a dark
page. Nothing is loaded from anywhere, and every text is escaped.
"""

from __future__ import annotations

from html import escape
from typing import Any

from ..commands.view_text import text_of
from ..display.figures.palette import BETTER, NEUTRAL, WORSE, scale_for
from ..display.table import NOTEBOOK, Table
from ..display.views import Grid, View
from ..heads import HeadId, head_name

CELL, LEFT, TOP = 15, 30, 14  # pixels
MOST_CELLS, MOST_ROWS = 64, 16  # of a grid in each direction, and of a table
SOFT = "opacity:.7;font-size:.9em"
TABLE = "border-collapse:collapse;margin:.4em 0;font-variant-numeric:tabular-nums"
LINE = "padding:.1em .7em .1em 0;border-bottom:1px solid rgba(140,146,152,.3)"


def html_of(view: View, title: str) -> str:
    """The view under its title."""
    parts = [f"<b>{escape(title)}</b>"]
    parts += [f'<div style="{SOFT}">{escape(f"{name}: {value}")}</div>' for name, value in view.about]
    parts.append(f"<div>{escape(view.finding)}</div>")
    if view.grid is not None:
        parts.append(grid_svg(view.grid, view.rows))
        parts.append(f'<div style="{SOFT}">{escape(view.grid.caption)}</div>')
    parts += [table_html(part, view.rows) for part in view.parts if isinstance(part, Table)]
    parts += [f'<div style="{SOFT}">{escape(said)}</div>' for said in (view.warning, view.note) if said]
    twin = f"<details><summary>as text</summary><pre>{escape(text_of(view))}</pre></details>"
    return f'<div class="headviz" style="line-height:1.4;max-width:60em;overflow-x:auto">{"".join(parts)}{twin}</div>'


def grid_svg(grid: Grid, names: tuple[str, ...] = ()) -> str:
    """One square for each head; blue above zero, orange below, hollow where nothing was measured."""
    layers, heads = (min(n, MOST_CELLS) for n in grid.values.shape)
    end = max(map(abs, _ends(grid)))
    squares = [_square(grid, HeadId(layer, head), end, names) for layer in range(layers) for head in range(heads)]
    words = [
        f'<text x="{LEFT - 4}" y="{TOP + layer * CELL + 10}" text-anchor="end">'
        f"{escape(names[layer] if names else f'L{layer}')}</text>"
        for layer in range(layers)
    ]
    words += [
        f'<text x="{LEFT + head * CELL + 7}" y="{TOP - 4}" text-anchor="middle">{head}</text>' for head in range(heads)
    ]
    width, height = LEFT + heads * CELL + 2, TOP + layers * CELL + 2
    left = grid.values.shape[0] > layers or grid.values.shape[1] > heads
    said = f'<div style="{SOFT}">The first {layers}×{heads} heads.</div>' if left else ""
    return (
        f'<svg role="img" aria-label="{escape(grid.caption)}" width="{width}" height="{height}" fill="currentColor" '
        f'font-size="9" style="display:block;margin:.4em 0">{"".join(words)}'
        f'<g fill="{BETTER}">{"".join(squares)}</g></svg>{said}'
    )


def _ends(grid: Grid) -> tuple[float, float]:
    scale = scale_for([float(v) for v in grid.values.ravel()])
    return scale.lo, scale.hi


def _square(grid: Grid, head: HeadId, end: float, names: tuple[str, ...]) -> str:
    value = float(grid.values[head])
    look, said = f'stroke="{NEUTRAL}" fill="none" opacity=".6"', "–"
    if value == value:
        look, said = f'opacity="{min(1.0, 0.06 + 0.94 * abs(value) / end):.2f}"', grid.form % value
        look += f' fill="{WORSE}"' if value < 0 else ""
    if head in grid.marks:
        look += ' stroke="currentColor" stroke-width="1.5"'
    shape = f"M{LEFT + head.head * CELL} {TOP + head.layer * CELL}h{CELL - 1}v{CELL - 1}h-{CELL - 1}z"
    return f'<path d="{shape}" {look}><title>{escape(head_name(head, names))} {said}</title></path>'


def table_html(given: Table, names: tuple[str, ...] = ()) -> str:
    """The first rows of a table, with its caption."""
    titles, cells = given.titles(NOTEBOOK), given.texts(NOTEBOOK, names)[: min(given.shortened or MOST_ROWS, MOST_ROWS)]
    sides = [_side([row[i] for row in given.rows]) for i, _ in given.shown(NOTEBOOK)]
    head = "".join(
        f'<th style="{LINE};text-align:{side}">{escape(c)}</th>' for c, side in zip(titles, sides, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="{LINE};text-align:{side}">{escape(text)}</td>' for text, side in zip(row, sides, strict=True)
        )
        + "</tr>"
        for row in cells
    )
    left = f" ({len(cells)} of {len(given.rows)} rows)" if len(cells) < len(given.rows) else ""
    caption = f'<div style="{SOFT}">{escape(given.caption + left)}</div>' if given.caption or left else ""
    return f'{caption}<table class="headviz" style="{TABLE}"><tr>{head}</tr>{body}</table>'


def _side(column: list[Any]) -> str:
    """Numbers stand at the right, all else at the left."""
    return "right" if all(isinstance(v, int | float | None) for v in column) else "left"
