"""A grid of heads as a picture for a report: what the dashboard's grid shows, without its clicks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from ..display.figures.palette import Scale, colour, scale_for
from ..heads import HeadId, HeadMask, head_name

CELL, LEFT, TOP = 34, 78, 18
EMPTY = "#e4e8eb"


def grid_svg(
    values: Any,
    mask: HeadMask,
    *,
    scale: Scale | None = None,
    rows: Sequence[str] | None = None,
    blank: bool = False,
    grey: Any = None,
) -> str:
    """Layers down, heads across. ``values`` is [L, H] or None; heads that are off carry a cross.

    ``blank`` leaves out the numbers of heads whose value is zero; ``grey`` is a table of those that have the
    colour of zero.
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
            said = f"{value:.{digits}f}".replace("-", "−") if np.isfinite(value) else ""
            shown = "×" if head in off else "" if blank and value == 0 else said
            title = f"{head_name(head, rows)}{said and f': {said}'}{', switched off' if head in off else ''}"
            x, ink = LEFT + CELL * j, "#ffffff" if _dark(fill) else "#1c2126"
            cells.append(
                f'<g><title>{escape(title)}</title><rect x="{x}" y="{y}" width="{CELL - 2}" height="{CELL - 2}" '
                f'rx="4" fill="{fill}"/>{_text(x + CELL / 2 - 1, y + 20, shown, fill=ink)}</g>'
            )
    width, height = LEFT + CELL * mask.num_heads, TOP + CELL * mask.num_layers
    return (
        f'<svg class="heads" role="img" aria-label="grid of {mask.num_layers} by {mask.num_heads} heads" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">{"".join(cells)}</svg>'
    )


def _text(x: float, y: float, text: str, *, anchor: str = "middle", fill: str = "currentColor") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="11" fill="{fill}">{escape(text)}</text>'


def _dark(fill: str) -> bool:
    red, green, blue = (int(fill[i : i + 2], 16) for i in (1, 3, 5))
    return 0.3 * red + 0.59 * green + 0.11 * blue < 130
