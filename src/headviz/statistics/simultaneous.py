"""Differences between several scores of the same model and data, all at once, of which the best was picked.

Each score was measured on one half of the examples and tried on the other, both ways, in several splits. Two things
vary: the examples that it was tried on, which the draws have (the same draws for all scores), and the half that it was
measured on. The second is seen between the two halves of a split, as in Dietterich's 5x2 cross-validation (Neural
Computation 10, 1998): half the squared difference of two independent halves estimates the variance of their mean, both
parts together. With five splits that has few degrees of freedom, so each pair's variance is drawn toward that of its
draws times what all pairs have in common.

An interval holds for all pairs at once: its width is a quantile of the largest studentised difference over all pairs
(max-t), so picking the best afterwards changes nothing. ``bench/coverage_of_boards.py`` measures how often it holds.

Shapes: K scores, R draws, S splits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from .significance import LEVEL

SHARED = 8  # degrees of freedom, for each split, that the ratio of all pairs counts for
ROUNDING = 1e-20  # a variance that is none: two scores with the same orders

Floats = NDArray[np.float64]


class Differences(NamedTuple):
    """Standard errors [K, K] of all differences, and by how many of them a difference must exceed 0."""

    errors: Floats
    one: float  # a difference that was named beforehand
    all: float  # any of them


def differences(draws: NDArray, halves: NDArray, level: float = LEVEL) -> Differences:
    """Of values with ``draws`` [K, R] over examples, and ``halves`` [K, S, 2] of each half of each split."""
    draws = draws[:, np.isfinite(draws).all(axis=0)]
    gaps = draws[:, None] - draws[None]
    by_examples = gaps.var(axis=2)
    within = (halves[..., 0] - halves[..., 1]) / 2  # [K, S]
    by_halves = ((within[:, None] - within[None]) ** 2).mean(axis=2)
    splits, known = halves.shape[1], by_examples > ROUNDING
    ratio = max(1.0, float(by_halves[known].sum() / by_examples[known].sum())) if known.any() else 1.0
    variance = (SHARED * ratio * by_examples + by_halves) / (SHARED + 1)
    errors, freedom = np.sqrt(np.maximum(variance, by_examples)), (SHARED + 1) * splits
    one = float(scipy.special.stdtrit(freedom, (1 + level) / 2))
    if not known.any():
        return Differences(errors, one, one)
    first, second = np.nonzero(np.triu(known, 1))
    of_pairs = gaps[first, second]
    moved = of_pairs - of_pairs.mean(axis=1, keepdims=True)
    largest = np.abs(moved / moved.std(axis=1, keepdims=True)).max(axis=0)
    # a normal quantile becomes that of Student's t: the errors are estimates
    tail = float(scipy.special.ndtr(-np.quantile(largest, level)))
    return Differences(errors, one, float(scipy.special.stdtrit(freedom, 1 - tail)))
