"""Metrics that are functions of sums over units: F1 of several kinds, shares and means. Intervals and the swap test.

A unit (an example, a text, a question) has a row of parts; the metric is a function of the sum of the rows. A unit is
resampled as a whole, whatever is counted in it: the words of one text are not independent. A difference is
masked - full.

Shapes: n units, K parts, R resamples.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy
from numpy.typing import NDArray

from .intervals import EXCHANGED, added
from .resampling import SWAPS, p_value
from .significance import Interval

AT_ONCE = 2**22  # values held at once

Floats = NDArray[np.float64]
Metric = Callable[[NDArray], Floats]  # sums [..., K] -> [...]


def f1(hits: NDArray, gold: NDArray, predicted: NDArray) -> Floats:
    """F1 from counts; NaN where nothing is asked for and nothing predicted."""
    total = np.asarray(gold + predicted, dtype=float)
    return np.divide(2.0 * hits, total, out=np.full(total.shape, np.nan), where=total > 0)


def sums_interval(
    of: Metric, full: NDArray, masked: NDArray, wrong: NDArray, level: float, bound: float = 1.0
) -> Interval:
    """Ends of the difference: the delete-one jackknife, with some units more that changed.

    ``wrong`` has the full model's parts with each unit's answers taken from elsewhere. Without such added changes the
    interval would collapse where few answers change, which is where pruning decides. Student's t is for as many units
    as the difference hangs on. NaN where a side is undefined.
    """
    n = len(full)
    before, after = of(full.sum(axis=0)), of(masked.sum(axis=0))
    if n < 3 or np.isnan(after - before):
        return Interval(np.nan, np.nan)
    whole = full.sum(axis=0)
    each = of(masked.sum(axis=0) - masked) - of(whole - full)  # [n] without each unit
    apart = np.nan_to_num(each - (after - before))
    effect = np.nan_to_num(of(whole - full + wrong) - before)  # of a unit that changes
    second, fourth = float((apart**2).sum()), float((apart**4).sum())
    carried = second**2 / fourth if fourth > 0 else 0.0
    wide = float(scipy.special.stdtrit(3 + 0.4 * carried, (1 + level) / 2))
    half = wide * np.sqrt(second + EXCHANGED * added(level) * float((effect**2).mean()))
    return Interval(max(-bound, float(after - before) - half), min(bound, float(after - before) + half))


def sums_swap_p(of: Metric, full: NDArray, masked: NDArray, seed: int = 0) -> float:
    """The paired swap test: what each unit answers under the mask changes places with the full model's at random."""
    differs = np.flatnonzero((full != masked).any(axis=1))
    observed = float(of(masked.sum(axis=0)) - of(full.sum(axis=0)))
    if np.isnan(observed):
        return float("nan")
    if not len(differs):
        return 1.0
    change = (masked - full)[differs].astype(float)
    rng, found, step = np.random.default_rng(seed), [], max(1, AT_ONCE // len(differs))
    for start in range(0, SWAPS, step):
        swapped = rng.random((min(step, SWAPS - start), len(differs))) < 0.5
        moved = swapped.astype(float) @ change  # [R, K]
        found.append(of(masked.sum(axis=0) - moved) - of(full.sum(axis=0) + moved))
    return p_value(np.concatenate(found), observed)


def sums_percentiles(of: Metric, parts: NDArray, resamples: int, seed: int = 0) -> Floats:
    """[R] the metric on resampled units."""
    n = len(parts)
    drawn = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), resamples)
    return of(drawn @ parts)
