"""Fisher-based mask search with rearrangement within layers (Kwon et al. 2022, sections 3.1 and 3.2).

Removing heads changes the loss, to second order, by ½·(1−m)ᵀ·F·(1−m), where F is the empirical Fisher information of
the head gates. The search uses F's diagonal and removes the lowest heads. The rearrangement uses each layer's block of
F and keeps the number of heads in it, so that of two heads that can replace each other only one is removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb

import numpy as np

from ..heads import TOLERANCE, HeadId, HeadMask, Seed, in_order, levels, lowest

EXHAUSTIVE = 20_000  # up to so many choices of a layer all are tried; above that, swaps
SWAPPED = 64  # up to so many units the best swap of all is made each time; above that, one sweep


def search(
    gradients: np.ndarray, count: int, keep_per_layer: int = 0, rows: range | None = None, seed: Seed = 0
) -> HeadMask:
    """The ``count`` heads (of some rows) with the lowest diagonal Fisher information off. Every head costs the same."""
    _, layers, heads = gradients.shape
    full = HeadMask.full(layers, heads)
    fisher = (gradients.astype(np.float64) ** 2).sum(axis=0)
    candidates = [h for h in full.kept if rows is None or h.layer in rows]
    return full.without(lowest(fisher, count, candidates, keep_per_layer, seed=seed))


def rearranged(mask: HeadMask, gradients: np.ndarray, seed: Seed = 0) -> HeadMask:
    """The same number of heads off in each layer, chosen for the least (1−m)ᵀ·F·(1−m) of the layer's block."""
    units = range(mask.num_heads)
    off: list[HeadId] = []
    for layer in range(mask.num_layers):
        g = gradients[:, layer].astype(np.float64)
        fisher = g.T @ g
        order = in_order(units, np.diag(fisher), seed, [layer * len(units) + h for h in units])
        off += [HeadId(layer, h) for h in best_subset(fisher, mask.off_in(layer), order)]
    return HeadMask.full(mask.num_layers, mask.num_heads).without(off)


def best_subset(fisher: np.ndarray, start: tuple[int, ...], order: Sequence[int]) -> tuple[int, ...]:
    """As many units as in ``start`` with the lowest joint Fisher information: all choices tried, or swaps made.

    Where none is lower than ``start``, it stays. Of choices that tie, the one whose units come first in ``order`` is
    taken, which has the units by their own information, ties drawn.
    """
    if len(start) in (0, len(fisher)):
        return start
    place = {unit: at for at, unit in enumerate(order)}
    best = _best_by_place(fisher[np.ix_(order, order)], tuple(sorted(place[unit] for unit in start)))
    return tuple(sorted(int(order[at]) for at in best))


def _best_by_place(fisher: np.ndarray, start: tuple[int, ...]) -> tuple[int, ...]:
    heads, count = len(fisher), len(start)
    if comb(heads, count) <= EXHAUSTIVE:
        subsets = np.array(list(combinations(range(heads), count)))  # [choices, count], in order
        chosen = np.zeros((len(subsets), heads))
        np.put_along_axis(chosen, subsets, 1.0, axis=1)
        joint = np.einsum("ch,hg,cg->c", chosen, fisher, chosen, optimize=True)
        best = int(np.argmin(levels(joint)))
        of_start = float(fisher[np.ix_(start, start)].sum())
        return start if of_start <= joint[best] + TOLERANCE * abs(of_start) else tuple(int(h) for h in subsets[best])
    return _swapped(fisher, start) if heads <= SWAPPED else _swept(fisher, start)


def _swept(fisher: np.ndarray, start: tuple[int, ...]) -> tuple[int, ...]:
    """Each kept unit in turn, the lowest first, joins those that are off, and the one whose return helps most returns:
    where several help equally, the unit that has just joined, or else the last of them.

    The greedy search of Kwon et al. (2022); quadratic in the number of units, as a layer's neurons need it.
    """
    off = np.zeros(len(fisher))
    off[list(start)] = 1.0
    pull, diagonal = fisher @ off, np.diag(fisher)
    for i in np.flatnonzero(off == 0):
        off[i], pull = 1.0, pull + fisher[i]
        gone = np.flatnonzero(off)
        gains = 2 * pull[gone] - diagonal[gone]
        best = gone[gains >= gains.max() - TOLERANCE * np.abs(gains).max()]
        j = i if i in best else best[-1]
        off[j], pull = 0.0, pull - fisher[j]
    return tuple(int(h) for h in np.flatnonzero(off))


def _swapped(fisher: np.ndarray, start: tuple[int, ...]) -> tuple[int, ...]:
    """Swap the pair that lowers the sum most, until no swap lowers it."""
    off = np.zeros(len(fisher))
    off[list(start)] = 1.0
    while True:
        pull = fisher @ off  # [h]
        gone, kept = np.flatnonzero(off == 1), np.flatnonzero(off == 0)
        diagonal = np.diag(fisher)
        # removing j from the set and adding i: change of xᵀFx
        change = (
            (2 * pull[kept] + diagonal[kept])[:, None]
            - (2 * pull[gone] - diagonal[gone])[None, :]
            - 2 * fisher[np.ix_(kept, gone)]
        )
        i, j = np.unravel_index(int(np.argmin(levels(change.ravel()))), change.shape)
        if change[i, j] >= -TOLERANCE * abs(float(off @ pull)):
            return tuple(int(h) for h in np.flatnonzero(off))
        off[kept[i]], off[gone[j]] = 1.0, 0.0
