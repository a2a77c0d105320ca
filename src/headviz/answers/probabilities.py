"""The probabilities of the classes, judged as such: the job ``probabilities``.

Models that answer with one class answer with these as well. What is a function of the classes alone, accuracy say, is
measured on the most probable one, as for the job ``class``. A metric that is a user's own function is of this job too.

Shapes: n examples, C classes, R resamples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from ..errors import TaskError, is_one_of
from ..statistics.significance import Flips
from .answer import Changed
from .comparison import Answers, Drawn, Ends, FunctionMetric
from .metrics import OWN, Metric
from .one_class import OTHER, ClassAnswers, OneClass

Floats = NDArray[np.float64]
BINS = 10  # of the calibration error
SMALLEST = 1e-12  # probability in a logarithm


def neg_log_loss(gold: NDArray, probabilities: NDArray, weights: NDArray) -> Floats:
    """The mean logarithm of the gold class's probability, at most 0."""
    return weights @ _of_gold(gold, probabilities) / weights.sum(axis=1)


def neg_calibration_error(gold: NDArray, probabilities: NDArray, weights: NDArray) -> Floats:
    """The expected calibration error with the sign turned, at most 0: in ten bins of the largest probability the
    distance between its mean and the share of right answers, weighted by the examples in the bin (Naeini et al. 2015).
    """
    sure, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == gold
    where = np.minimum((sure * BINS).astype(int), BINS - 1)
    gaps = weights @ ((right - sure)[:, None] * np.eye(BINS)[where])
    return -np.abs(gaps).sum(axis=1) / weights.sum(axis=1)


def _of_gold(gold: NDArray, probabilities: NDArray) -> Floats:
    return np.log(np.clip(probabilities[np.arange(len(gold)), gold], SMALLEST, 1))


def _against_the_rest(of: Callable[[Floats, Floats], Floats]) -> Callable[[NDArray, NDArray, NDArray], Floats]:
    """Of class 1 for two classes, else the mean over the classes that have a value of each against the rest. ``of``
    reads how many positive and how many of all examples are at least as probable as each, most probable first [R, n].
    """

    def metric(gold: NDArray, probabilities: NDArray, weights: NDArray) -> Floats:
        each = []
        for k in [1] if probabilities.shape[1] == 2 else range(probabilities.shape[1]):
            order = np.argsort(-probabilities[:, k], kind="stable")
            last = np.r_[np.diff(probabilities[order, k]) != 0, True]  # of examples with the same score
            drawn, positive = weights[:, order], gold[order] == k
            each.append(of(*(w.cumsum(axis=1)[:, last].astype(float) for w in (drawn * positive, drawn))))
        finite = np.isfinite(each)
        count = finite.sum(axis=0)
        total = np.where(finite, each, 0.0).sum(axis=0)
        return np.divide(total, count, out=np.full(len(weights), np.nan), where=count > 0)

    return metric


def _roc_auc(hits: Floats, drawn: Floats) -> Floats:
    false = drawn - hits
    area = (np.diff(false, prepend=0, axis=1) * (hits - np.diff(hits, prepend=0, axis=1) / 2)).sum(axis=1)
    sides = hits[:, -1] * false[:, -1]
    return np.divide(area, sides, out=np.full(len(area), np.nan), where=sides > 0)


def _average_precision(hits: Floats, drawn: Floats) -> Floats:
    precision = (np.diff(hits, prepend=0, axis=1) * hits / np.maximum(drawn, 1e-12)).sum(axis=1)
    return np.divide(precision, hits[:, -1], out=np.full(len(hits), np.nan), where=hits[:, -1] > 0)


def most_probable(predicted: NDArray) -> NDArray[np.int64]:
    """[n] the most probable class, -1 without one."""
    return np.where(np.isfinite(predicted).all(axis=1), predicted.argmax(axis=1), OTHER)


# of gold classes [n], probabilities [n, C] and how often each example is drawn [R, n], to [R]
OF_PROBABILITIES: Mapping[str, Callable[[NDArray, NDArray, NDArray], Floats]] = {
    "roc_auc": _against_the_rest(_roc_auc),
    "average_precision": _against_the_rest(_average_precision),
    "neg_log_loss": neg_log_loss,
    "neg_calibration_error": neg_calibration_error,
}


