"""How far two orders of the heads agree, and what fine-tuning changed, in one sentence each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import atanh, erfc, sqrt, tanh

import numpy as np
from numpy.typing import NDArray

from ...analyses.common import SIGNIFICANT
from ...display import numbers
from ...heads import HeadId, HeadScores, head_name, highest
from ...scores.catalogue import correlates
from ...statistics.resampling import rank_correlation
from ...statistics.significance import benjamini_hochberg
from ..parts import scoring
from ..parts.scoring import ENOUGH, LOSSES
from ..shell.loaders import Shape
from ..shell.view import COST

FEW = 10  # heads, or heads with a clear cost, below which an order is not judged
CLOSE = 0.7  # rank correlation from which two orders count as nearly the same
WEAK = 0.3  # and below which one is of no use for the other
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


def clear(scores: HeadScores) -> NDArray[np.bool_]:
    """The heads with a significant cost, all heads tested together: of 144 intervals some exclude 0 by chance.

    A table has intervals but no p values. They are those of a normal error as wide as the interval's lower half.
    """
    half = scores.values - scores.interval_low
    z = np.divide(scores.values, half / Z, out=np.full(half.shape, np.nan), where=half > 0)
    p = np.array([erfc(abs(float(v)) / sqrt(2)) for v in z.ravel()]).reshape(z.shape)
    return (benjamini_hochberg(p) < SIGNIFICANT) & (scores.interval_low > 0)


def costs(scores: HeadScores, rows: Sequence[str] | None, hint: str = "") -> str:
    """How many heads cost something, and which one most. ``hint`` is added where none does."""
    examples, tested = scoring.examples_of(scores), int(np.isfinite(scores.values).sum())
    significant = clear(scores)
    count = int(significant.sum())
    values = np.where(significant, scores.values, np.nan) if count else scores.values
    top = next((h for h in scores.ranked() if values[h] == values[h]), None)
    highest = 0.0 if top is None else float(values[top])
    name, cost = "" if top is None else head_name(top, rows), amount(scores, highest)
    same = int((values == highest).sum())
    if count == 1:
        return f"On {examples} 1 of {tested} heads clearly costs something (q < 0.05): {name}, {cost}."
    if count:
        most = f"{name} costs most" if same == 1 else f"{same} cost most"
        return f"On {examples} {count} of {tested} heads clearly cost something (q < 0.05); of these {most}: {cost}."
    sentence = f"On {examples} no head's cost can be shown to differ from 0 with all {tested} tested at once"
    if highest > 0:
        holder = f"{name} has the highest" if same == 1 else f"{same} share the highest"
        sentence += f"; {holder}, {cost}"
    few = scores.samples < ENOUGH
    advice = "More examples (Options) can tell smaller costs from 0." if few else "One head off (Analyses) takes all."
    return f"{sentence}. {advice} {hint}".rstrip()


def amount(scores: HeadScores, value: float) -> str:
    """A value in a sentence."""
    if scores.score == COST:
        return f"{value:.1f} points"
    return f"{value:.3f} of loss" if scores.score in LOSSES else numbers.signed(value)


def sentence(
    first: HeadScores,
    second: HeadScores,
    rows: Sequence[str] | None,
    carries: Mapping[HeadId, str] | None = None,
    growing: bool = False,
    hint: str = "",
) -> str:
    """How far the order of ``first`` agrees with that of ``second``, and where the head on top of ``second`` stands.

    Costs are in points. While ``first`` is growing it decides nothing: the interval is over heads, not examples.
    """
    a, b = (word(t.score) for t in (first, second))
    measured = np.isfinite(first.values) & np.isfinite(second.values)
    n = int(measured.sum())
    if first.score == second.score:
        return f"Both grids show {first.score}."
    if second.score in LOSSES and clear(second).sum() < FEW:
        return costs(second, rows, hint) + (" Too few for an order." if clear(second).any() else "")
    if n < FEW:
        return f"Too few heads have both values to compare {a} with {b}."
    r = rank_correlation(first.values, second.values)
    if r != r:
        same = a if np.ptp(first.values[measured]) == 0 else b
        return f"All heads have the same {same}, so there is no order to compare."
    low, high = interval(r, n)
    correlation = f"{correlation_text(r, n)}, 0 is chance"
    most = "cost most" if b == "cost" else f"are highest by {b}"
    if growing:
        so_far = f"On {first.samples:,} examples so far, {a} and {b} have {correlation}."
        return f"{so_far} What that tells comes with the last one."
    if low <= 0 <= high and max(-low, high) > WEAK:
        verdict = f"The data cannot say whether {a} tells which heads {most}"
    elif low <= 0 <= high:
        verdict = f"{a.capitalize()} does not tell which heads {most}"
    elif r < 0:
        verdict = f"{a.capitalize()} tends to be low where {b} is high"
    elif r < CLOSE:
        verdict = f"{a.capitalize()} tells only in part which heads {most}"
    else:
        verdict = f"{a.capitalize()} tells which heads {most}"
    top = second.ranked()[0]
    if not np.isfinite(first.values[top]):
        return f"{verdict}: {correlation}."
    ability = f"; carries {carries[top]}" if carries and top in carries else ""
    value = float(second.values[top])
    count = int((second.values == value).sum())
    highest = "costliest" if b == "cost" else f"highest by {b}"
    highest = f"the {highest}" if count == 1 else f"one of {count} {highest}"
    head = f"{head_name(top, rows)}, {highest} ({amount(second, value)}{ability})"
    return f"{verdict}: {correlation}. {head}, is number {scoring.rank(first, top)} by {a}."


def correlation_text(r: float, n: int) -> str:
    """A rank correlation over ``n`` heads with its interval."""
    value, low, high = (f"{v:+.2f}".replace("-", "−") for v in (r, *interval(r, n)))
    return f"rank correlation {value} [{low}, {high}] over {n} heads"


# ---- fine-tuned minus pre-trained

CHANGES_RANKED = "Fine-tuned minus pre-trained: all measured heads, the greatest rise first."


def difference(before: HeadScores, after: HeadScores) -> HeadScores:
    """Fine-tuned minus pre-trained. Without intervals: both tables use the same examples, so theirs do not add up."""
    unknown = np.full_like(after.values, np.nan)
    return replace(
        after,
        score=f"change of {after.score}",
        values=after.values - before.values,
        stderr=unknown,
        interval_low=unknown,
        interval_high=unknown,
        samples=min(before.samples, after.samples),
        stability=float("nan"),
        mask=before.mask | after.mask,
        notes=(),
    )


def change_sentence(before: HeadScores, after: HeadScores, shape: Shape) -> str:
    """Which head fine-tuning changed most, and how the two grids correlate."""
    change = after.values - before.values
    if not np.isfinite(change).any():
        return "No head has a value before and after."
    top = highest(np.abs(change))[0]
    sentence = (
        f"The largest change by fine-tuning is that of {head_name(top, shape.rows)}, from "
        f"{numbers.signed(float(before.values[top]))} to {numbers.signed(float(after.values[top]))}"
    )
    measured = np.isfinite(before.values) & np.isfinite(after.values)
    a, b = before.values[measured], after.values[measured]
    if a.size < FEW or a.std() == 0 or b.std() == 0:
        return sentence + "."
    r = rank_correlation(a, b)
    low, high = interval(r, a.size)
    correlation = correlation_text(r, a.size)
    if low <= 0 <= high:
        return f"{sentence}. The scores before are not shown to tell those after: {correlation}."
    return f"{sentence}. Before and after, the scores have {correlation}."


def change_tips(before: HeadScores, after: HeadScores) -> dict[str, list[list[str]]]:
    """Tooltip lines of the difference: both values and their difference."""
    tables = {"pre-trained": before.values, "fine-tuned": after.values, "change": after.values - before.values}
    return {name: [[numbers.signed(float(v)) for v in row] for row in table] for name, table in tables.items()}


def tips_of_one(scores: HeadScores, name: str) -> dict[str, list[list[str]]]:
    """Tooltip lines of one of the two grids."""
    return {name if key == scores.score else key: lines for key, lines in scoring.tip_tables(scores).items()}


def change_line(head: HeadId, before: HeadScores, after: HeadScores) -> str:
    """The selected head before and after."""
    a, b = float(before.values[head]), float(after.values[head])
    parts = (
        f"{name} {numbers.signed(value)} {scoring.interval(table, head)}"
        for name, value, table in (("pre-trained", a, before), ("fine-tuned", b, after))
    )
    return "  ·  ".join([*parts, f"change {numbers.signed(b - a)}"])
