"""The grid of heads, in which a click selects a head or switches it off, and the list of heads in order.

Components of their own: a plotly heatmap reports no clicks on cells, 144 checkboxes are three times slower, and a
table widget draws no intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from ...display.figures.style import Scale, scale_for
from ...heads import HeadId, HeadMask, HeadScores
from . import component, last_edit, next_edit, words_of_file


@dataclass(frozen=True)
class Look:
    """How a grid is drawn, apart from its values."""

    name: str = "score"  # what the colours mean, next to the legend
    title: str = ""
    scale: Scale | None = None  # None: fitted to the values
    numbers: bool = False  # write the values into the cells where there is room
    digits: int | None = None  # decimals of the numbers; None: as many as the largest value needs
    blank_zeros: bool = False  # no number where there is nothing
    large: bool = False  # digits to be read from afar
    compact: bool = False  # no tooltip and no save buttons, for small multiples
    width: float = 40.0  # the widest the grid may grow, in rem
    file: str = "heads"  # name of the saved picture
    caption: str = ""  # and what it shows; by default the title


def head_grid(
    key: str,
    present: HeadMask,
    values: Any = None,
    *,
    mask: HeadMask | None = None,
    selected: HeadId | None = None,
    tips: Mapping[str, Sequence[Sequence[str]]] | None = None,
    marks: Iterable[HeadId] = (),
    mark_name: str = "significant",
    undecided: Any = None,
    look: Look | None = None,
    group: str = "",
    rows: Sequence[str] | None = None,
    on_select: Callable[[HeadId], None] | None = None,
    on_edit: Callable[[list[int], list[int] | None], None] | None = None,
) -> None:
    """Draw the L×H grid of ``present``, whose off heads are pruned.

    ``values`` is an L×H table (NaN = not measured), or None for a grid without colours. ``tips`` has one L×H table of
    texts for each line of the tooltip. ``undecided`` is an L×H table of the heads whose value is not significantly
    different from 0: they have its colour. Grids of the same ``group`` point at a head and choose it together. ``rows``
    names the rows if they are not plain layers.
    With ``on_edit`` a click switches a head, and ``on_edit`` gets the flat places of the heads that are off, and of
    those before a double click; Shift, the key I or a long press then selects. Without it a click selects a head.
    Callbacks run before the page is drawn.
    """
    look = look or Look()
    flat = None if values is None else [_number(v) for row in values for v in row]
    scale = look.scale or (scale_for(values) if flat else None)

    def edited() -> None:
        if on_edit and (sent := next_edit(key)):
            on_edit(list(sent["off"]), sent.get("base"))

    def chosen() -> None:
        sent = st.session_state[key].get("select")
        if sent and on_select:
            on_select(HeadId(*divmod(int(sent["head"]), present.num_heads)))

    def places(heads: Iterable[HeadId]) -> list[int]:
        return [_place(head, present.num_heads) for head in heads]

    component("grid")(
        key=key,
        data={
            "rows": present.num_layers,
            "row_names": list(rows) if rows else None,
            "heads": present.num_heads,
            "values": flat,
            "scale": None if scale is None else _plain(scale),
            "off": [] if mask is None else places(mask.off),
            "removed": places(present.off),
            "selected": None if selected is None else _place(selected, present.num_heads),
            "marks": places(marks),
            "mark_name": mark_name,
            "grey": [] if undecided is None else np.flatnonzero(undecided).tolist(),
            "group": group,
            "tips": [[name, [t for row in table for t in row]] for name, table in (tips or {}).items()],
            "mode": "toggle" if on_edit else "select",
            "chooses": on_select is not None,
            "seq": last_edit(key),
            "name": look.name,
            "title": look.title,
            "label": f"{look.title or look.name}: {present.num_layers} layers by {present.num_heads} heads"
            + (f"; {look.name}" if look.title and values is not None else ""),
            "numbers": look.numbers,
            "digits": decimals(scale, flat) if look.digits is None else look.digits,
            "compact": look.compact,
            "large": look.large,
            "blank_zeros": look.blank_zeros,
            "max": look.width,
            "save": words_of_file(look.file, look.caption or f"{look.title or look.name}: layers down, heads across."),
        },
        on_edit_change=edited,
        on_select_change=chosen,
    )


def decimals(scale: Scale | None, flat: Sequence[float | None] | None) -> int:
    """Decimals that leave the largest value two significant digits; tens get one where most values are below ten."""
    end = 0.0 if scale is None else max(abs(scale.lo), abs(scale.hi))
    if 10 <= end < 100 and np.median([abs(v) for v in flat or () if v is not None] or [end]) < 10:
        return 1
    return 2 if end == 0 else min(3, max(0, 1 - math.floor(math.log10(end))))


def _place(head: HeadId, num_heads: int) -> int:
    return head.layer * num_heads + head.head


def _number(value: Any) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None


def _plain(scale: Scale) -> dict[str, Any]:
    return {"lo": scale.lo, "hi": scale.hi, "loss": scale.loss, "light": list(scale.light), "dark": list(scale.dark)}


def rank_list(
    key: str,
    scores: HeadScores,
    names: dict[HeadId, str],
    *,
    mask: HeadMask,
    selected: HeadId | None,
    on_select: Callable[[HeadId], None],
    interval: Callable[[HeadScores, HeadId], str],
    group: str = "",
) -> None:
    """The measured heads of ``scores``, the highest first. ``on_select`` runs before the page is drawn; ``interval``
    writes a head's interval for a screen reader. Grids of the same ``group`` show the same chosen head."""
    heads = scores.values.shape[1]
    order = scores.ranked()
    decimals = _decimals(max((abs(float(scores.values[h])) for h in order), default=1.0))
    rows = [_row(scores, h, names[h], decimals, interval(scores, h)) for h in order]
    ends = [x for r in rows for x in (r["value"], r["low"], r["high"]) if x is not None]
    low, high = min(ends, default=0.0), max(ends, default=1.0)

    def chosen() -> None:
        sent = st.session_state[key].get("select")
        if sent:
            on_select(HeadId(*divmod(int(sent["head"]), heads)))

    component("ranking")(
        key=key,
        data={
            "rows": rows,
            "names": ["rank", "head", "value", "95 % interval" if any(r["low"] is not None for r in rows) else ""],
            "label": f"Heads by {scores.score}, the highest first",
            "lo": low,
            "hi": high,
            "ends": [f"{low:.2g}".replace("-", "−"), f"{high:.2g}".replace("-", "−")],
            "off": [_place(h, heads) for h in mask.off if h in names],
            "selected": _place(selected, heads) if selected in names else None,
            "group": group,
        },
        on_select_change=chosen,
    )


def _decimals(largest: float) -> int:
    """Decimals of every row: as many as give the largest value four digits, so that the points line up."""
    return min(9, max(0, 3 - math.floor(math.log10(largest)))) if largest > 0 else 2


def _row(scores: HeadScores, head: HeadId, name: str, decimals: int, interval: str) -> dict[str, Any]:
    value, low, high = (float(t[head]) for t in (scores.values, scores.interval_low, scores.interval_high))
    bounded = low == low and high == high
    text = f"{value:+.{decimals}f}".replace("-", "−")
    return {
        "head": _place(head, scores.values.shape[1]),
        "name": name,
        "value": value,
        "text": text,
        "low": low if bounded else None,
        "high": high if bounded else None,
        "spoken": f"{name}: {text} {interval}" if bounded else f"{name}: {text}",
    }
