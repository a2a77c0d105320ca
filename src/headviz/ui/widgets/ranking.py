"""The list of heads in order, each with its interval on one axis. A click or Enter selects a head.

A component of its own, because a table widget draws no intervals and would slow down the first page.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import streamlit as st

from ...heads import HeadId, HeadMask, HeadScores
from . import component


def rank_list(
    key: str,
    found: HeadScores,
    names: dict[HeadId, str],
    *,
    mask: HeadMask,
    selected: HeadId | None,
    on_select: Callable[[HeadId], None],
    interval: Callable[[HeadScores, HeadId], str],
    group: str = "",
) -> None:
    """The measured heads of ``found``, the highest first. ``on_select`` runs before the page is drawn; ``interval``
    writes a head's interval for a screen reader. Grids of the same ``group`` show the same chosen head."""
    heads = found.values.shape[1]
    place = {h: h.layer * heads + h.head for h in names}
    order = found.ranked()
    decimals = _decimals(max((abs(float(found.values[h])) for h in order), default=1.0))
    rows = [_row(found, h, names[h], place[h], decimals, interval(found, h)) for h in order]
    ends = [x for r in rows for x in (r["value"], r["low"], r["high"]) if x is not None]

    def chosen() -> None:
        sent = st.session_state[key].get("select")
        if sent:
            on_select(HeadId(*divmod(int(sent["head"]), heads)))

    component("ranking")(
        key=key,
        data={
            "rows": rows,
            "names": ["rank", "head", "value", "95 % interval" if any(r["low"] is not None for r in rows) else ""],
            "label": f"Heads by {found.score}, the highest first",
            "lo": (low := min(ends, default=0.0)),
            "hi": (high := max(ends, default=1.0)),
            "ends": [f"{low:.2g}".replace("-", "−"), f"{high:.2g}".replace("-", "−")],
            "off": [place[h] for h in mask.off if h in place],
            "selected": None if selected is None else place.get(selected),
            "group": group,
        },
        on_select_change=chosen,
    )


def _decimals(largest: float) -> int:
    """Decimals of every row: as many as give the largest value four digits, so that the points line up."""
    return min(9, max(0, 3 - math.floor(math.log10(largest)))) if largest > 0 else 2


def _row(found: HeadScores, head: HeadId, name: str, place: int, decimals: int, interval: str) -> dict[str, Any]:
    value, low, high = (float(t[head]) for t in (found.values, found.interval_low, found.interval_high))
    known = low == low and high == high
    text = f"{value:+.{decimals}f}".replace("-", "−")
    return {
        "head": place,
        "name": name,
        "value": value,
        "text": text,
        "low": low if known else None,
        "high": high if known else None,
        "spoken": f"{name}: {text} {interval}" if known else f"{name}: {text}",
    }
