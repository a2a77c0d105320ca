"""What a step's record says about a model's answers: metrics with intervals, paired differences, agreement."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..evaluation.comparison import Answers, Delta, TextAnswers, deltas
from ..evaluation.constant import counts
from ..evaluation.plain import constants_for, undefined_for
from ..statistics import resampling
from ..statistics.significance import LEVEL, confusion, wilson
from ..tasks import Dataset, metric, predicted

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


def measured(
    data: Dataset, order: np.ndarray, values: Mapping[str, float], logits: np.ndarray, reference: np.ndarray
) -> Measured:
    """``values`` are the metrics of ``logits``, ``reference`` θ*'s logits; ``order`` gives each class's output."""
    mine = predicted(logits, order, data.is_regression)
    theirs = predicted(reference, order, data.is_regression)
    metrics = {k: none(v) for k, v in values.items()}
    classes = 0 if data.is_regression else len(data.label_names)
    classes_said = None if data.is_regression else counts(mine, data.label_names)
    levels = constants_for(data) or None
    why = undefined_for(data, logits, order)
    found = Measured(metrics, {}, {}, agreement(mine, theirs, data.is_regression), classes_said, levels, why)
    if data.labels is None:
        return found
    answers = Answers(data.gold, theirs, classes)
    for name in metrics:
        found.intervals[name] = interval(data.gold, mine, name, classes)
        found.deltas[name] = _plain(deltas(answers, [mine], name)[0])
    return found


def measured_texts(data: Dataset, mine: Sequence[str], theirs: Sequence[str]) -> Measured:
    """The same for translations. BLEU gets an interval by bootstrap over the sentences; chrF has none."""
    from ..tasks import bleu

    names = data.task.metrics
    metrics = {name: none(metric(name, list(mine), data.references)) for name in names}
    answers = TextAnswers.of(data.references, theirs)
    changes = {name: _plain(deltas(answers, [np.array(mine, dtype=object)], name)[0]) for name in names}
    intervals: dict[str, tuple[float | None, float | None]] = dict.fromkeys(names, (None, None))
    counts = bleu.counts(mine, data.references)
    weights = np.random.default_rng(0).multinomial(len(data), np.full(len(data), 1 / len(data)), bleu.RESAMPLES)
    tail = (1 - LEVEL) / 2
    low, high = np.quantile([bleu.bleu_of(total) for total in weights @ counts], [tail, 1 - tail])
    intervals["bleu"] = float(low), float(high)
    same = float(np.mean([a == b for a, b in zip(mine, theirs, strict=True)]))
    return Measured(metrics, intervals, changes, same)


def _plain(d: Delta) -> dict[str, float | None]:
    return {"delta": none(d.delta), "low": none(d.interval_low), "high": none(d.interval_high), "p": none(d.p_value)}


def agreement(mine: np.ndarray, theirs: np.ndarray, is_regression: bool) -> float | None:
    """Share of equal predictions; for a regression Pearson's r of the two (None if one is constant)."""
    if is_regression:
        return none(resampling.pearson(theirs, mine))
    return float(np.mean(mine == theirs))


def interval(
    gold: np.ndarray, mine: np.ndarray, metric: str, classes: int, seed: int = 0
) -> tuple[float | None, float | None]:
    """95 % interval of one metric: Wilson's for accuracy, bootstrap percentiles for the others.

    Do not use it for differences between two models on the same examples: those are paired, see ``deltas``.
    """
    if metric == "accuracy":
        low, high = wilson(int(np.count_nonzero(gold == mine)), len(gold))
        return none(low), none(high)
    rng, n = np.random.default_rng(seed), len(gold)
    if classes:
        counts = confusion(gold, mine, classes)
        counts = np.pad(counts, ((0, counts.shape[1] - classes), (0, 0)))  # no example is gold for none of the classes
        drawn = rng.multinomial(n, counts.ravel() / n, size=RESAMPLES).reshape(-1, *counts.shape)
        values = resampling.CLASS_METRICS[metric](drawn)
    else:
        rows = rng.integers(0, n, size=(RESAMPLES, n))
        values = np.array([resampling.REGRESSION_METRICS[metric](gold[i], mine[i]) for i in rows])
    values = values[np.isfinite(values)]
    if not len(values):
        return None, None
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)


def none(value: float | None) -> float | None:
    """The number; None for NaN and infinity, which JSON does not have."""
    return None if value is None or not math.isfinite(value) else float(value)
