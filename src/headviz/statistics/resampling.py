"""The paired swap test of metrics that are not a mean over examples.

Class metrics depend on how many examples have each (gold, full answer, masked answer); those counts are
swapped, not the examples, which is the same in distribution and takes no longer for 40,000 examples than
for 400. Only those that occur are kept, so that many classes take no more memory than their examples.

Accuracy has an exact test in ``significance``: do not sample it.

Shape suffixes: K cells, R resamples, C classes, N examples.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from ..errors import TaskError, is_one_of, unknown_choice

SWAPS = 9999  # the smallest p is 1 / (SWAPS + 1): enough for 144 heads after Benjamini-Hochberg
_CHUNK = 200_000  # values held at once; more no longer fit into the caches

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


# metrics by class: its correct answers, its examples, and how often it is predicted [..., C] --------------------------


def accuracy(correct: NDArray, gold: NDArray, predicted: NDArray) -> Floats:
    """Share of correct answers."""
    return correct.sum(axis=-1) / gold.sum(axis=-1)


def f1(correct: NDArray, gold: NDArray, predicted: NDArray, of: int = 1) -> Floats:
    """F1 of one class; NaN where it neither occurs nor is predicted."""
    hit, total = correct[..., of].astype(float), gold[..., of] + predicted[..., of]
    return np.divide(2 * hit, total, out=np.full_like(hit, np.nan), where=total > 0)


def f1_macro(correct: NDArray, gold: NDArray, predicted: NDArray) -> Floats:
    """The mean F1 of the classes that occur among the gold labels."""
    return _over_classes(2 * correct / np.maximum(gold + predicted, 1e-12), gold)


def balanced_accuracy(correct: NDArray, gold: NDArray, predicted: NDArray) -> Floats:
    """The mean recall of the classes that occur among the gold labels."""
    return _over_classes(correct / np.maximum(gold, 1e-12), gold)


def _over_classes(each: Floats, gold: NDArray) -> Floats:
    occurs = gold > 0
    mean: Floats = (each * occurs).sum(axis=-1) / occurs.sum(axis=-1)
    return mean


def matthews(correct: NDArray, gold: NDArray, predicted: NDArray) -> Floats:
    """Matthews' correlation; 0 where all predictions are one class, NaN where all labels are."""
    gold, predicted = gold.astype(float), predicted.astype(float)
    n = gold.sum(axis=-1)
    top = correct.sum(axis=-1) * n - (gold * predicted).sum(axis=-1)
    of_gold, of_predicted = (n**2 - (x**2).sum(axis=-1) for x in (gold, predicted))
    below = np.sqrt(of_gold * of_predicted)
    return np.divide(top, below, out=np.where(of_gold > 0, np.zeros_like(top), np.nan), where=below > 0)


ByClass = Callable[[NDArray, NDArray, NDArray], Floats]
_BY_CLASS: dict[str, ByClass] = {
    "accuracy": accuracy,
    "balanced_accuracy": balanced_accuracy,
    "f1": f1,
    "f1_macro": f1_macro,
    "matthews": matthews,
}


def class_in(metric: str) -> int | None:
    """The class whose F1 a metric is: 1 for ``f1``, 3 for ``f1_3``; None for other metrics."""
    match = re.fullmatch(r"f1(?:_(\d{1,4}))?", metric)
    return None if match is None else int(match[1] or 1)


def by_class(metric: str) -> ByClass:
    """A class metric from the counts of each class."""
    if (positive := class_in(metric)) is not None:
        return partial(f1, of=positive)
    if not is_one_of(metric, _BY_CLASS):
        raise TaskError(unknown_choice("metric", metric, _BY_CLASS))
    return _BY_CLASS[metric]


def of_tables(metric: str, table: NDArray) -> Floats:
    """A class metric of confusion tables [..., C gold, C predicted]."""
    return by_class(metric)(np.diagonal(table, axis1=-2, axis2=-1), table.sum(axis=-1), table.sum(axis=-2))


