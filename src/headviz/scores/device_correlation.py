"""What ``correlation`` computes, on a GPU: a processor's core would hold the model's passes up.

Arguments and results are those of ``correlation.correlations``, which is the slow oracle beside it.

Shapes: N heads, M connections of each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .correlation import Floats

ENTRIES_AT_ONCE = 2**21  # of a table; the integers beside it take 100 to 220 bytes for each


class _Ranks(NamedTuple):
    average: Tensor  # ties share theirs
    first: Tensor  # the lowest of ties
    tied: Tensor  # [N] pairs


def correlations(a: Floats, b: Floats, device: torch.device) -> dict[str, NDArray[np.float64]]:
    """Spearman, Kendall and Pearson of each row."""
    rows, size = a.shape
    block = max(1, ENTRIES_AT_ONCE // max(size, 1))
    found = [
        _of_rows(*(torch.from_numpy(np.ascontiguousarray(t[start : start + block])).to(device) for t in (a, b)))
        for start in range(0, rows, block)
    ]
    names = ("spearman", "kendall", "pearson")
    if not found:
        return {name: np.full(0, np.nan) for name in names}
    return dict(zip(names, torch.cat(found, dim=1).cpu().numpy(), strict=True))


def _of_rows(a: Tensor, b: Tensor) -> Tensor:
    """[3, N]. Rows without a correlation are told by their values: a mean is not exact on every device."""
    left, right = _ranks(a), _ranks(b)
    none = torch.stack([(t == t[:, :1]).all(dim=1) | t.isnan().any(dim=1) for t in (a, b)]).any(dim=0)
    found = [_pearson(left.average, right.average), _tau_b(left, right), _pearson(a.double(), b.double())]
    return torch.stack(found).masked_fill(none, torch.nan)


def _ranks(values: Tensor) -> _Ranks:
    size = values.shape[1]
    ordered, order = (values + 0.0).sort(dim=1)  # the sum makes both zeros one
    first = _run_starts(ordered)
    last = size - 1 - _run_starts(ordered.flip(1)).flip(1)
    average = torch.empty_like(first, dtype=torch.float64).scatter_(1, order, (first + last).double() / 2)
    tied = (torch.arange(size, device=values.device) - first).sum(dim=1)
    return _Ranks(average, torch.empty_like(first).scatter_(1, order, first), tied)


def _run_starts(ordered: Tensor) -> Tensor:
    """For each place of a sorted row, where its run of equal values begins."""
    starts = torch.zeros(ordered.shape, dtype=torch.int64, device=ordered.device)
    place = torch.arange(1, ordered.shape[1], device=ordered.device)
    starts[:, 1:] = torch.where(ordered[:, 1:] != ordered[:, :-1], place, 0)
    return starts.cummax(dim=1).values


def _pearson(a: Tensor, b: Tensor) -> Tensor:
    a, b = _scaled(a), _scaled(b)
    return ((a * b).sum(dim=1) / ((a * a).sum(dim=1) * (b * b).sum(dim=1)).sqrt()).clamp(-1.0, 1.0)


def _scaled(x: Tensor) -> Tensor:
    """Without its mean and to a largest value of 1, so that no square underflows; NaN for zeros only."""
    apart = x - x.mean(dim=1, keepdim=True)
    high = apart.abs().amax(dim=1, keepdim=True)
    return apart / torch.where(high > 0, high, torch.nan)


def _tau_b(left: _Ranks, right: _Ranks) -> Tensor:
    size = left.first.shape[1]
    pairs = size * (size - 1) // 2
    both = (left.first * size + right.first).sort(dim=1).values  # by the left, ties by the right: these are no swaps
    together = (torch.arange(size, device=both.device) - _run_starts(both)).sum(dim=1)
    swaps = _swaps((both % size).argsort(dim=1, stable=True))
    agree_minus_differ = pairs - left.tied - right.tied + together - 2 * swaps
    untied = [(pairs - ranks.tied).double() for ranks in (left, right)]
    return (agree_minus_differ / untied[0].sqrt() / untied[1].sqrt()).clamp(-1.0, 1.0)


def _swaps(order: Tensor) -> Tensor:
    """Inversions of each row, a permutation: those between the halves of its values, then within each half, and so on.

    A block holds the values that share their upper bits, in the row's order. Every upper value before a lower one is a
    swap; then the lower ones move to the block's first half.
    """
    rows, size = order.shape
    levels = max(size - 1, 0).bit_length()
    behind = torch.arange(size, 1 << levels, device=order.device).expand(rows, -1)  # in order: no swap
    keys, swaps = torch.cat([order, behind], dim=1), torch.zeros(rows, dtype=torch.int64, device=order.device)
    for level in reversed(range(levels)):
        half = 1 << level
        keys = keys.view(rows, -1, 2 * half)
        upper = keys >> level & 1
        before = upper.cumsum(dim=2) - upper  # upper values before each
        swaps += ((1 - upper) * before).sum(dim=(1, 2))
        place = torch.arange(2 * half, device=order.device)
        keys = torch.empty_like(keys).scatter_(2, torch.where(upper == 1, half + before, place - before), keys)
    return swaps
