"""The largest loss of accuracy that the answers leave possible: an exact one-sided bound.

Of n examples, some right answers were lost and some wrong ones mended. Clopper and Pearson's limits are quantiles of
beta distributions: one of the share S of the examples that changes, one of the share T of these changes that is a loss.
The loss is S (2 T - 1), and the bound is the quantile of that product. It is the counterpart of McNemar's exact test
(Fay and Lumbard, Statistics in Medicine 40, 2021): a loss or a gain is clear where, and only where, the test says so.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)

Floats = NDArray[np.float64]


def most_lost(worse: NDArray, better: NDArray, n: int, miss: float) -> Floats:
    """For each pair of counts: a greater loss is excluded, wrongly in at most ``miss``. Below 0: a gain is clear."""
    changed = worse + better
    gain = (better > 0) & (scipy.special.betainc(np.maximum(better, 1), worse + 1, 0.5) <= miss)  # McNemar's test
    # a gain is bounded from below, so its side of T and the share S are the lower ones; without one T is 1
    t = np.where(gain, (better, worse + 1), (worse + 1, np.maximum(better, 1e-9)))
    s = np.stack([changed + ~gain, n - changed + gain])
    tail = np.where(gain, 1 - miss, miss)
    bound = 2 * scipy.special.betaincinv(*t, 1 - tail) - 1  # where all examples changed: S is 1
    some = np.flatnonzero(s[1])
    bound[some] = _exceeded_in(tail[some], t[:, some], s[:, some])
    return np.where(gain, -bound, bound)


def _exceeded_in(tail: Floats, t: Floats, s: Floats) -> Floats:
    """What S (2 T - 1) exceeds in this share of all cases: secants, in normal quantiles, where it is nearly a line."""
    share, mean = s[0] / s.sum(axis=0), t[0] / t.sum(axis=0)
    middle = share * (2 * mean - 1)
    sd = 2 * share * np.sqrt(mean * (1 - mean) / t.sum(axis=0) + (1 - share) * (mean - 0.5) ** 2 / s[0])
    wanted, slope = scipy.special.ndtri(tail), -1 / sd
    at = np.clip(middle - wanted * sd, 0.01 * sd, 1 - 1e-6)
    low, high, before, was = np.zeros_like(at), np.ones_like(at), at.copy(), np.full_like(at, np.nan)
    left = np.arange(len(at))
    while len(left):
        x, old = at[left], before[left]
        off = scipy.special.ndtri(_chance(x, *t[:, left], *s[:, left])) - wanted[left]
        low[left], high[left] = np.where(off > 0, x, low[left]), np.where(off > 0, high[left], x)
        rise = (off - was[left]) / np.where(x == old, np.nan, x - old)
        slope[left] = np.where(rise < 0, rise, slope[left])
        new = x - off / slope[left]
        inside = (new > low[left]) & (new < high[left])
        at[left] = np.where(inside, new, (low[left] + high[left]) / 2)
        before[left], was[left] = x, off
        left = left[np.abs(at[left] - x) > 1e-5 * sd[left]]
    return at


def _chance(value: Floats, a: Floats, b: Floats, many: Floats, few: Floats) -> Floats:
    """How often S (2 T - 1) is above a value, summed over the logit of S. T has beta(a, b), S beta(many, few)."""
    value, a, b, many, few = (x[:, None] for x in (value, a, b, many, few))
    middle = scipy.special.digamma(many) - scipy.special.digamma(few)
    wide = 6.5 * np.sqrt(scipy.special.polygamma(1, many) + scipy.special.polygamma(1, few))
    first = np.maximum(scipy.special.logit(value), middle - np.maximum(wide, 16 / many))
    half = np.maximum(middle + np.maximum(wide, 16 / few) - first, 0) / 2
    logit = first + half * (_NODES + 1)
    density = np.exp(
        many * scipy.special.log_expit(logit) + few * scipy.special.log_expit(-logit) - scipy.special.betaln(many, few)
    )
    above = scipy.special.betaincc(a, b, np.minimum((1 + value / scipy.special.expit(logit)) / 2, 1))
    found: Floats = np.clip((_WEIGHTS * half * density * above).sum(axis=1), 1e-300, 1 - 1e-16)
    return found
