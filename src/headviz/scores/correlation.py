"""Correlation of two matrices, for many heads at once: Pearson, Spearman, Kendall. One code for processors and GPUs.

Arguments are [N, M]: N heads, M connections of each. Results are [N] in float64 and equal scipy's; a constant row has
no correlation and gives NaN, and so does one that holds NaN. Ties get average ranks (Spearman) or count as ties on
their side (Kendall's tau-b). Nothing here is for p-values: connections are not independent.

Rows may have unequal numbers of entries: ``there`` [N, M] says which count, and the others are as if they were not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[Any]
NAMES = ("spearman", "kendall", "pearson")
# numbers sorted together: they stay in a processor's cache; a GPU takes 100 to 220 bytes for each
ROWS_AT_ONCE, GPU_AT_ONCE = 2**16, 2**22


def pearson(a: Floats, b: Floats) -> Floats:
    """Product-moment correlation of each row."""
    return correlations(a, b, ("pearson",))["pearson"]


def spearman(a: Floats, b: Floats) -> Floats:
    """Pearson correlation of average ranks."""
    return correlations(a, b, ("spearman",))["spearman"]


def correlations(a: Floats, b: Floats, names: Sequence[str] = NAMES) -> dict[str, Floats]:
    """Those of the names, of tables in this process's memory."""
    if a.shape != b.shape or a.ndim != 2:
        raise ValueError(f"two [N, M] tables are needed, not {a.shape} and {b.shape}")
    left, right = (torch.from_numpy(np.ascontiguousarray(t)) for t in (a, b))
    found = correlated(left, right, names)
    return {name: values.numpy() for name, values in found.items()}


