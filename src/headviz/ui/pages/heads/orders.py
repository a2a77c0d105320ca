"""How far two orders of the heads agree, in one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import atanh, sqrt, tanh

import numpy as np

from ....evaluation.verdict import undecided
from ....heads import HeadId, HeadScores
from ....scores.catalogue import correlates
from ....scores.correlation import spearman
from ...parts.cost import ENOUGH
from ...shell import show
from ...shell.view import COST

FEW = 10  # heads below which nothing is said of an order
CLOSE = 0.7  # rank correlation from which two orders count as nearly the same
Z = 1.96


def word(score: str) -> str:
    """What a score is called in a sentence."""
    return "agreement" if correlates(score) else "cost" if score == COST else score


def interval(r: float, n: int) -> tuple[float, float]:
    """The 95 % interval of a rank correlation over ``n`` heads (Fisher's z with the variance of Bonett and Wright)."""
    if abs(r) >= 1:
        return r, r
    half = Z * sqrt((1 + r * r / 2) / (n - 3))
    return tanh(atanh(r) - half), tanh(atanh(r) + half)


def costs(found: HeadScores, rows: Sequence[str] | None) -> str:
    """What the costs alone say, in points: how many heads cost something, and which one most."""
    known = np.isfinite(found.values)
    lost = known & ~undecided(found.interval_low, found.interval_high) & (found.values > 0)
    where, count = f"On {found.samples:,} examples", int(lost.sum())
    if count == 0:
        more = (
            "More examples (Options) show smaller costs."
            if found.samples < ENOUGH
            else "One head off (Analyses) takes all."
        )
        return f"{where} no head's cost can be told from 0. {more}"
    top = max(map(HeadId._make, np.argwhere(lost).tolist()), key=lambda h: float(found.values[h]))
    return (
        f"{where} {count} of {int(known.sum())} heads clearly cost{'s' if count == 1 else ''} something; "
        f"{show.head_name(top, rows)} costs most: {show.number(float(found.values[top]), 2)} points."
    )


def sentence(
    first: HeadScores, second: HeadScores, rows: Sequence[str] | None, carries: Mapping[HeadId, str] | None = None
) -> str:
    """How far the order of ``first`` agrees with that of ``second``, and where the head on top of ``second`` stands.

    Costs are in points.
    """
    a, b = (word(t.score) for t in (first, second))
    both = np.isfinite(first.values) & np.isfinite(second.values)
    n = int(both.sum())
    if first.score == second.score:
        return f"Both grids show {first.score}."
    if second.score == COST and undecided(second.interval_low, second.interval_high).all():
        return costs(second, rows)
    if n < FEW:
        return f"Too few heads have both values to compare {a} with {b}."
    r = float(spearman(first.values[both][None], second.values[both][None])[0])
    if r != r:
        return (
            f"All heads have the same {a if np.ptp(first.values[both]) == 0 else b}, so there is no order to compare."
        )
    low, high = interval(r, n)
    known = f"rank correlation {_two(r)} [{_two(low)}, {_two(high)}] over {n} heads, 0 is chance"
    most = "cost most" if b == "cost" else f"have the highest {b}"
    if low <= 0 <= high:
        said = f"{a.capitalize()} does not tell which heads {most}: {known}"
    elif r < 0:
        said = f"{a.capitalize()} is low where {b} is high: {known}"
    elif r < CLOSE:
        said = f"{a.capitalize()} tells only in part which heads {most}: {known}"
    else:
        said = f"{a.capitalize()} tells which heads {most}: {known}"
    top, place = second.ranked()[0], first.ranked()
    if top not in place:
        return f"{said}."
    named = f"; carries {carries[top]}" if carries and top in carries else ""
    value = float(second.values[top])
    much = f"{show.number(value, 2)} points" if second.score == COST else show.signed(value)
    highest = "the costliest" if b == "cost" else f"the highest by {b}"
    return (
        f"{said}. {show.head_name(top, rows)}, {highest} ({much}{named}), is number {place.index(top) + 1} of "
        f"{len(place)} by {a}."
    )


def _two(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")
