"""The difference between fine-tuned and pre-trained scores: its table, its sentence and its tooltips."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ....analyses.orders import spearman
from ....heads import HeadId, HeadScores, highest
from ...parts import scoring
from ...shell import show
from ...shell.loaders import Shape
from .orders import FEW, interval, two

RANKED = "Fine-tuned minus pre-trained: all measured heads, the greatest rise first."


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


def finding(before: HeadScores, after: HeadScores, shape: Shape) -> str:
    """Which head fine-tuning changed most, and how the two grids correlate."""
    change = after.values - before.values
    if not np.isfinite(change).any():
        return "No head has a value before and after."
    top = highest(np.abs(change))[0]
    said = (
        f"The largest change by fine-tuning is that of {show.head_name(top, shape.rows)}, from "
        f"{show.signed(float(before.values[top]))} to {show.signed(float(after.values[top]))}"
    )
    both = np.isfinite(before.values) & np.isfinite(after.values)
    a, b = before.values[both], after.values[both]
    if a.size < FEW or a.std() == 0 or b.std() == 0:
        return said + "."
    r = spearman(a, b)
    low, high = interval(r, a.size)
    known = f"rank correlation {two(r)} [{two(low)}, {two(high)}] over {a.size} heads"
    if low <= 0 <= high:
        return f"{said}. The scores before are not shown to tell those after: {known}."
    return f"{said}. Before and after, the scores have {known}."


def tips(before: HeadScores, after: HeadScores) -> dict[str, list[list[str]]]:
    """Tooltip lines of the difference: both values and their difference."""
    tables = {"pre-trained": before.values, "fine-tuned": after.values, "change": after.values - before.values}
    return {name: [[show.signed(float(v)) for v in row] for row in table] for name, table in tables.items()}


def tips_of(found: HeadScores, name: str) -> dict[str, list[list[str]]]:
    """Tooltip lines of one of the two grids."""
    lines = scoring.tip_tables(found)
    return {name if k == found.score else k: v for k, v in lines.items()}


def line(head: HeadId, before: HeadScores, after: HeadScores) -> str:
    """The selected head before and after."""
    a, b = float(before.values[head]), float(after.values[head])
    parts = (
        f"{name} {show.signed(value)} {scoring.interval(table, head)}"
        for name, value, table in (("pre-trained", a, before), ("fine-tuned", b, after))
    )
    return "  ·  ".join([*parts, f"change {show.signed(b - a)}"])
