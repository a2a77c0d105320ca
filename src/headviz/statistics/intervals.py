"""Intervals of a difference of two metrics on the same examples.

accuracy      exact: each end is a bound of its own, see ``most_lost``.
class metric  the delta method for any smooth function of the table (gold, full answer, masked answer), with ``EXTRA``
              examples more in every cell that is a right answer lost or a wrong one mended. Without these, it would
              collapse where few answers change, which is where pruning decides.
correlation   the same for Pearson's r. Two examples are added that got another one's answer; fewer, the more answers
              moved far enough to show what a change does. The width is that of Student's t for as many examples as
              the difference depends on; at most 2.5 degrees of freedom where the errors of a close fit have heavy
              tails. For the upper end of a loss, smaller moves count as well.

``EXTRA`` and the two examples are for 95 %; at another level there are more or fewer in proportion to the squared
normal quantile, as in Agresti and Coull 1998. ``bench/coverage.py`` measures how often the intervals hold the truth. A
difference is masked - full.

Shapes: K comparisons, C classes, N examples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from .resampling import Joint, class_in, of_tables, ranks, standardised
from .significance import LEVEL, Interval

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)

Floats = NDArray[np.float64]


def most_lost(worse: NDArray, better: NDArray, n: int, miss: float) -> Floats:
    """The largest loss of accuracy that each pair of counts leaves possible: an exact one-sided bound.

    A greater loss is excluded, wrongly in at most ``miss``. Below 0 a gain is clear. Of n examples, some right answers
    were lost and some wrong ones mended. Clopper and Pearson's limits are quantiles of beta distributions: one of the
    share S of the examples that changes, one of the share T of these changes that is a loss. The loss is S (2 T - 1),
    and the bound is the quantile of that product. It is the counterpart of McNemar's exact test (Fay and Lumbard,
    Statistics in Medicine 40, 2021): a loss or a gain is clear where, and only where, the test says so.
    """
    changed = worse + better
    gain = (better > 0) & (scipy.special.betainc(np.maximum(better, 1), worse + 1, 0.5) <= miss)  # McNemar's test
    # a gain is bounded from below, so its side of T and the share S are the lower ones; without one T is 1
    t = np.where(gain, (better, worse + 1), (worse + 1, np.maximum(better, 1e-9)))
    s = np.stack([changed + ~gain, n - changed + gain])
    tail = np.where(gain, 1 - miss, miss)
    bound = 2 * scipy.special.betaincinv(*t, 1 - tail) - 1  # where all examples changed: S is 1
    to_solve = np.flatnonzero(s[1])
    bound[to_solve] = _exceeded_in(tail[to_solve], t[:, to_solve], s[:, to_solve])
    return np.where(gain, -bound, bound)


def _exceeded_in(tail: Floats, t: Floats, s: Floats) -> Floats:
    """What S (2 T - 1) exceeds with probability ``tail``: secant steps, in normal quantiles, where it is nearly linear.

    ``t`` and ``s`` are the parameters of the beta distributions of T and S.
    """
    share, mean = s[0] / s.sum(axis=0), t[0] / t.sum(axis=0)
    middle = share * (2 * mean - 1)
    sd = 2 * share * np.sqrt(mean * (1 - mean) / t.sum(axis=0) + (1 - share) * (mean - 0.5) ** 2 / s[0])
    target, slope = scipy.special.ndtri(tail), -1 / sd
    root = np.clip(middle - target * sd, 0.01 * sd, 1 - 1e-6)
    low, high = np.zeros_like(root), np.ones_like(root)
    last_x, last_error = root.copy(), np.full_like(root, np.nan)
    active = np.arange(len(root))
    while len(active):
        x, old = root[active], last_x[active]
        error = scipy.special.ndtri(_chance(x, *t[:, active], *s[:, active])) - target[active]
        low[active], high[active] = np.where(error > 0, x, low[active]), np.where(error > 0, high[active], x)
        rise = (error - last_error[active]) / np.where(x == old, np.nan, x - old)
        slope[active] = np.where(rise < 0, rise, slope[active])
        new = x - error / slope[active]
        inside = (new > low[active]) & (new < high[active])
        root[active] = np.where(inside, new, (low[active] + high[active]) / 2)
        last_x[active], last_error[active] = x, error
        active = active[np.abs(root[active] - x) > 1e-5 * sd[active]]
    return root


def _chance(value: Floats, a: Floats, b: Floats, c: Floats, d: Floats) -> Floats:
    """The probability that S (2 T - 1) is above a value, summed over the logit of S: T has beta(a, b), S beta(c, d)."""
    value, a, b, c, d = (x[:, None] for x in (value, a, b, c, d))
    middle = scipy.special.digamma(c) - scipy.special.digamma(d)
    wide = 6.5 * np.sqrt(scipy.special.polygamma(1, c) + scipy.special.polygamma(1, d))
    first = np.maximum(scipy.special.logit(value), middle - np.maximum(wide, 16 / c))
    half = np.maximum(middle + np.maximum(wide, 16 / d) - first, 0) / 2
    logit = first + half * (_NODES + 1)
    density = np.exp(
        c * scipy.special.log_expit(logit) + d * scipy.special.log_expit(-logit) - scipy.special.betaln(c, d)
    )
    above = scipy.special.betaincc(a, b, np.minimum((1 + value / scipy.special.expit(logit)) / 2, 1))
    chances: Floats = np.clip((_WEIGHTS * half * density * above).sum(axis=1), 1e-300, 1 - 1e-16)
    return chances


EXTRA = 0.75  # examples added to each cell of changed answers
EXCHANGED = 2.0  # examples added that got another one's answer
MOVED = 0.1  # standard deviations, or of the errors: an answer that moved farther shows what a change does
ALL_MOVED = 0.4  # where so many moved, and many examples carry the difference, no example is added
FEW = 5.0  # examples that carry the difference: as many show half of it
TAILS = 15.0  # kurtosis; where that of a column is higher, a single example may decide a correlation
CLOSE, PEAKED = 0.9, 4.0  # above this r a few large errors decide it: where the errors' kurtosis is higher than this

Ends = tuple[Floats, Floats]


def consistent(low: ArrayLike, high: ArrayLike, p_value: ArrayLike, level: float = LEVEL) -> Ends:
    """The interval, widened to reach zero where its test does not reject."""
    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    open_ = np.asarray(p_value) > 1 - level
    return np.where(open_, np.minimum(low, 0.0), low), np.where(open_, np.maximum(high, 0.0), high)


def over_draws(low: ArrayLike, high: ArrayLike, p_value: ArrayLike) -> tuple[NDArray, NDArray, NDArray]:
    """Ends and p value of the mean of several draws, [draws, …], each with its own.

    The ends are means: an error of a mean is at most the mean of the errors. p is twice the median, which is valid
    however the draws hang together, and where it does not reject, the interval is widened to reach zero.
    """
    p = np.minimum(1.0, 2 * np.median(np.asarray(p_value), axis=0))
    return *consistent(np.asarray(low).mean(axis=0), np.asarray(high).mean(axis=0), p), p


def accuracy_intervals(worse: ArrayLike, better: ArrayLike, n: int, level: float = LEVEL) -> Ends:
    """Ends for each pair of counts of ``n`` examples: right answers lost, wrong ones mended.

    Each end misses in at most half of what the level leaves: 2.5 % at 95 %. Where no answer changed, a loss of up to
    3.7/n is still possible.
    """
    worse, better = (np.asarray(x, dtype=np.int64) for x in np.broadcast_arrays(worse, better))
    if n < 1:
        return np.full(worse.shape, np.nan), np.full(worse.shape, np.nan)
    # a gain is a loss with sides exchanged; many heads have the same counts
    pairs, index = np.unique([worse * (n + 1) + better, better * (n + 1) + worse], return_inverse=True)
    lost, gained = most_lost(pairs // (n + 1), pairs % (n + 1), n, (1 - level) / 2)[index].reshape(2, *worse.shape)
    return 0.0 - lost, gained


def class_intervals(joint: Joint, metric: str, level: float = LEVEL) -> Ends:
    """Ends for each set of counts [..., K]; they hold the difference itself."""
    full, masked = joint.table(joint.full), joint.table(joint.masked)
    is_gold = full.sum(axis=-1) > 0
    if (positive := class_in(metric)) is not None:
        is_gold[..., [positive, int(positive == 0)]] = True  # F1 of a class and the others: it changes only with both
    occurs = is_gold | (full.sum(axis=-2) > 0) | (masked.sum(axis=-2) > 0)
    occurs[..., -1] |= occurs.sum(axis=-1) < 2  # of one class alone an answer may still become none of the classes
    # wrong answers [..., gold, answer] that were right before, or become right; only of classes that occur
    wrong = is_gold[..., :, None] & occurs[..., None, :] & ~np.eye(joint.classes, dtype=bool)
    # undefined without the added examples: NaN, which fmin and fmax pass over
    observed = of_tables(metric, masked) - of_tables(metric, full)
    slope = SLOPES[metric] if positive is None else partial(_f1, of=positive)
    extra = EXTRA * added(level)
    more = extra * (wrong + wrong.sum(axis=-1)[..., None] * np.eye(joint.classes))
    before, by_full = slope(full + more)
    after, by_masked = slope(masked + more)
    influence = by_masked[..., joint.gold, joint.masked] - by_full[..., joint.gold, joint.full]
    right_full, right_masked = (np.diagonal(by, axis1=-2, axis2=-1)[..., None] for by in (by_full, by_masked))
    of_added = (wrong * ((by_masked - right_full) ** 2 + (right_masked - by_full) ** 2)).sum(axis=(-2, -1))
    half = _quantile(level) * np.sqrt((joint.counts * influence**2).sum(axis=-1) + extra * of_added)
    most = 2.0 if metric == "matthews" else 1.0
    low, high = np.fmin(after - before - half, observed), np.fmax(after - before + half, observed)
    return np.maximum(low, -most), np.minimum(high, most)


def correlation_interval(
    gold: NDArray, full: NDArray, masked: NDArray, level: float = LEVEL, *, ranked: bool = False
) -> Interval:
    """Ends of the difference of two Pearson correlations, or of two of Spearman's. NaN where gold is one value."""
    if len(gold) < 3 or np.ptp(gold) == 0:
        return Interval(np.nan, np.nan)
    g, f, m = (standardised(ranks(x) if ranked else x, 0.0) for x in (gold, full, masked))
    before, after = float((g * f).mean()), float((g * m).mean())

    def influence(r: float, x: NDArray) -> Floats:
        change: Floats = g * x - r * (g**2 + x**2) / 2
        if ranked:  # one example more moves the ranks of all below it
            change = change + _moved(g, x) + _moved(x, g) - r * (_moved(g, g) + _moved(x, x))
        return change - change.mean()

    # an example that gets another one's answer: expected over all others, whose answers have mean 0 and variance 1
    squared = f * f
    cubed, to_the_fourth = float((squared * f).mean()), float((squared * squared).mean())
    a, b = g, before / 2
    changes = a**2 * (1 + squared) + b**2 * (to_the_fourth - squared * (2 - squared))
    changes -= 2 * a * b * (cubed - f * (1 - squared))
    of_exchange = float(changes.mean())
    n, influences = len(gold), influence(after, m) - influence(before, f)
    if np.allclose(m, f, rtol=0, atol=1e-9):  # the same answers on another scale: what differs is rounding
        influences = np.zeros_like(influences)
    second, carried = second_and_carried(influences)
    errors = standardised(f - before * g, 0.0)
    if max(map(_kurtosis, (g, f, m))) > TAILS:
        most = 2.0
    else:
        most = 2.5 if not ranked and before > CLOSE and _kurtosis(errors) > PEAKED else np.inf

    def half(move: float) -> float:
        """Half the interval's width, where a ``move`` of an answer counts as showing what a change does."""
        shown = min(1.0, float((np.abs(m - f) > move).mean()) / ALL_MOVED * carried / (carried + FEW))
        unseen = EXCHANGED * added(level) * of_exchange * (1 - shown)
        width = student(min(most, freedom(carried, shown)), level) * np.sqrt(second + unseen) / n
        return float(width)

    # exchanges that were not observed lower a correlation: they make a loss larger, and do not undo an observed one
    change, down = after - before, half(MOVED)
    up = half(MOVED * np.sqrt(max(0.0, 1 - before**2))) if change < 0 < before else down
    return Interval(max(-2.0, change - down), min(2.0, change + up))