class Joint(NamedTuple):
    """How many examples have each (gold, full answer, masked answer): the cells that occur, in order.

    The last class stands for answers that are none of the task's classes; no example is gold for it.
    """

    gold: Ints  # [K]
    full: Ints
    masked: Ints
    counts: Ints  # [..., K]
    classes: int

    @classmethod
    def of(cls, tables: NDArray) -> Joint:
        """From counts [..., C gold, C full answer, C masked answer]."""
        side = tables.shape[-1]
        gold, full, masked = np.indices((side, side, side)).reshape(3, -1)
        return cls(gold, full, masked, tables.reshape(*tables.shape[:-3], -1), side)

    def table(self, predicted: Ints) -> NDArray:
        """The counts [..., C, C] of (gold, answer); ``predicted`` is ``full`` or ``masked``."""
        table = np.zeros((*self.counts.shape[:-1], self.classes, self.classes), dtype=self.counts.dtype)
        at: Any = (..., self.gold, predicted)
        np.add.at(table, at, self.counts)
        return table


def joint_counts(gold: NDArray, full: NDArray, masked: NDArray, classes: int) -> Joint:
    """The counts of two sets of answers to the same examples; -1 is an answer that is none of the classes."""
    c = classes + 1
    index = (gold.astype(np.int64) * c + full % c) * c + masked % c  # -1 becomes the last class
    cells, count = np.unique(index, return_counts=True)
    return Joint(cells // c**2, cells // c % c, cells % c, count, c)


def class_metric(gold: NDArray, predicted: NDArray, classes: int, metric: str) -> float:
    """A class metric of some predictions."""
    c = classes + 1
    if (positive := class_in(metric)) is not None and positive >= c:
        raise TaskError(f"'{metric}' is F1 of class {positive}, and there are {classes}, from 0.")
    return float(by_class(metric)(*_by_class(gold.astype(np.int64), predicted % c, np.ones(len(gold)), c)))


def class_swap_p(joint: Joint, metric: str, seed: int = 0) -> float:
    """Paired swap test of a class metric."""
    of, c = by_class(metric), joint.classes
    correct, golds, predicted = _by_class(joint.gold, joint.full, joint.counts, c)
    correct_after, _, predicted_after = _by_class(joint.gold, joint.masked, joint.counts, c)
    full_value, masked_value = of(correct, golds, predicted), of(correct_after, golds, predicted_after)
    changed = (joint.full != joint.masked) & (joint.counts > 0)
    gold, full, masked, count = (cells[changed] for cells in joint[:4])
    if not len(gold):
        return float("nan") if np.isnan(full_value) else 1.0
    # what a swap in each cell does to the full model's answers, [K, C]
    cell, ones, shape = np.arange(len(gold)), np.ones(len(gold), dtype=np.int64), (len(gold), c)
    mended = (masked == gold).astype(np.int64) - (full == gold)
    table = scipy.sparse.csr_array
    to_correct = table((mended, (cell, gold)), shape=shape)
    to_predicted = table((ones, (cell, masked)), shape=shape) - table((ones, (cell, full)), shape=shape)
    rng, deltas = np.random.default_rng(seed), []
    for rows in _rows(SWAPS, max(len(gold), c)):
        moved = rng.binomial(count, 0.5, size=(rows, len(gold)))
        of_correct, of_predicted = moved @ to_correct, moved @ to_predicted
        swapped = of(correct_after - of_correct, golds, predicted_after - of_predicted)
        deltas.append(swapped - of(correct + of_correct, golds, predicted + of_predicted))
    return p_value(np.concatenate(deltas), float(masked_value - full_value))


def _by_class(gold: NDArray, predicted: NDArray, count: NDArray, classes: int) -> tuple[NDArray, NDArray, NDArray]:
    """Correct answers, examples and predictions of each class [C]."""
    correct = np.bincount(gold, count * (gold == predicted), classes)
    return correct, np.bincount(gold, count, classes), np.bincount(predicted, count, classes)


# regression ---------------------------------------------------------------------------------------


def pearson(gold: NDArray, predicted: NDArray) -> float:
    """Pearson's r; NaN where a side is constant."""
    return float((standardised(gold.astype(float)) * standardised(predicted.astype(float))).mean())


def ranks(values: NDArray) -> Floats:
    """Average ranks along the last axis."""
    return np.asarray(scipy.stats.rankdata(values, axis=-1))


def spearman(gold: NDArray, predicted: NDArray) -> float:
    """Spearman's rank correlation with average ranks; NaN where a side is constant."""
    return pearson(ranks(gold), ranks(predicted))


def rank_correlation(a: NDArray, b: NDArray) -> float:
    """Spearman's of two tables where both have a value; NaN of fewer than three such places."""
    both = np.isfinite(a) & np.isfinite(b)
    return spearman(a[both], b[both]) if both.sum() >= 3 else float("nan")


REGRESSION_METRICS = ("pearson", "spearman")


def follows(gold: NDArray, predicted: NDArray, metric: str) -> Floats:
    """A correlation of answers along the last axis: 0 where they are one value, which follows nothing."""
    if metric == "spearman":
        gold, predicted = ranks(gold), ranks(predicted)
    return np.asarray((standardised(gold) * standardised(predicted, 0.0)).mean(axis=-1))


def regression_swap_p(gold: NDArray, full: NDArray, masked: NDArray, metric: str, seed: int = 0) -> float:
    """Paired swap test of a correlation; NaN where the gold values are one.

    A correlation does not depend on the scale of the answers, so each model's are standardised, or ranked, before they
    are swapped: raw ones of two scales would be mixed into answers of neither model. Pearson's r goes by its difference
    over the standard error of that: without it, heavy tails would let the test reject too often.
    """
    ranked = metric == "spearman"
    gold, full, masked = (ranks(x) if ranked else x.astype(float) for x in (gold, full, masked))
    gold, full, masked = standardised(gold), standardised(full, 0.0), standardised(masked, 0.0)
    if np.isnan(gold).any():
        return float("nan")

    def difference(full: NDArray, masked: NDArray) -> Floats:
        f, m = (standardised(ranks(x) if ranked else x, 0.0) for x in (full, masked))
        before, after = f @ gold / len(gold), m @ gold / len(gold)
        if ranked:
            return after - before
        influence = gold * (m - f)
        for r, x, sign in ((after, m, -0.5), (before, f, 0.5)):
            influence += sign * r[..., None] * (gold**2 + x**2)
        error = np.sqrt((influence**2).sum(axis=-1))
        return (after - before) / np.maximum(error, 1e-9)

    if np.allclose(full, masked, rtol=0, atol=1e-12):
        return 1.0
    rng, deltas = np.random.default_rng(seed), []
    for rows in _rows(SWAPS, len(gold)):
        swap = rng.random((rows, len(gold))) < 0.5
        deltas.append(difference(np.where(swap, full, masked), np.where(swap, masked, full)))
    return p_value(np.concatenate(deltas), float(difference(full, masked)))


def standardised(values: NDArray, constant: float = np.nan) -> Floats:
    """Mean 0 and variance 1 along the last axis; ``constant`` where all are one value.

    Whether they are is seen in the values: rounding leaves constant values a variance a little above 0.
    """
    centred = values - values.mean(axis=-1, keepdims=True)
    sd = np.sqrt((centred**2).mean(axis=-1, keepdims=True))
    varies = (np.ptp(values, axis=-1, keepdims=True) > 0) & (sd > 0)
    varies |= ~np.isfinite(sd)  # one NaN makes all of them NaN
    return np.divide(centred, sd, out=np.full_like(centred, constant), where=varies)


def _rows(total: int, n: int) -> Iterator[int]:
    """``total`` resamples in pieces that fit in memory."""
    step = max(1, _CHUNK // max(1, n))
    for start in range(0, total, step):
        yield min(step, total - start)


def p_value(deltas: Floats, observed: float) -> float:
    if np.isnan(observed):
        return float("nan")
    deltas = deltas[~np.isnan(deltas)]  # a swap may leave the metric undefined
    extreme = np.count_nonzero(np.abs(deltas) >= abs(observed) * (1 - 1e-9) - 1e-12)
    return float((1 + extreme) / (1 + len(deltas)))
