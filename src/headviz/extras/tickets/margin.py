"""What the thesis's criterion of a winning ticket lets through, and a test with a margin beside it.

The criterion asks whether the full model's mean is at most the subnetwork's mean plus its standard deviation. With
few seeds that is lenient: ``false_win_rate`` says how often a subnetwork passes that really loses one standard
deviation. ``margin_test`` asks what a user wants to know: is the subnetwork worse by no more than this margin?
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from ...errors import OptionError
from ...results import Result
from ...statistics.significance import LEVEL
from ...tasks import points_in


@dataclass(frozen=True)
class MarginTest(Result):
    """Subnetwork against full model, seed by seed, in points of the metric. None = the seeds cannot tell."""

    margin: float
    difference: float  # mean of subnetwork − full model
    excludes: float | None  # losses above this are excluded, one-sided at 95 %; at least 0
    p: float | None  # of the hypothesis that the subnetwork is worse by the margin or more
    within: bool | None  # worse by less than the margin, at the 5 % level


def false_win_rate(seeds: int, loss: float = 1.0) -> float | None:
    """How often the criterion passes a subnetwork whose true mean lies ``loss`` standard deviations below.

    For independent trainings with normal metrics and one spread: the difference of the two means, over the
    subnetwork's sample sd (n − 1), follows a noncentral t distribution. None for a single seed, which has no sd.
    """
    if seeds < 2:
        return None
    width = math.sqrt(seeds / 2)  # one sd, in standard errors of the difference
    return float(scipy.special.nctdtr(seeds - 1, loss * width, width))


def margin_test(full: Sequence[float], pruned: Sequence[float], margin: float, metric: str) -> MarginTest | None:
    """A paired t test of non-inferiority; both lists hold the metric of the same seeds in the same order.

    ``margin`` is in points. None with a single seed or with lists that do not pair. Seeds that all differ by the same
    number have no spread to judge by: then only the difference is given.
    """
    check_margin(margin)
    if len(full) != len(pruned) or len(full) < 2:
        return None
    change = points_in(metric) * (np.asarray(pruned, dtype=float) - np.asarray(full, dtype=float))
    n, mean, spread = len(change), float(change.mean()), float(change.std(ddof=1))
    if spread <= 1e-9:
        return MarginTest(margin, mean, None, None, None)
    error = spread / math.sqrt(n)
    low = mean - float(scipy.special.stdtrit(n - 1, LEVEL)) * error
    p = float(scipy.special.stdtr(n - 1, -(mean + margin) / error))
    return MarginTest(margin, mean, max(0.0, -low), p, low > -margin)


def check_margin(margin: float) -> None:
    if not (math.isfinite(margin) and margin > 0):
        raise OptionError(f"A margin is a number of points above 0, such as 2, not {margin:g}.")


def caveat(seeds: int) -> str:
    """The sentence that stands beside the criterion."""
    rate = false_win_rate(seeds)
    if rate is None:
        return "With one seed there is no spread, so the criterion says nothing. Train several seeds."
    return (
        f"With {seeds} seeds the thesis's criterion also passes {100 * rate:.0f} % of the networks that really lose "
        "one standard deviation of the seeds: a win is not proof that nothing is lost."
    )


def margin_words(margin: float) -> str:
    """What the column of the margin test means."""
    return (
        f"Within {margin:g} points: the sparsities up to the highest one at which a loss of {margin:g} points or more "
        "is excluded (paired t test over the seeds, one-sided at 5 %, tested from the lowest sparsity upwards until "
        "one fails)."
    )
