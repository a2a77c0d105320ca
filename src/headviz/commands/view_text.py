"""Views of analyses as text; the numbers are those of the JSON."""

from __future__ import annotations

from typing import Any

from ..analyses.published import PublishedTable
from ..display.table import TERMINAL, Grid, Table, View
from .common import table


class Shown(dict[str, Any]):
    """A result as JSON, together with the view that its text is made of."""

    def __init__(self, content: dict[str, Any], view: View) -> None:
        super().__init__(content)
        self.view = view


def text_of(view: View) -> str:
    """What was measured, the finding, then every table; figures are drawn by ``--figure`` only."""
    parts = [table(view.about) if view.about else "", view.finding]
    if view.grid is not None:
        parts.append(_grid(view.grid, view.rows))
    parts += [_table(part, view.rows) for part in view.parts if isinstance(part, Table)]
    return "\n\n".join(filter(None, (*parts, view.warning, view.note)))


def published_text(published: PublishedTable) -> str:
    """A published table under a line that says so."""
    return f"published: {published.title} ({published.about})\n" + table([published.header, *published.rows])


def _grid(grid: Grid, rows: tuple[str, ...]) -> str:
    lines = [["layer", *(f"H{h}" for h in range(grid.values.shape[1]))]]
    for layer, values in enumerate(grid.values):
        name = rows[layer] if rows else f"L{layer}"
        cells = [
            ("–" if v != v else grid.form % v) + ("*" if (layer, head) in grid.marks else " ")
            for head, v in enumerate(values)
        ]
        lines.append([name, *cells])
    return f"{grid.caption}\n" + table(lines) + (f"\n* {grid.mark_name}" if grid.mark_name else "")


def _table(shown: Table, names: tuple[str, ...]) -> str:
    cells = shown.texts(TERMINAL, names)[: shown.shortened]
    left = f" ({len(cells)} of {len(shown.rows)})" if len(cells) < len(shown.rows) else ""
    return "\n".join(filter(None, (shown.caption + left, table([shown.titles(TERMINAL), *cells]))))
