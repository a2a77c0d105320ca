"""Is the difference real? Paired statistics for masked-versus-full comparisons.

Every comparison is made on the same examples, so only the examples whose answer changed count.

interval   paired bootstrap of the delta, percentiles. For accuracy it is exact: a resample is a draw from
           {-1, 0, +1} per example, whose sum has a known distribution; no random numbers are used.
p value    the paired swap test: if the mask did nothing, each example's two answers might as well be
           exchanged. For accuracy this is the exact McNemar test; for other metrics it is sampled.
q value    Benjamini-Hochberg over the p values of one table.

Signs: ``worse`` counts examples that the full model gets right and the masked one wrong, ``better`` the
opposite; a delta is masked - full.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

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
    return Flips(
        np.flatnonzero(was & ~now), np.flatnonzero(~was & now), np.flatnonzero(~was & ~now & (full != masked))
    )


def mcnemar(worse: ArrayLike, better: ArrayLike) -> Floats:
    """Exact two-sided McNemar p for each pair of counts; 1 where nothing changed."""
    worse, better = np.asarray(worse, dtype=np.int64), np.asarray(better, dtype=np.int64)
    tail = stats.binom.cdf(np.minimum(worse, better), worse + better, 0.5)
    return np.where(worse + better == 0, 1.0, np.minimum(1.0, 2.0 * tail))


def accuracy_intervals(
    worse: ArrayLike, better: ArrayLike, n: int, level: float = LEVEL
) -> tuple[Floats, Floats]:
    """Ends of the paired bootstrap interval of the accuracy delta, for each pair of counts of ``n`` examples.

    The distribution of the resampled delta is found by inverting its characteristic function, which is
    what infinitely many resamples would give. Do not use it for anything but a mean of -1, 0 and +1.
    """
    worse, better = np.broadcast_arrays(
        np.atleast_1d(worse).astype(float), np.atleast_1d(better).astype(float)
    )
    shape, worse, better = worse.shape, worse.ravel(), better.ravel()
    if n < 1:
        return np.full(shape, np.nan), np.full(shape, np.nan)
    loss, gain = worse / n, better / n  # [heads]
    centre = np.rint(better - worse).astype(int)
    spread = np.sqrt(n * (loss + gain - (gain - loss) ** 2).max(initial=0.0))
    half = int(min(2 * n, np.ceil(12 * spread) + 24))  # the tails beyond hold less than 1e-20
    steps = 2 * half + 1
    angle = 2 * np.pi * np.arange(steps) / steps
    turn = np.exp(1j * angle)  # [steps]; the sum's characteristic function is one example's to the power n
    one = (1 - loss - gain)[:, None] + np.outer(gain, turn) + np.outer(loss, turn.conj())  # [heads, steps]
    wave = one**n * np.exp(-1j * np.outer(centre, angle))
    mass = np.fft.fft(wave, axis=1).real.clip(min=0) / steps
    mass = np.roll(mass, half, axis=1)  # now sums centre - half .. centre + half
    tail = (1 - level) / 2
    slack = 1e-9  # rounding of the transform must not move an end by a whole example
    low = np.argmax(np.cumsum(mass, axis=1) >= tail - slack, axis=1)
    high = steps - 1 - np.argmax(np.cumsum(mass[:, ::-1], axis=1) >= tail - slack, axis=1)
    return ((low - half + centre) / n).reshape(shape), ((high - half + centre) / n).reshape(shape)


def wilson(right: int, n: int, level: float = LEVEL) -> Interval:
    """Wilson's interval of one accuracy. Not for differences: those are paired, and narrower."""
    if n < 1:
        return Interval(np.nan, np.nan)
    z = stats.norm.ppf((1 + level) / 2)
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


def confusion(gold: ArrayLike, predicted: ArrayLike, classes: int) -> Ints:
    """Counts [gold class, predicted class]; a last column counts answers that are none of the classes, if any."""
    gold, predicted = np.asarray(gold, dtype=np.int64), np.asarray(predicted, dtype=np.int64)
    width = classes + bool((predicted < 0).any())
    index = gold * width + np.where(predicted < 0, classes, predicted)
    return np.bincount(index, minlength=classes * width).reshape(classes, width)