@dataclass(frozen=True, eq=False)
class ProbabilityAnswers(Answers):
    """Probabilities [n, C] in the order of the task's classes. The unit is the example.

    Intervals and tests are those of the classes where a metric is a function of these. The interval of a difference of
    areas under ROC curves is DeLong's (1988), that of any other metric is of paired resamples; both are wider for
    changes that few examples show.
    """

    classes: int

    slow_test = True

    @cached_property
    def of_classes(self) -> ClassAnswers:
        return ClassAnswers(self.gold, most_probable(self.full), self.classes)

    def as_rows(self, predicted: NDArray) -> tuple[NDArray, NDArray]:
        return self.gold, most_probable(predicted)

    def function(self, metric: str) -> FunctionMetric | None:
        """The metric of gold classes and probabilities, or a user's own; None for one of the classes alone."""
        if (of := OF_PROBABILITIES.get(metric)) is None:
            return super().function(metric)
        return FunctionMetric(of, self, lambda predicted: (self.gold, predicted))

    def measure(self, predicted: NDArray, metric: str) -> float:
        if (function := self.function(metric)) is None:
            return self.of_classes.measure(most_probable(predicted), metric)
        return function.measure(predicted) if np.isfinite(predicted).all() else float("nan")

    def interval(self, predicted: NDArray, metric: str, seed: int = 0) -> Ends:
        if (function := self.function(metric)) is None:
            return self.of_classes.interval(most_probable(predicted), metric, seed)
        return function.interval(predicted, seed)

    def resampled(self, counts: NDArray, predicted: NDArray, metric: str) -> Floats:
        if (function := self.function(metric)) is None:
            return self.of_classes.resampled(counts, most_probable(predicted), metric)
        return function.resampled(counts, predicted)

    def uncertainty(self, masked: NDArray, metric: str, seed: int | None, level: float) -> tuple[Any, Any, float]:
        if (function := self.function(metric)) is None:
            return self.of_classes.uncertainty(most_probable(masked), metric, seed, level)
        among = self.rarest if metric in ("roc_auc", "average_precision") else None
        if metric != "roc_auc":
            return function.uncertainty(masked, seed, level, among)
        change, quantile = function.change(masked), float(scipy.special.ndtri((1 + level) / 2))
        variance = function.student_factor(level, masked, among) ** 2 * self._delong(masked)
        deviation = np.sqrt(variance + function.added_variance(level, among))
        p = 2 * float(scipy.special.ndtr(-abs(change) / deviation)) if deviation > 0 else float("nan")
        return max(-1.0, change - quantile * deviation), min(1.0, change + quantile * deviation), p

    @cached_property
    def rarest(self) -> NDArray[np.int64]:
        """Examples of the rarest class: an area and average precision hang on them."""
        classes, counts = np.unique(self.gold, return_counts=True)
        return np.flatnonzero(self.gold == classes[counts.argmin()])

    def _delong(self, masked: NDArray) -> float:
        """The variance of the difference: each example's share of the area, in both models, on its own side."""
        of_class = []
        for k in [1] if self.classes == 2 else range(self.classes):
            positive = self.gold == k
            if 1 < positive.sum() < len(positive) - 1:
                of_class.append(_placements(masked[:, k], positive) - _placements(self.full[:, k], positive))
        return float(np.square(np.mean(of_class, axis=0)).sum()) if of_class else float("nan")

    def read_by(self, metric: str, predicted: NDArray) -> NDArray:
        return PROBABILITIES.read_by(metric, predicted, self.gold)[0]

    def each(self, predicted: NDArray, metric: str) -> Floats | None:
        if metric == "neg_log_loss":
            return _of_gold(self.gold, predicted)
        return None if self.function(metric) is not None else self.of_classes.each(most_probable(predicted), metric)

    def agreement(self, predicted: NDArray) -> float | None:
        return self.of_classes.agreement(most_probable(predicted))

    def remark(self, predicted: NDArray, names: Sequence[str]) -> str:
        return self.of_classes.remark(most_probable(predicted), names)

    def quality(self, predicted: NDArray) -> NDArray:
        return self.of_classes.quality(most_probable(predicted))

    def changes(self, masked: NDArray) -> tuple[Flips, NDArray[np.int64], NDArray[np.int64]]:
        return self.of_classes.changes(most_probable(masked))


def _placements(score: Floats, positive: NDArray) -> Floats:
    """[n] what each example adds to an area's deviation: its share of examples of the other side that it is ordered
    rightly with, less the mean, over the size of its own side."""
    whole, inside = scipy.stats.rankdata(score), np.empty(len(score))
    for side in (positive, ~positive):
        inside[side] = scipy.stats.rankdata(score[side])
    many, few = int(positive.sum()), int((~positive).sum())
    share = np.where(positive, (whole - inside) / few, 1 - (whole - inside) / many)
    mean = np.where(positive, share[positive].mean(), share[~positive].mean())
    centred: Floats = (share - mean) / np.where(positive, many, few)
    return centred


