"""One masked-versus-full comparison: metric deltas with their uncertainty, flips, confusion, slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import TaskError, is_one_of, unknown_choice
from ..results import Result
from ..statistics import resampling as rs
from ..statistics.intervals import accuracy_intervals, class_intervals, consistent, correlation_interval
from ..statistics.significance import LEVEL, Flips, confusion, flips, mcnemar
from ..tasks import bleu as text_scores
from ..tasks import constant, points_in, why_undefined
from ..tasks import metric as task_metric


@dataclass(frozen=True)
class Delta(Result):
    """How one metric changed. ``delta`` is masked - full: negative means that it got worse."""

    metric: str
    n: int
    full: float
    masked: float
    interval_low: float  # of the delta
    interval_high: float
    p_value: float
    name: str = ""  # the slice's, where it is one
    undefined: str = ""  # why there is no change to give, in words
    constant: float | None = None  # what the best constant answer reaches on these examples

    @property
    def delta(self) -> float:
        return self.masked - self.full

    @property
    def scale(self) -> float:
        """Points in one unit of the metric."""
        return points_in(self.metric)

    def extra(self) -> dict[str, Any]:
        return {"delta": self.delta}


@dataclass(frozen=True, eq=False)
class Comparison(Result):
    """Everything that is shown about one mask. ``deltas`` starts with the task's primary metric."""

    deltas: tuple[Delta, ...]
    flips: Flips | None  # None without classes
    confusion_full: NDArray[np.int64] | None  # [gold, predicted]
    confusion_masked: NDArray[np.int64] | None
    slices: tuple[Delta, ...]  # of the primary metric, by the data's slices

    @property
    def primary(self) -> Delta:
        return self.deltas[0]


@dataclass(frozen=True, eq=False)
class Answers:
    """Gold labels and the full model's predictions: what every mask is compared with.

    ``classes`` is 0 for a regression, whose predictions are numbers; -1 predicts none of the classes.
    """

    gold: NDArray
    full: NDArray
    classes: int

    def __post_init__(self) -> None:
        if len(self.gold) != len(self.full):
            raise ValueError(f"{len(self.gold)} labels, but {len(self.full)} predictions")
        if len(self.gold) == 0:
            raise TaskError("There is no example to compare on. Raise the limit, or choose another split.")

    def pick(self, index: NDArray) -> Answers:
        """Some of the examples."""
        return Answers(self.gold[index], self.full[index], self.classes)

    def against(self, full: NDArray) -> Answers:
        """The same examples, with other predictions to compare with."""
        return Answers(self.gold, full, self.classes)


@dataclass(frozen=True, eq=False)
class TextAnswers(Answers):
    """References and the full model's translations. ``counts`` are what BLEU needs of the latter."""

    counts: NDArray[np.int64]

    @classmethod
    def of(cls, references: Sequence[str], full: Sequence[str]) -> TextAnswers:
        """Texts as they are."""
        return cls(
            np.array(references, dtype=object), np.array(full, dtype=object), 0, text_scores.counts(full, references)
        )

    def pick(self, index: NDArray) -> TextAnswers:
        return TextAnswers(self.gold[index], self.full[index], 0, self.counts[index])

    def against(self, full: NDArray) -> TextAnswers:
        return TextAnswers.of(self.gold.tolist(), full.tolist())


def measure(answers: Answers, predicted: NDArray, metric: str) -> float:
    """A metric of some predictions of the same examples."""
    if isinstance(answers, TextAnswers):
        return task_metric(metric, predicted, answers.gold)
    if answers.classes:
        return rs.class_metric(answers.gold, predicted, answers.classes, metric)
    if not is_one_of(metric, rs.REGRESSION_METRICS):
        raise TaskError(unknown_choice("regression metric", metric, rs.REGRESSION_METRICS))
    return rs.REGRESSION_METRICS[metric](answers.gold, predicted)


