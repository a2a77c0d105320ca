"""The parts of the Mask lab's sentence: which heads are off, and which slices change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....evaluation.constant import remark_on
from ....evaluation.growing import ENOUGH
from ....evaluation.verdict import verdict
from ...shell import show

if TYPE_CHECKING:
    from ....evaluation.comparison import Delta
    from ....heads import HeadId
    from ....tasks import Dataset
    from ...parts.measure import Measured

DELTA = r"\Delta = m(\text{masked}) - m(\text{full})"
PAIRED = (
    "Interval: 95 %, paired on the same examples, after a few more changed answers have been counted each way; "
    "resampled for BLEU. p: exact McNemar test for accuracy, paired bootstrap for BLEU, paired swap test for other "
    "metrics. A loss or a gain is clear where the interval excludes zero."
)
EARLY = (
    "A sample of the examples, the classes in proportion. The interval is wide enough for looking again as it grows; p "
    "and the slices come with the last example."
)


def clear_slices(data: Dataset, found: Measured) -> str:
    """The slices that change by more than their intervals, the most first; empty if there is none."""
    clear = sorted(
        (d for d in found.comparison.slices if verdict(d.interval_low, d.interval_high) in ("loss", "gain")),
        key=lambda d: -abs(d.delta),
    )
    if not clear:
        return ""
    kind = data.slice_name or "slice"
    named = ", ".join(
        f"{d.name} {show.metric(d.full, d.scale)} → {show.metric(d.masked, d.scale)}{_chance(d)}" for d in clear[:NAMED]
    )
    rest = len(clear) - NAMED
    end = f"{rest} more change clearly" if rest > 0 else f"no other {kind} changes by more than its interval"
    return f"{named}; {end}"


def _chance(d: Delta) -> str:
    """What one class for all reaches on a slice."""
    return "" if d.constant is None else f" (chance {d.constant:.2f})"


def slices_said(data: Dataset, found: Measured) -> str:
    """What is said of the slices where none changes clearly; empty without slices."""
    kind = data.slice_name or "slice"
    return f" No {kind} changes by more than its interval." if found.comparison.slices else ""


NAMED = 3  # heads or slices that a sentence names


def heads_said(off: Sequence[HeadId], rows: Sequence[str] | None) -> str:
    return f"{len(off)} heads" if len(off) > NAMED else " and ".join(show.head_name(h, rows) for h in off)


def alike(found: Measured, labels: Sequence[str]) -> str:
    """What is said first where (nearly) all answers are of one class; a few answers may be alike by chance."""
    if found.comparison.flips is None or not (found.whole or len(found.gold) >= ENOUGH):
        return ""
    said = remark_on(found.masked, found.gold, labels)
    return f"{said} " if said else ""


def early(found: Measured, off: str) -> str:
    """What the examples counted so far say."""
    d = found.comparison.primary
    ends = [d.interval_low, d.interval_high]
    known = "" if verdict(*ends) == "unknown" else f" [{', '.join(show.points(end, d.scale) for end in ends)}]"
    return f"Without {off}: {show.points(d.delta, d.scale)} points{known} {found.counted}."


def less(now: int, before: int) -> str:
    """The change in per cent."""
    return f"{100 * (now / before - 1):+.1f} %".replace("-", "−").replace("+0.0", "±0")
