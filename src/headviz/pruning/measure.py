"""What a step's record says about a model's answers: metrics with intervals, paired differences, agreement."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from ..answers.comparison import Delta
from ..answers.metrics import metric, why_undefined
from ..tasks import Dataset

RESAMPLES = 2000


@dataclass(frozen=True)
class Measured:
    """The parts of a step's record that come from the answers on dev."""

    metrics: dict[str, float | None]
    intervals: dict[str, tuple[float | None, float | None]]
    deltas: dict[str, dict[str, float | None]]
    agreement: float | None
    predicted: dict[str, int] | None = None  # how often each class is predicted
    constant: dict[str, float | None] | None = None  # what the best constant answer reaches
    undefined: dict[str, str] = field(default_factory=dict)  # why a metric has no value, in words


def measured(data: Dataset, mine: np.ndarray, theirs: np.ndarray) -> Measured:
    """What predictions are worth, next to those of θ* with all heads; both in the task's own terms."""
    names, answer = data.task.metrics, data.answer
    said = answer.counts(mine, data.label_names)
    if not answer.has_gold(data):
        same = answer.answers(theirs, theirs, data.label_names).agreement(mine)
        return Measured({}, {}, {}, none(same), said)
    gold = data.gold
    answers = answer.answers(gold, theirs, data.label_names)
    return Measured(
        {name: none(metric(name, mine, gold)) for name in names},
        {name: _ends(answers.interval(mine, name)) for name in names},
        {name: _plain(answers.deltas([mine], name)[0]) for name in names},
        none(answers.agreement(mine)),
        said,
        {name: answers.constant(name) for name in names} if data.labels is not None else None,
        {name: why for name in names if (why := why_undefined(name, mine, gold)) is not None},
    )


def _ends(ends: tuple[float | None, float | None]) -> tuple[float | None, float | None]:
    return none(ends[0]), none(ends[1])


def _plain(d: Delta) -> dict[str, float | None]:
    return {"delta": none(d.delta), "low": none(d.interval_low), "high": none(d.interval_high), "p": none(d.p_value)}


def none(value: float | None) -> float | None:
    """The number; None for NaN and infinity, which JSON does not have."""
    return None if value is None or not math.isfinite(value) else float(value)