def _kurtosis(standard: NDArray) -> float:
    """Of values of mean 0 and variance 1; 3 for a normal distribution."""
    return float(((standard * standard) ** 2).mean())


def second_and_carried(influences: NDArray) -> tuple[float, float]:
    """The sum of squares of what each unit adds to a difference, and how many units carry it."""
    second, fourth = float((influences**2).sum()), float(((influences**2) ** 2).sum())
    return second, second**2 / fourth if fourth > 0 else 0.0


def freedom(carried: float, shown: float = 0.0) -> float:
    """Degrees of freedom of a difference that ``carried`` units carry; ``shown``, 0 to 1, is how much moved."""
    return 3 + (0.4 + 0.5 * shown) * carried


def student(degrees: float, level: float) -> float:
    """The quantile of Student's t: where few units carry a difference, its variance is estimated from few values."""
    return float(scipy.special.stdtrit(degrees, (1 + level) / 2))


def _moved(of: NDArray, weights: NDArray) -> Floats:
    """How much the mean of weights · ranks rises with one more example at each value; both have mean 0, variance 1.

    An example lifts the ranks above its own by one, and those equal to it by half.
    """
    _, level, counts = np.unique(of, return_inverse=True, return_counts=True)
    if len(counts) == 1:
        return np.zeros(len(of))
    by_level = np.bincount(level, weights, len(counts))
    above = np.cumsum(by_level[::-1])[::-1] - by_level / 2
    rank = np.cumsum(counts) - (counts - 1) / 2
    spread = np.sqrt((counts * (rank - (len(of) + 1) / 2) ** 2).sum() / len(of))
    moved: Floats = above[level] / spread
    return moved


