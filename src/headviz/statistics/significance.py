"""Is the difference real? Paired statistics for masked-versus-full comparisons.

Every comparison is made on the same examples, so only the examples whose answer changed count.

interval   see ``intervals``.
p value    the paired swap test: if the mask did nothing, each example's two answers might as well be
           exchanged. For accuracy this is the exact McNemar test; for other metrics it is sampled.
q value    Benjamini-Hochberg over the p values of one table.

Signs: ``worse`` counts examples that the full model gets right and the masked one wrong, ``better`` the
opposite; a delta is masked - full.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

LEVEL = 0.95  # of every interval

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Interval(NamedTuple):
    """Both ends of an interval; NaN when it cannot be given."""

    low: float
    high: float


class Flips(NamedTuple):
    """Positions of the examples whose answer a mask changed, in dataset order."""

    worse: Ints  # right -> wrong
    better: Ints  # wrong -> right
    other: Ints  # wrong -> wrong in another way


def flips(gold: ArrayLike, full: ArrayLike, masked: ArrayLike) -> Flips:
    """Which examples changed, both ways."""
    gold, full, masked = np.asarray(gold), np.asarray(full), np.asarray(masked)
    was, now = full == gold, masked == gold
    return Flips(np.flatnonzero(was & ~now), np.flatnonzero(~was & now), np.flatnonzero(~was & ~now & (full != masked)))


def mcnemar(worse: ArrayLike, better: ArrayLike) -> Floats:
    """Exact two-sided McNemar p for each pair of counts; 1 where nothing changed."""
    worse, better = np.asarray(worse, dtype=np.int64), np.asarray(better, dtype=np.int64)
    tail = scipy.special.bdtr(np.minimum(worse, better), worse + better, 0.5)
    return np.where(worse + better == 0, 1.0, np.minimum(1.0, 2.0 * tail))


def wilson(right: int, n: int, level: float = LEVEL) -> Interval:
    """Wilson's interval of one accuracy. Not for differences: those are paired, and narrower."""
    if n < 1:
        return Interval(np.nan, np.nan)
    z = scipy.special.ndtri((1 + level) / 2)
    middle = (right + z * z / 2) / (n + z * z)
    half = z * np.sqrt(right * (n - right) / n + z * z / 4) / (n + z * z)
    return Interval(float(max(0.0, middle - half)), float(min(1.0, middle + half)))


def benjamini_hochberg(p_values: ArrayLike) -> Floats:
    """q value of each p value, in the same shape. NaN (not tested) stays NaN and does not count as a test."""
    p = np.asarray(p_values, dtype=float)
    q = np.full(p.shape, np.nan)
    tested = ~np.isnan(p)
    values = p[tested]
    if values.size == 0:
        return q
    order = np.argsort(values, kind="stable")
    ranked = values[order] * values.size / np.arange(1, values.size + 1)
    adjusted = np.minimum.accumulate(ranked[::-1])[::-1].clip(max=1.0)
    back = np.empty_like(adjusted)
    back[order] = adjusted
    q[tested] = back
    return q


def holm(p_values: ArrayLike) -> Floats:
    """Holm's adjusted p value of each p value, in the same shape; NaN (not tested) stays NaN.

    Below 0.05 means: the probability that any one of the heads found in this way costs nothing is at most 5 %.
    """
    p = np.asarray(p_values, dtype=float)
    adjusted = np.full(p.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p.flat[tested], kind="stable")]
    left = np.arange(len(order), 0, -1)
    adjusted.flat[order] = np.maximum.accumulate(p.flat[order] * left).clip(max=1.0)
    return adjusted


def confusion(gold: ArrayLike, predicted: ArrayLike, classes: int) -> Ints:
    """Counts [gold class, predicted class]; a last column counts answers that are none of the classes, if any."""
    gold, predicted = np.asarray(gold, dtype=np.int64), np.asarray(predicted, dtype=np.int64)
    width = classes + bool((predicted < 0).any())
    index = gold * width + np.where(predicted < 0, classes, predicted)
    return np.bincount(index, minlength=classes * width).reshape(classes, width)
