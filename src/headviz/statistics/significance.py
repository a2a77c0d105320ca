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
    before, after = full == gold, masked == gold  # right answers
    other = ~before & ~after & (full != masked)
    return Flips(np.flatnonzero(before & ~after), np.flatnonzero(~before & after), np.flatnonzero(other))


def mcnemar(worse: ArrayLike, better: ArrayLike) -> Floats:
    """Exact two-sided McNemar p for each pair of counts; 1 where nothing changed."""
    worse, better = np.asarray(worse, dtype=np.int64), np.asarray(better, dtype=np.int64)
    tail = scipy.special.bdtr(np.minimum(worse, better), worse + better, 0.5)
    return np.where(worse + better == 0, 1.0, np.minimum(1.0, 2.0 * tail))


def wilson(correct: int, n: int) -> Interval:
    """Wilson's interval of one accuracy. Not for differences: those are paired, and narrower."""
    if n < 1:
        return Interval(np.nan, np.nan)
    z = scipy.special.ndtri((1 + LEVEL) / 2)
    middle = (correct + z * z / 2) / (n + z * z)
    half = z * np.sqrt(correct * (n - correct) / n + z * z / 4) / (n + z * z)
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

    Below 0.05 means: the probability that any one of the results found in this way is chance is at most 5 %.
    """
    p = np.asarray(p_values, dtype=float)
    adjusted = np.full(p.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p.flat[tested], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    adjusted.flat[order] = np.maximum.accumulate(p.flat[order] * factors).clip(max=1.0)
    return adjusted


def confusion(gold: ArrayLike, predicted: ArrayLike, classes: int) -> Ints:
    """Counts [gold class, predicted class]; a last column counts answers that are none of the classes, if any."""
    gold, predicted = np.asarray(gold, dtype=np.int64), np.asarray(predicted, dtype=np.int64)
    width = classes + bool((predicted < 0).any())
    index = gold * width + np.where(predicted < 0, classes, predicted)
    return np.bincount(index, minlength=classes * width).reshape(classes, width)


SHARED = 8  # degrees of freedom, for each split, that the ratio of all pairs counts for
ROUNDING = 1e-20  # a variance up to this is rounding: two scores gave the same order


class Differences(NamedTuple):
    """Standard errors [K, K] of all differences, and how many of them a significant difference exceeds."""

    errors: Floats
    single: float  # a difference that was chosen beforehand
    all: float  # any of them


def differences(draws: NDArray, halves: NDArray) -> Differences:
    """Differences between several scores of the same model and data, all at once, of which the best was picked.

    Each score was measured on one half of the examples and tried on the other, both ways, in several splits. Two things
    vary: the examples that it was tried on, which ``draws`` [K, R] have (the same draws for all scores), and the half
    that it was measured on. The second is seen between the two ``halves`` [K, S, 2] of a split, as in Dietterich's 5x2
    cross-validation (Neural Computation 10, 1998): half the squared difference of two independent halves estimates the
    variance of their mean, both parts together. With five splits that has few degrees of freedom, so each pair's
    variance is drawn toward that of its draws times what all pairs have in common.

    An interval holds for all pairs at once: its width is a quantile of the largest studentised difference over all
    pairs (max-t), so picking the best afterwards changes nothing. ``bench/coverage_of_boards.py`` measures how often it
    holds.

    Shapes: K scores, R draws, S splits.
    """
    draws = draws[:, np.isfinite(draws).all(axis=0)]
    gaps = draws[:, None] - draws[None]
    by_examples = gaps.var(axis=2)
    within = (halves[..., 0] - halves[..., 1]) / 2  # [K, S]
    by_halves = ((within[:, None] - within[None]) ** 2).mean(axis=2)
    varies = by_examples > ROUNDING
    ratio = max(1.0, float(by_halves[varies].sum() / by_examples[varies].sum())) if varies.any() else 1.0
    variance = (SHARED * ratio * by_examples + by_halves) / (SHARED + 1)
    errors, freedom = np.sqrt(np.maximum(variance, by_examples)), (SHARED + 1) * halves.shape[1]
    single = float(scipy.special.stdtrit(freedom, (1 + LEVEL) / 2))
    if not varies.any():
        return Differences(errors, single, single)
    first, second = np.nonzero(np.triu(varies, 1))
    of_pairs = gaps[first, second]
    centred = of_pairs - of_pairs.mean(axis=1, keepdims=True)
    largest = np.abs(centred / centred.std(axis=1, keepdims=True)).max(axis=0)
    # a normal quantile becomes that of Student's t: the errors are estimates
    tail = float(scipy.special.ndtr(-np.quantile(largest, LEVEL)))
    return Differences(errors, single, float(scipy.special.stdtrit(freedom, 1 - tail)))