def added(level: float) -> float:
    """Examples to add in each direction: one at the usual level, more at a higher level."""
    return float((_quantile(level) / _quantile(LEVEL)) ** 2)


def _quantile(level: float) -> float:
    return float(scipy.special.ndtri((1 + level) / 2))


# Each: tables [..., gold, answer] -> the metric [...] and its slope by the count of each cell, of the same shape


def _accuracy(table: NDArray) -> tuple[Floats, Floats]:
    n = table.sum(axis=(-2, -1))[..., None, None]
    accuracy = np.trace(table, axis1=-2, axis2=-1)[..., None, None] / n
    return accuracy[..., 0, 0], (np.eye(table.shape[-1]) - accuracy) / n


def _f1(table: NDArray, of: int = 1) -> tuple[Floats, Floats]:
    hit = table[..., of, of]
    total = table[..., of, :].sum(axis=-1) + table[..., :, of].sum(axis=-1)
    slope = np.zeros(table.shape)
    each = (2 * hit / total**2)[..., None]
    slope[..., of, :] -= each
    slope[..., :, of] -= each
    slope[..., of, of] += 2 / total
    return 2 * hit / total, slope


def _f1_macro(table: NDArray) -> tuple[Floats, Floats]:
    gold = table.sum(axis=-1)
    occurs, hit, total = gold > 0, np.diagonal(table, axis1=-2, axis2=-1), gold + table.sum(axis=-2)
    share = occurs / (occurs.sum(axis=-1, keepdims=True) * np.where(total > 0, total, 1))  # of a class in the mean
    lost = 2 * hit * share / np.where(total > 0, total, 1)
    slope = 2 * share[..., None] * np.eye(table.shape[-1]) - lost[..., :, None] - lost[..., None, :]
    return (2 * hit * share).sum(axis=-1), slope


