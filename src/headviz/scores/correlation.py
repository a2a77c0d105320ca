"""Correlation of two matrices, for many heads at once: Pearson, Spearman, Kendall.

Arguments are [N, M]: N heads, M connections of each. Results are [N] in float64 and equal scipy's; a constant row has
no correlation and gives NaN, and so does one that holds NaN. Ties get average ranks (Spearman) or count as ties on
their side (Kendall's tau-b). Nothing here is for p-values: connections are not independent.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[Any]
_ROWS_AT_ONCE = 2**16  # numbers sorted together; small enough to stay in the processor's cache


def pearson(a: Floats, b: Floats) -> Floats:
    """Product-moment correlation of each row."""
    # rounding leaves a constant row with small deviations from its mean
    constant = (a == a[:, :1]).all(axis=1) | (b == b[:, :1]).all(axis=1)
    return np.where(constant, np.nan, _pearson(_centred(a), _centred(b)))


def spearman(a: Floats, b: Floats) -> Floats:
    """Pearson correlation of average ranks."""
    return _pearson(_centred(_ranks(a).average), _centred(_ranks(b).average))


def correlations(a: Floats, b: Floats) -> dict[str, Floats]:
    """All three at once: ranking, the expensive part, is shared."""
    if a.shape != b.shape or a.ndim != 2:
        raise ValueError(f"two [N, M] tables are needed, not {a.shape} and {b.shape}")
    rows, size = a.shape
    out = {name: np.full(rows, np.nan) for name in ("spearman", "kendall", "pearson")}
    block = max(1, _ROWS_AT_ONCE // max(size, 1))
    for start in range(0, rows, block):
        part = slice(start, start + block)
        left, right = _ranks(a[part]), _ranks(b[part])
        out["pearson"][part] = pearson(a[part], b[part])
        out["spearman"][part] = _pearson(_centred(left.average), _centred(right.average))
        out["kendall"][part] = _tau_b(left, right)
    unknown = np.isnan(a).any(axis=1) | np.isnan(b).any(axis=1)
    return {name: np.where(unknown, np.nan, values) for name, values in out.items()}


class _Ranks:
    """Ranks of each row: ``average`` of ties from 0, ``first`` (lowest of ties), and the tied pairs."""

    __slots__ = ("average", "first", "tied")

    def __init__(self, average: Floats, first: NDArray[np.uint64], tied: NDArray[np.int64]) -> None:
        self.average, self.first, self.tied = average, first, tied


def _ranks(values: Floats) -> _Ranks:
    rows, size = values.shape
    if values.dtype == np.float32:  # sort value and position as one integer: much faster than argsort
        packed = _ordered_bits(values) << np.uint64(32) | np.arange(size, dtype=np.uint64)
        packed.sort(axis=1)
        order = (packed & np.uint64(0xFFFFFFFF)).astype(np.int64)
        ordered = packed >> np.uint64(32)
    else:
        order = np.argsort(values, axis=1, kind="stable")
        ordered = np.take_along_axis(values, order, axis=1)
    first = _run_starts(ordered)
    place = np.arange(size)
    tied = (place - first).sum(axis=1)
    # the last of a tie = the first of it, seen from the other end
    last = size - 1 - _run_starts(ordered[:, ::-1])[:, ::-1] if tied.any() else first
    average = np.empty((rows, size))
    np.put_along_axis(average, order, (first + last) * 0.5, axis=1)
    lowest = np.empty((rows, size), dtype=np.uint64)
    np.put_along_axis(lowest, order, first.astype(np.uint64), axis=1)
    return _Ranks(average, lowest, tied)


def _ordered_bits(values: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Integers in the order of the floats; both zeros are one."""
    bits = (values + np.float32(0)).view(np.uint32)
    flip = (bits >> np.uint32(31)) * np.uint32(0x7FFFFFFF) | np.uint32(0x80000000)
    return (bits ^ flip).astype(np.uint64)


def _run_starts(ordered: NDArray[Any]) -> NDArray[np.int64]:
    """For each place of a sorted row, where its run of equal values begins."""
    place = np.arange(ordered.shape[1])
    starts = np.zeros(ordered.shape, dtype=np.int64)
    starts[:, 1:] = np.where(ordered[:, 1:] != ordered[:, :-1], place[1:], 0)
    return np.maximum.accumulate(starts, axis=1)


def _centred(values: Floats) -> Floats:
    exact = values.astype(np.float64)
    return exact - exact.mean(axis=1, keepdims=True)


def _pearson(a: Floats, b: Floats) -> Floats:
    a, b = _scaled(a), _scaled(b)
    length = np.sqrt(np.einsum("nm,nm->n", a, a) * np.einsum("nm,nm->n", b, b))
    return np.clip(np.einsum("nm,nm->n", a, b) / length, -1.0, 1.0)


def _scaled(x: Floats) -> Floats:
    """To a largest value of 1, so that no square underflows; NaN for zeros only."""
    high = np.abs(x).max(axis=1, keepdims=True, initial=0.0)
    return x / np.where(high > 0, high, np.nan)


def _tau_b(left: _Ranks, right: _Ranks) -> Floats:
    size = left.first.shape[1]
    pairs = size * (size - 1) // 2
    low = np.uint64(0xFFFFFFFF)
    both = left.first << np.uint64(32) | right.first
    both.sort(axis=1)  # by the left value, ties by the right one, so that no tie on the left is a swap
    together = (np.arange(size) - _run_starts(both)).sum(axis=1)
    # Positions in the order of the right value, ties by position: as many swaps as the sequence has itself.
    order = (both & low) << np.uint64(32) | np.arange(size, dtype=np.uint64)
    order.sort(axis=1)
    agree_minus_differ = pairs - left.tied - right.tied + together - 2 * _swaps(order & low)
    with np.errstate(invalid="ignore", divide="ignore"):
        tau = agree_minus_differ / np.sqrt((pairs - left.tied).astype(float)) / np.sqrt(pairs - right.tied)
    return np.clip(tau, -1.0, 1.0)


def _swaps(order: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Inversions of each row, a permutation, counted while merge-sorting all rows level by level.

    Merging two sorted halves of a block, the left half's elements end up at some positions: their sum,
    less what it would be without any swap, is the number of swaps between the halves.
    """
    rows, size = order.shape
    levels = max(size - 1, 0).bit_length()
    padded = 1 << levels
    narrow = levels <= 16
    kind: Any = np.uint32 if narrow else np.uint64
    shift = kind(16 if narrow else 32)
    place = np.arange(padded, dtype=kind)
    keys = np.empty((rows, padded), dtype=kind)
    keys[:, :size] = order.astype(kind) << shift
    keys[:, size:] = place[size:] << shift  # in order already, above all others: no swap
    keys |= place
    swaps = np.zeros(rows, dtype=np.int64)
    for level in range(levels):
        half = 1 << level
        blocks = keys.reshape(rows, -1, 2 * half)
        blocks.sort(axis=2)
        from_left = (blocks & kind(half)) == 0  # the bit of the original position that tells the halves apart
        counts = np.count_nonzero(from_left, axis=1)  # [rows, 2·half]
        unswapped = (padded // (2 * half)) * (half * (half - 1) // 2)
        swaps += counts @ np.arange(2 * half) - unswapped
    return swaps
