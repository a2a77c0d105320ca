"""How far a repair may go: the strength of its ridge, chosen on held-out rows, within a bound on the weights.

Least squares on a few rows can write weights far larger than all others of a matrix. They fit the sample, but int8
has 127 steps up to the largest weight of a matrix, so that all others are then rounded to next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .moments import Moments, Split

STRENGTHS = tuple(10.0**k for k in range(-3, 4))  # of the ridge, as shares of the mean squared input
LIMIT = 4.0  # times a map's largest weight before the repair
# a map with its bias, its moments, inputs of each head, strength of the ridge -> the new map
Solve = Callable[[np.ndarray, Moments, int, float], np.ndarray]


def solved(solve: Solve, weights: np.ndarray, rows: Split, size: int) -> tuple[np.ndarray, float | None]:
    """Of the solutions within the bound the one that is best on held-out rows, and the strength of its ridge.

    Where none is better there than the weights as they are, these, and None. The bias is free: it is no factor of a
    product, so it is not rounded with the weights.
    """
    best, strength, error = weights, None, rows.held.error(weights)
    for tried in STRENGTHS:
        new = solve(weights, rows.fit, size, tried)
        if largest(new) <= LIMIT * largest(weights) and (left := rows.held.error(new)) < error:
            best, strength, error = new, tried, left
    return best, strength


def largest(weights: np.ndarray) -> float:
    """The largest absolute weight of [W + 1, D], the bias left out; 0 without inputs."""
    return float(np.abs(weights[:-1]).max(initial=0.0))