def correlated(a: Tensor, b: Tensor, names: Sequence[str] = NAMES, there: Tensor | None = None) -> dict[str, Tensor]:
    """Those of the names, computed where the tables are. Nothing waits for a GPU."""
    rows, size = a.shape
    block = max(1, (ROWS_AT_ONCE if a.device.type == "cpu" else GPU_AT_ONCE) // max(size, 1))
    parts = [slice(start, start + block) for start in range(0, rows, block)]
    found = [_of_rows(a[p], b[p], names, None if there is None else there[p]) for p in parts]
    if not found:
        return {name: a.new_empty(0, dtype=torch.float64) for name in names}
    return {name: torch.cat([part[name] for part in found]) for name in names}


class _Ranks(NamedTuple):
    average: Tensor  # ties share theirs
    first: Tensor  # the lowest of ties; behind all others where nothing is there
    tied: Tensor  # [N] pairs


def _of_rows(a: Tensor, b: Tensor, names: Sequence[str], there: Tensor | None) -> dict[str, Tensor]:
    """Rows without a correlation are told by their values: a mean is not exact on every device."""
    none = _constant(a, there) | _constant(b, there)
    found = {}
    if "spearman" in names or "kendall" in names:
        left, right = _ranks(a, there), _ranks(b, there)
        if "spearman" in names:
            found["spearman"] = _pearson(left.average, right.average, there)
        if "kendall" in names:
            found["kendall"] = _tau_b(left, right, there)
    if "pearson" in names:
        found["pearson"] = _pearson(a.double(), b.double(), there)
    return {name: found[name].masked_fill(none, torch.nan) for name in names}


def _constant(values: Tensor, there: Tensor | None) -> Tensor:
    """[N] whether a row has one value, none, or an unknown one."""
    low, high = (values, values) if there is None else (values.where(there, x) for x in (torch.inf, -torch.inf))
    least, most = low.amin(dim=1), high.amax(dim=1)
    return ~(least < most)  # NaN wins in both


def _ranks(values: Tensor, there: Tensor | None) -> _Ranks:
    size = values.shape[1]
    place = torch.arange(size, device=values.device)
    ordered, order = _ordered(values if there is None else values.where(there, torch.inf))
    first = _run_starts(ordered)
    before = place - first
    if values.device.type == "cpu" and not before.any():  # a question that a GPU would be waited for
        last = first
    else:
        last = size - 1 - _run_starts(ordered.flip(1)).flip(1)
    if there is not None:
        count = there.sum(dim=1, keepdim=True)
        last = last.clamp(max=count - 1)
        before = before.where(place < count, 0)
        first = first.where(place < count, count)
    average = torch.empty(values.shape, dtype=torch.float64, device=values.device)
    average.scatter_(1, order, (first + last).double() / 2)
    return _Ranks(average, torch.empty_like(first).scatter_(1, order, first), before.sum(dim=1))


def _ordered(values: Tensor) -> tuple[Tensor, Tensor]:
    """Each row's values in order, equal ones equal, and where they stood."""
    values = values + 0.0  # both zeros are one
    if values.dtype != torch.float32 or values.device.type != "cpu":
        return values.sort(dim=1)
    # value and position sorted as one integer: much faster than sorting with positions
    bits = values.view(torch.int32)
    bits = bits ^ (bits >> 31 & 0x7FFFFFFF)
    packed = _sorted(bits.long() << 32 | torch.arange(values.shape[1]))
    return packed >> 32, packed & 0xFFFFFFFF


def _sorted(keys: Tensor) -> Tensor:
    """Integers in order along the last axis."""
    if keys.device.type != "cpu":
        return keys.sort(dim=-1).values
    keys.numpy().sort(axis=-1)  # several times faster than torch's
    return keys


def _run_starts(ordered: Tensor) -> Tensor:
    """For each place of a sorted row, where its run of equal values begins."""
    starts = torch.zeros(ordered.shape, dtype=torch.int64, device=ordered.device)
    place = torch.arange(1, ordered.shape[1], device=ordered.device)
    torch.mul(ordered[:, 1:] != ordered[:, :-1], place, out=starts[:, 1:])
    if ordered.device.type != "cpu":
        return starts.cummax(dim=1).values
    table = starts.numpy()
    np.maximum.accumulate(table, axis=1, out=table)
    return starts


def _pearson(a: Tensor, b: Tensor, there: Tensor | None) -> Tensor:
    a, b = _scaled(a, there), _scaled(b, there)
    length = ((a * a).sum(dim=1) * (b * b).sum(dim=1)).sqrt()
    return ((a * b).sum(dim=1) / length).clamp(-1.0, 1.0)


def _scaled(x: Tensor, there: Tensor | None) -> Tensor:
    """Without its mean and to a largest value of 1, so that no square underflows; NaN for zeros only."""
    if there is None:
        apart = x - x.mean(dim=1, keepdim=True)
    else:
        mean = x.where(there, 0.0).sum(dim=1, keepdim=True) / there.sum(dim=1, keepdim=True)
        apart = (x - mean).where(there, 0.0)
    high = apart.abs().amax(dim=1, keepdim=True)
    return apart / high.where(high > 0, torch.nan)


def _tau_b(left: _Ranks, right: _Ranks, there: Tensor | None) -> Tensor:
    size = left.first.shape[1]
    count = torch.tensor([size]) if there is None else there.sum(dim=1)
    pairs = (count * (count - 1) // 2).to(left.tied.device, non_blocking=True)
    both = _sorted(left.first << 32 | right.first)  # by the left, ties by the right: these are no swaps
    place = torch.arange(size, device=both.device)
    before = place - _run_starts(both)
    together = (before if there is None else before.where(place < count[:, None], 0)).sum(dim=1)
    order = _sorted((both & 0xFFFFFFFF) << 32 | place) & 0xFFFFFFFF
    agree_minus_differ = pairs - left.tied - right.tied + together - 2 * _swaps(order)
    untied = [(pairs - ranks.tied).double() for ranks in (left, right)]
    return (agree_minus_differ / untied[0].sqrt() / untied[1].sqrt()).clamp(-1.0, 1.0)


def _swaps(order: Tensor) -> Tensor:
    """Inversions of each row, a permutation, counted while merge-sorting all rows level by level.

    Merging two sorted halves of a block, the left half's elements end up at some positions: their sum,
    less what it would be without any swap, is the number of swaps between the halves.
    """
    rows, size = order.shape
    levels = max(size - 1, 0).bit_length()
    padded = 1 << levels
    kind, shift = (torch.int32, 15) if levels <= 15 else (torch.int64, 32)
    place = torch.arange(padded, dtype=kind, device=order.device)
    keys = torch.empty((rows, padded), dtype=kind, device=order.device)
    keys[:, :size] = order.to(kind) << shift
    keys[:, size:] = place[size:] << shift  # in order already, above all others: no swap
    keys |= place
    swaps = torch.zeros(rows, dtype=torch.int64, device=order.device)
    for level in range(levels):
        half = 1 << level
        blocks = _sorted(keys.view(rows, -1, 2 * half))
        from_left = (blocks & half) == 0  # the bit of the original position that tells the halves apart
        counts = from_left.sum(dim=1)  # [rows, 2·half]
        unswapped = (padded // (2 * half)) * (half * (half - 1) // 2)
        swaps += (counts * torch.arange(2 * half, device=order.device)).sum(dim=1) - unswapped
        keys = blocks
    return swaps
