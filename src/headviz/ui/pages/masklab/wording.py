"""The parts of the Mask lab's sentence: which heads are off, and which slices change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ....answers.constant import remark_on
from ....display.comparison import points_changed
from ....evaluation.mask_evaluator import ENOUGH
from ....evaluation.verdict import clear, excluded, verdict
from ....statistics.significance import LEVEL, holm
from ...shell import show

if TYPE_CHECKING:
    from ....analyses.ablation import Ablation
    from ....answers.comparison import Delta
    from ....heads import HeadId
    from ....tasks import Dataset
    from ...parts.measure import Measured

DELTA = r"\Delta = m(\text{masked}) - m(\text{full})"
PAIRED = (
    "Interval: 95 %, paired on the same examples; exact for accuracy, after a few more changed answers have been "
    "counted each way for other metrics, resampled for BLEU. p: exact McNemar test for accuracy, paired bootstrap for "
    "BLEU, paired swap test for other metrics. A loss or a gain is clear where the interval excludes zero. Its "
    "lower end is the loss that is excluded, for accuracy exceeded in at most 2.5 %."
)
EARLY = (
    "A sample of the examples, the classes in proportion, looked at again each time it has doubled. The interval is "
    "wide enough for that; p and the slices come with the last example."
)
FEW = 32  # examples below which no interval is said


def clear_slices(data: Dataset, found: Measured) -> str:
    """The slices that change for certain, by Holm's correction for their number, the most first; empty without one."""
    slices = found.comparison.slices
    low, high, p = ([getattr(d, name) for d in slices] for name in ("interval_low", "interval_high", "p_value"))
    sure = sorted((d for d, c in zip(slices, clear(low, high, holm(p), 1 - LEVEL), strict=True) if c), key=_size)
    if not sure:
        return ""
    kind = data.slice_name or "slice"
    named = ", ".join(
        f"{d.name} {show.metric(d.full, d.scale)} → {show.metric(d.masked, d.scale)}{_chance(d)}" for d in sure[:NAMED]
    )
    rest = len(sure) - NAMED
    more = f"{rest} more change{'s' if rest == 1 else ''} for certain"
    end = more if rest > 0 else f"no other {kind} changes for certain"
    return f"{named}; {end} (Holm)"


def _size(d: Delta) -> float:
    return -abs(d.delta)


def _chance(d: Delta) -> str:
    """What one class for all reaches on a slice."""
    return "" if d.constant is None else f" (chance {d.constant:.2f})"


def slices_said(data: Dataset, found: Measured) -> str:
    """What is said of the slices where none changes for certain; empty without slices."""
    kind = data.slice_name or "slice"
    return f" No {kind} changes for certain (Holm)." if found.comparison.slices else ""


NAMED = 3  # heads or slices that a sentence names


def heads_said(off: Sequence[HeadId], rows: Sequence[str] | None) -> str:
    if len(off) > NAMED:
        return f"{len(off)} heads"
    names = [show.head_name(h, rows) for h in off]
    return " and ".join([", ".join(names[:-1]), *names[-1:]] if len(names) > 1 else names)


def alike(found: Measured, labels: Sequence[str]) -> str:
    """What is said first where (nearly) all answers are of one class; a few answers may be alike by chance."""
    if found.comparison.flips is None or not (found.whole or len(found.gold) >= ENOUGH):
        return ""
    said = remark_on(found.masked, found.gold, labels)
    return f"{said} " if said else ""


def early(found: Measured, off: str) -> str:
    """What the examples counted so far say."""
    d = found.comparison.primary
    if len(found.gold) < FEW:
        change = points_changed(d.delta, None, None, d.scale)
        return f"Without {off}: {change} {found.counted}, too few to say what it costs."
    low, high = d.interval_low, d.interval_high
    known = verdict(low, high) != "unknown"
    change = points_changed(d.delta, low if known else None, high if known else None, d.scale)
    return f"Without {off}: {change} {found.counted}."


def cheapest(table: Ablation, best: HeadId, name: str, margin: float) -> str:
    """What the head costs whose removal costs least; it was chosen among all, so its own interval is not enough."""
    tried, scale, low = int(np.isfinite(table.values).sum()), table.subject.scale, float(-table.interval_high[best])
    known = f"; {excluded(low, scale, margin)}"
    if table.significant()[best]:
        known = ""
    elif low > 0:
        known = f"; its own interval excludes a loss, but not with all {tried} tested at once"
    change = show.points(-float(table.values[best]), scale)
    same = int((table.values == table.values[best]).sum())
    even = f" ({same} heads cost the same)" if same > 1 else ""
    chosen = f" It is the best of {tried}: expect a little less on new examples." if tried > 1 else ""
    return f"Next cheapest: **{name}**{even}, {change} points{known}.{chosen}"
