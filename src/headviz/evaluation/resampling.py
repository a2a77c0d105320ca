"""The paired swap test of metrics that are not a mean over examples.

Class metrics depend on how many examples have each (gold, full answer, masked answer); those counts are
swapped, not the examples, which is the same in distribution and takes no longer for 40,000 examples than
for 400.

Accuracy has an exact test in ``significance``: do not sample it.

Shape suffixes: K masks, R resamples, C classes, N examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from ..errors import TaskError, is_one_of, unknown_choice

SWAPS = 9999  # the smallest p is 1 / (SWAPS + 1): enough for 144 heads after Benjamini-Hochberg
_CHUNK = 2_000_000  # weights held at once

Floats = NDArray[np.float64]


# metrics of confusion tables [..., C gold, C predicted] ------------------------------------------


def accuracy(table: NDArray) -> Floats:
    """Share of right answers."""
    return np.trace(table, axis1=-2, axis2=-1) / table.sum(axis=(-2, -1))


def f1(table: NDArray) -> Floats:
    """F1 of class 1; NaN where class 1 neither occurs nor is predicted."""
    hit = table[..., 1, 1].astype(float)
    total = table[..., 1, :].sum(axis=-1) + table[..., :, 1].sum(axis=-1)
    return np.divide(2 * hit, total, out=np.full_like(hit, np.nan), where=total > 0)


def matthews(table: NDArray) -> Floats:
    """Matthews' correlation, for any number of classes; NaN where one side is constant."""
    table = table.astype(float)
    gold, predicted, n = table.sum(axis=-1), table.sum(axis=-2), table.sum(axis=(-2, -1))
    top = np.trace(table, axis1=-2, axis2=-1) * n - (gold * predicted).sum(axis=-1)
    below = np.sqrt((n**2 - (gold**2).sum(axis=-1)) * (n**2 - (predicted**2).sum(axis=-1)))
    return np.divide(top, below, out=np.full_like(top, np.nan), where=below > 0)


CLASS_METRICS: dict[str, Callable[[NDArray], Floats]] = {"accuracy": accuracy, "f1": f1, "matthews": matthews}


def joint_counts(gold: NDArray, full: NDArray, masked: NDArray, classes: int) -> NDArray[np.int64]:
    """How many examples have each (gold, full answer, masked answer): [C+1, C+1, C+1].

    The last class stands for answers that are none of the task's classes (-1); no example is gold for it.
    """
    c = classes + 1
    index = (gold.astype(np.int64) * c + full % c) * c + masked % c  # -1 becomes the last class
    return np.bincount(index, minlength=c**3).reshape(c, c, c)


def class_metric(gold: NDArray, predicted: NDArray, classes: int, metric: str) -> float:
    """A class metric of some predictions."""
    if not is_one_of(metric, CLASS_METRICS):
        raise TaskError(unknown_choice("metric", metric, CLASS_METRICS))
    return float(CLASS_METRICS[metric](joint_counts(gold, predicted, predicted, classes).sum(axis=2)))


def class_swap_p(joint: NDArray, metric: str, seed: int = 0) -> float:
    """Paired swap test of a class metric."""
    measure = CLASS_METRICS[metric]
    before, after = joint.sum(axis=2), joint.sum(axis=1)
    gold, full, masked = np.nonzero(joint * ~np.eye(joint.shape[1], dtype=bool))  # cells of changed answers
    if not len(gold):
        return float("nan") if np.isnan(measure(before)) else 1.0
    moved = np.random.default_rng(seed).binomial(joint[gold, full, masked], 0.5, size=(SWAPS, len(gold)))
    one = np.zeros((len(gold), *before.shape), dtype=np.int64)  # what a swap in this cell does to ``before``
    cell = np.arange(len(gold))
    one[cell, gold, masked] += 1
    one[cell, gold, full] -= 1
    shift = np.tensordot(moved, one, axes=1)  # [R, C, C]
    return _p_value(measure(after - shift) - measure(before + shift), float(measure(after) - measure(before)))


# regression ---------------------------------------------------------------------------------------


def pearson(gold: NDArray, predicted: NDArray) -> float:
    """Pearson's r; NaN where a side is constant."""
    return float(_weighted_r(np.ones((1, len(gold))), gold.astype(float), predicted.astype(float))[0])


def ranks(values: NDArray) -> Floats:
    """Average ranks along the last axis."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(values, axis=-1))


def spearman(gold: NDArray, predicted: NDArray) -> float:
    """Spearman's rank correlation with average ranks; NaN where a side is constant."""
    return pearson(ranks(gold), ranks(predicted))


REGRESSION_METRICS: dict[str, Callable[[NDArray, NDArray], float]] = {"pearson": pearson, "spearman": spearman}


def regression_swap_p(gold: NDArray, full: NDArray, masked: NDArray, metric: str, seed: int = 0) -> float:
    """Paired swap test of a correlation."""
    if np.array_equal(full, masked):
        return float("nan") if np.isnan(REGRESSION_METRICS[metric](gold, full)) else 1.0
    rng, n = np.random.default_rng(seed), len(gold)
    even = np.ones((1, n))
    gold = ranks(gold) if metric == "spearman" else gold.astype(float)

    def r(values: NDArray) -> Floats:
        return _weighted_r(even, gold, ranks(values) if metric == "spearman" else values)

    observed = float((r(masked[None]) - r(full[None]))[0])
    deltas = []
    for rows in _rows(SWAPS, n):
        swap = rng.random((rows, n)) < 0.5
        deltas.append(r(np.where(swap, full, masked)) - r(np.where(swap, masked, full)))
    return _p_value(np.concatenate(deltas), observed)


def _weighted_r(weight: NDArray, x: NDArray, y: NDArray) -> Floats:
    """Pearson's r of each row under its weights [R, N]; x and y are [N] or [R, N].

    NaN where a side is constant. The values tell: rounding leaves a constant a variance a little above 0.
    """
    varies = _varies(weight, x) & _varies(weight, y)
    total = weight.sum(axis=-1, keepdims=True)
    x = x - (weight * x).sum(axis=-1, keepdims=True) / total
    y = y - (weight * y).sum(axis=-1, keepdims=True) / total
    top = (weight * x * y).sum(axis=-1)
    below = np.sqrt((weight * x * x).sum(axis=-1) * (weight * y * y).sum(axis=-1))
    return np.divide(top, below, out=np.full_like(top, np.nan), where=(below > 0) & varies)


def _varies(weight: NDArray, x: NDArray) -> NDArray[np.bool_]:
    """Whether each row has two values among those that occur in it."""
    there = weight > 0
    return np.where(there, x, -np.inf).max(axis=-1) > np.where(there, x, np.inf).min(axis=-1)


def _rows(total: int, n: int) -> Iterator[int]:
    """``total`` resamples in pieces that fit in memory."""
    step = max(1, _CHUNK // max(1, n))
    for start in range(0, total, step):
        yield min(step, total - start)


def _p_value(deltas: Floats, observed: float) -> float:
    if np.isnan(observed):
        return float("nan")
    deltas = deltas[~np.isnan(deltas)]  # a swap may leave the metric undefined
    extreme = np.count_nonzero(np.abs(deltas) >= abs(observed) - 1e-12)
    return float((1 + extreme) / (1 + len(deltas)))
