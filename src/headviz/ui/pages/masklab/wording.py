"""The parts of the Mask lab's sentence: which heads are off, and which slices change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....evaluation.verdict import verdict
from ...shell import show

if TYPE_CHECKING:
    from ....heads import HeadId
    from ....tasks import Dataset
    from ...parts.measure import Measured


def slices_said(data: Dataset, found: Measured) -> str:
    """Which slices change by more than their intervals; empty without slices."""
    changes, kind = found.comparison.slices, data.slice_name or "slice"
    clear = sorted(
        (d for d in changes if verdict(d.interval_low, d.interval_high) in ("loss", "gain")),
        key=lambda d: -abs(d.delta),
    )
    if not changes:
        return ""
    if not clear:
        return f" No {kind} changes by more than its interval."
    level = found.comparison.primary.constant
    named = ", ".join(
        f"{d.name} {show.metric(d.full, d.scale)} → {show.metric(d.masked, d.scale)}" for d in clear[:NAMED]
    )
    of_chance = "" if level is None else f" (one class for all: {level:.2f})"
    rest = len(clear) - NAMED
    end = f"{rest} more change clearly" if rest > 0 else f"no other {kind} changes by more than its interval"
    return f" {named[:1].upper()}{named[1:]}{of_chance}; {end}."


NAMED = 3  # heads or slices that a sentence names


def heads_said(off: Sequence[HeadId], rows: Sequence[str] | None) -> str:
    return f"{len(off)} heads" if len(off) > NAMED else " and ".join(show.head_name(h, rows) for h in off)