def deltas(
    answers: Answers,
    masked: Sequence[NDArray],
    metric: str,
    seed: int = 0,
    level: float = LEVEL,
    name: str = "",
    tested: bool = True,
) -> list[Delta]:
    """One ``Delta`` per set of masked predictions; the whole of an ablation table at once.

    ``tested=False`` leaves out the swap test (p is NaN): of a correlation it takes seconds.
    """
    n, full = len(answers.gold), measure(answers, answers.full, metric)
    if isinstance(answers, TextAnswers):
        return [_resampled(answers, m, metric, full, seed, name) for m in masked]
    if metric == "accuracy":
        right = answers.full == answers.gold
        worse = np.array([np.count_nonzero(right & (m != answers.gold)) for m in masked], dtype=np.int64)
        better = np.array([np.count_nonzero(~right & (m == answers.gold)) for m in masked], dtype=np.int64)
        if not len(masked):
            return []
        p_values = mcnemar(worse, better)
        lows, highs = accuracy_intervals(worse, better, n, level)
        return [
            Delta(metric, n, full, float(np.mean(m == answers.gold)), float(low), float(high), float(p), name)
            for m, low, high, p in zip(masked, lows, highs, p_values, strict=True)
        ]
    return [_sampled(answers, m, metric, full, seed if tested else None, level, name) for m in masked]


def compare(
    answers: Answers,
    masked: NDArray,
    metrics: Sequence[str],
    slices: Sequence[str] | None = None,
    seed: int = 0,
    level: float = LEVEL,
    tested: bool = True,
) -> Comparison:
    """The whole comparison of one mask. ``metrics`` are the task's, the primary one first.

    ``tested`` as in ``deltas``.
    """
    primary = metrics[0]
    found = tuple(
        _with_constant(answers, deltas(answers, [masked], metric, seed, level, tested=tested)[0]) for metric in metrics
    )
    parts: list[Delta] = []
    if slices is not None:
        labels = np.asarray(slices)
        for name in dict.fromkeys(slices):
            index = np.flatnonzero(labels == name)
            own = answers.pick(index)
            parts.append(_with_constant(own, deltas(own, [masked[index]], primary, seed, level, name)[0]))
    if not answers.classes:
        return Comparison(found, None, None, None, tuple(parts))
    return Comparison(found, flips(answers.gold, answers.full, masked), *_confusions(answers, masked), tuple(parts))


def _with_constant(answers: Answers, found: Delta) -> Delta:
    return replace(found, constant=constant(found.metric, answers.gold)) if answers.classes else found


def _resampled(answers: TextAnswers, masked: NDArray, metric: str, full: float, seed: int, name: str) -> Delta:
    """Paired bootstrap resampling of BLEU, widened as all others. chrF has no interval: it only accompanies BLEU."""
    n, unknown = len(answers.gold), float("nan")
    if metric != "bleu":
        return Delta(metric, n, full, measure(answers, masked, metric), unknown, unknown, unknown, name)
    # a sentence that stayed the same keeps its counts
    changed = np.flatnonzero(masked != answers.full)
    counts = answers.counts.copy()
    if len(changed):
        counts[changed] = text_scores.counts(masked[changed].tolist(), answers.gold[changed].tolist())
    found = text_scores.compare(answers.counts, counts, seed)
    low, high = consistent(found.interval_low, found.interval_high, found.p_value)
    return Delta(metric, n, full, found.other, float(low), float(high), found.p_value, name)


def _confusions(answers: Answers, masked: NDArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Before and after, equally wide."""
    both = [confusion(answers.gold, p, answers.classes) for p in (answers.full, masked)]
    width = max(t.shape[1] for t in both)
    full, then = (np.pad(t, ((0, 0), (0, width - t.shape[1]))) for t in both)
    return full, then


def _sampled(
    answers: Answers, masked: NDArray, metric: str, full: float, seed: int | None, level: float, name: str
) -> Delta:
    """Without a seed the swap test is left out."""
    value = measure(answers, masked, metric)
    unknown = np.asarray(np.nan)
    low, high, p = unknown, unknown, float("nan")
    if answers.classes and not np.isnan(value - full):
        joint = rs.joint_counts(answers.gold, answers.full, masked, answers.classes)
        low, high = class_intervals(joint, metric, level)
        p = p if seed is None else rs.class_swap_p(joint, metric, seed)
    elif not np.isnan(value - full):
        ends = correlation_interval(answers.gold, answers.full, masked, level, ranked=metric == "spearman")
        low, high = map(np.asarray, ends)
        p = p if seed is None else rs.regression_swap_p(answers.gold, answers.full, masked, metric, seed)
    low, high = consistent(low, high, p, level)
    return Delta(
        metric,
        len(answers.gold),
        full,
        value,
        float(low),
        float(high),
        p,
        name,
        _why_undefined(answers, masked, metric),
    )


def _why_undefined(answers: Answers, masked: NDArray, metric: str) -> str:
    full, now = (why_undefined(metric, said, answers.gold) for said in (answers.full, masked))
    if full == now:
        return full or ""
    return f"of the full model, {full}" if full else f"under the mask, {now}"