def _balanced_accuracy(table: NDArray) -> tuple[Floats, Floats]:
    gold = table.sum(axis=-1)
    occurs, hit = gold > 0, np.diagonal(table, axis1=-2, axis2=-1)
    share = occurs / (occurs.sum(axis=-1, keepdims=True) * np.where(gold > 0, gold, 1))
    lost = hit * share / np.where(gold > 0, gold, 1)
    return (hit * share).sum(axis=-1), share[..., None] * np.eye(table.shape[-1]) - lost[..., None]


def _matthews(table: NDArray) -> tuple[Floats, Floats]:
    gold, predicted = table.sum(axis=-1), table.sum(axis=-2)
    n = table.sum(axis=(-2, -1))[..., None, None]
    correct = np.trace(table, axis1=-2, axis2=-1)[..., None, None]
    top = correct * n - (gold * predicted).sum(axis=-1)[..., None, None]
    of_gold, of_predicted = (n**2 - (x**2).sum(axis=-1)[..., None, None] for x in (gold, predicted))
    below = np.sqrt(of_gold * of_predicted)
    of_top = n * np.eye(table.shape[-1]) + correct - predicted[..., :, None] - gold[..., None, :]
    of_below = (n - gold[..., :, None]) * of_predicted + of_gold * (n - predicted[..., None, :])
    return (top / below)[..., 0, 0], of_top / below - top * of_below / below**3


SLOPES: dict[str, Callable[[NDArray], tuple[Floats, Floats]]] = {
    "accuracy": _accuracy,
    "balanced_accuracy": _balanced_accuracy,
    "f1_macro": _f1_macro,
    "matthews": _matthews,
}


def mean_and_sd(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and sample standard deviation, over seeds say; None for the deviation of a single value."""
    if not values:
        raise ValueError("no values")
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else None


def interval_of_mean(values: ArrayLike) -> tuple[float, float, float]:
    """The mean of independent draws and its interval by Student's t; of a single draw the ends are NaN."""
    draws = np.asarray(values, dtype=np.float64)
    mean, n = float(draws.mean()), len(draws)
    if n < 2:
        return mean, float("nan"), float("nan")
    half = float(student(n - 1, LEVEL) * draws.std(ddof=1) / np.sqrt(n))
    return mean, mean - half, mean + half


BLOCKS = 3  # of a series; more of them are shorter, and one then still resembles the next


def interval_of_series(values: ArrayLike) -> tuple[float, float, float]:
    """The mean of draws that follow each other in time, and its interval by Student's t over the means of three blocks.

    Timings resemble those before them, so each draw has less information than an independent one. With a correlation
    of 0.8 from one to the next, t over 12 draws holds the mean in 46 %, this in 84 % (bench/coverage_of_series.py).
    """
    series = np.asarray(values, dtype=np.float64)
    blocks = np.array_split(series, min(BLOCKS, len(series)))
    mean, low, high = interval_of_mean([block.mean() for block in blocks])
    shift = float(series.mean()) - mean  # blocks of unequal length
    return mean + shift, low + shift, high + shift
