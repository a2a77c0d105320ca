"""How many heads and neurons each layer keeps: the least loss within a budget of time.

Removing a unit costs its diagonal Fisher information, so within a layer the lowest go first, and a layer's loss and
time follow from its sizes alone. Choosing one size for each layer's heads and each layer's neurons is then a knapsack
with one choice per group, solved over a fine grid of time (Kwon et al. 2022 search the same problem for times that are
linear in the size).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

GRID = 5000  # steps of time in the budget


@dataclass(frozen=True, eq=False)
class Choices:
    """The sizes that one group may have: the heads, or the neurons, of one layer."""

    sizes: tuple[int, ...]
    seconds: np.ndarray  # of each size
    loss: np.ndarray  # of each size


def losses(fisher: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """Half the Fisher information that goes when only so many of the units stay, the lowest gone first."""
    gone = np.concatenate([[0.0], np.cumsum(np.sort(fisher))])
    return np.array([gone[len(fisher) - size] / 2 for size in sizes])


def allotted(groups: Sequence[Choices], budget: float, seed: int = 0) -> list[int] | None:
    """The size of each group for the least loss within ``budget`` seconds; None where nothing fits.

    Groups are tried in an order drawn from ``seed``: where several choices lose the same, none goes by place.
    """
    order = np.random.default_rng(seed).permutation(len(groups))
    sizes = _in_turn([groups[i] for i in order], budget)
    return None if sizes is None else [sizes[i] for i in np.argsort(order)]


def _in_turn(groups: Sequence[Choices], budget: float) -> list[int] | None:
    least = np.array([g.seconds.min() for g in groups])
    room = budget - least.sum()
    if room < 0:
        return None
    step = room / GRID if room > 0 else 1.0
    best = np.full(GRID + 1, np.inf)  # by time spent beyond the least
    best[0] = 0.0
    chosen = np.zeros((len(groups), GRID + 1), np.int64)
    for i, group in enumerate(groups):
        after = np.full(GRID + 1, np.inf)
        # rounded up, so that the sum stays within the budget
        for k, extra in enumerate(np.ceil((group.seconds - least[i]) / step - 1e-9).astype(int)):
            if extra > GRID:
                continue
            reached = best[: GRID + 1 - extra] + group.loss[k]
            better = reached < after[extra:]
            after[extra:][better] = reached[better]
            chosen[i, extra:][better] = k
        best = after
    at = int(np.argmin(best))
    out = []
    for i in range(len(groups) - 1, -1, -1):
        k = int(chosen[i, at])
        out.append(groups[i].sizes[k])
        at -= int(np.ceil((groups[i].seconds[k] - least[i]) / step - 1e-9))
    return out[::-1]