class Probabilities(OneClass):
    """As a class, and judged by probabilities as well."""

    job, after, paired = "probabilities", "class", True
    usual = ("accuracy", *OF_PROBABILITIES)

    def fits(self, problem: str | None, outputs: int, ranks: bool) -> bool:
        return False  # a model's own job is ``class``; data ask for this one

    def measures(self, metric: str) -> bool:
        return super().measures(metric) or metric in OWN

    def usual_for(self, names: Mapping[str, int]) -> tuple[str, ...]:
        return self.usual

    def read_by(self, metric: str, predicted: NDArray, gold: NDArray) -> tuple[NDArray, NDArray]:
        return (predicted if metric in OF_PROBABILITIES else most_probable(predicted)), gold

    def counts(self, predictions: NDArray, names: Sequence[str]) -> dict[str, int]:
        return super().counts(predictions if predictions.ndim == 1 else most_probable(predictions), names)

    def changed(self, data: Any, full: NDArray, masked: NDArray) -> Changed:
        return super().changed(data, most_probable(full), most_probable(masked))

    def drawn(self, gold: NDArray, weights: NDArray) -> Drawn:
        drawn = super().drawn(gold, weights)
        return replace(drawn, of=lambda predicted: drawn.of(most_probable(predicted)))

    def answers(self, gold: NDArray, full: NDArray, names: Sequence[Any]) -> Answers:  # type: ignore[override]
        return ProbabilityAnswers(gold, full, len(names))

    def rows(self, metric: str, gold: Any, before: Any, after: Any, groups: Any = None) -> tuple[Answers, NDArray]:  # type: ignore[override]
        if not is_one_of(metric, OF_PROBABILITIES) and np.ndim(before) < 2:
            return super().rows(metric, gold, before, after, groups)
        gold = np.asarray(gold)
        before, after = _table(before, "before", len(gold)), _table(after, "after", len(gold))
        classes = before.shape[1]
        if gold.ndim != 1 or gold.dtype.kind not in "iu" or (gold < 0).any() or (gold >= classes).any():
            raise TaskError(f"gold must hold class numbers from 0 to {classes - 1}, one for each row.")
        return ProbabilityAnswers(gold, before, classes), after

    def predicted(self, logits: NDArray, order: NDArray) -> NDArray:
        """[n, C] probabilities of the task's classes, 0 of one that the model lacks, NaN in a row that is not
        finite."""
        logits = np.asarray(logits, dtype=np.float64)
        with np.errstate(invalid="ignore"):
            shares: NDArray = np.where(order >= 0, self.values(logits)[:, order], 0.0)
        return np.where(np.isfinite(logits).all(axis=1)[:, None], shares, np.nan)


def _table(values: Any, name: str, rows: int) -> Floats:
    """Probabilities that a user gave: [n, C], or [n] those of class 1."""
    table = np.asarray(values, dtype=float)
    if table.ndim == 1:
        table = np.stack([1 - table, table], axis=1)
    if table.ndim != 2 or len(table) != rows or not ((table >= 0) & (table <= 1)).all():
        raise TaskError(f"{name} must hold probabilities, [n, classes] or [n] of class 1, for the {rows} examples.")
    return table


def _entropy(gold: NDArray) -> float | None:
    shares = np.bincount(gold.astype(np.int64)) / max(1, len(gold))
    return float((shares[shares > 0] * np.log(shares[shares > 0])).sum()) if len(gold) else None


def _one_side(predicted: NDArray, gold: NDArray) -> str | None:
    return "all examples are of one class" if len(np.unique(gold)) < 2 else None


_SAME = "the same probabilities for all"


def _of(name: str) -> Callable[[NDArray, NDArray], float]:
    return lambda predicted, gold: float(OF_PROBABILITIES[name](gold, predicted, np.ones((1, len(gold))))[0])


Probabilities.metrics = {
    **OneClass.metrics,
    "roc_auc": Metric(_of("roc_auc"), _one_side, lambda gold: 0.5, _SAME, dims=(2, 1)),
    "average_precision": Metric(_of("average_precision"), dims=(2, 1)),
    "neg_log_loss": Metric(_of("neg_log_loss"), lambda p, gold: None, _entropy, _SAME, 1.0, (2, 1)),
    "neg_calibration_error": Metric(_of("neg_calibration_error"), dims=(2, 1)),
}
PROBABILITIES = Probabilities()
