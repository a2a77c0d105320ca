"""What is read from the maps of a few examples: correlations of attention and attribution, maxima, the error.

A processor takes one example at a time, in whichever thread asks. A GPU takes all of them at once, texts of unequal
length with their padding left out, and hands out only these numbers.

Shapes: B examples, S heads that are on side by side, L layers, H heads, T tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..attribution import attattr, integration
from ..attribution.rules import AttAttrOptions, PathOptions
from ..attribution.walk import Swept, answers_of
from ..models.fast.gpu import fetch, put, runs_by_itself
from .chunk import Chunk, Tables

# -----------------------------------------------------------------------------------------------
# Correlation of two matrices, for many heads at once: Pearson, Spearman, Kendall. One code for processors and GPUs.
#
# Arguments are [N, M]: N heads, M connections of each. Results are [N] in float64 and equal scipy's; a constant row
# has no correlation and gives NaN, and so does one that holds NaN. Ties get average ranks (Spearman) or count as ties
# on their side (Kendall's tau-b). Nothing here is for p-values: connections are not independent.
#
# Rows may have unequal numbers of entries: ``valid`` [N, M] says which count; the others are left out.


Floats = NDArray[Any]
NAMES = ("spearman", "kendall", "pearson")
# numbers sorted together: they stay in a processor's cache; a GPU takes 100 to 220 bytes for each
ROWS_AT_ONCE, GPU_AT_ONCE = 2**16, 2**22


def correlations(a: Floats, b: Floats, names: Sequence[str] = NAMES) -> dict[str, Floats]:
    """The correlations of these names, of NumPy tables."""
    if a.shape != b.shape or a.ndim != 2:
        raise ValueError(f"two [N, M] tables are needed, not {a.shape} and {b.shape}")
    left, right = (torch.from_numpy(np.ascontiguousarray(t)) for t in (a, b))
    return {name: values.numpy() for name, values in correlated(left, right, names).items()}


def correlated(a: Tensor, b: Tensor, names: Sequence[str] = NAMES, valid: Tensor | None = None) -> dict[str, Tensor]:
    """The same, computed on the tables' device. Nothing waits for a GPU."""
    rows, size = a.shape
    block = max(1, (ROWS_AT_ONCE if a.device.type == "cpu" else GPU_AT_ONCE) // max(size, 1))
    parts = [slice(start, start + block) for start in range(0, rows, block)]
    values = [_rows_correlation(a[p], b[p], names, None if valid is None else valid[p]) for p in parts]
    if not values:
        return {name: a.new_empty(0, dtype=torch.float64) for name in names}
    return {name: torch.cat([part[name] for part in values]) for name in names}


class _Ranks(NamedTuple):
    average: Tensor  # ties share theirs
    first: Tensor  # the lowest of ties; invalid entries come last
    tied: Tensor  # [N] pairs


def _rows_correlation(a: Tensor, b: Tensor, names: Sequence[str], valid: Tensor | None) -> dict[str, Tensor]:
    """Rows without a correlation are recognised by their values: a mean is not exact on every device."""
    undefined = _constant(a, valid) | _constant(b, valid)
    values = {}
    if "spearman" in names or "kendall" in names:
        ranks_a, ranks_b = _ranks(a, valid), _ranks(b, valid)
        if "spearman" in names:
            values["spearman"] = _pearson(ranks_a.average, ranks_b.average, valid)
        if "kendall" in names:
            values["kendall"] = _tau_b(ranks_a, ranks_b, valid)
    if "pearson" in names:
        values["pearson"] = _pearson(a.double(), b.double(), valid)
    return {name: values[name].masked_fill(undefined, torch.nan) for name in names}


def _constant(values: Tensor, valid: Tensor | None) -> Tensor:
    """[N] whether a row has one value, none, or an unknown one."""
    low, high = (values, values) if valid is None else (values.where(valid, x) for x in (torch.inf, -torch.inf))
    least, most = low.amin(dim=1), high.amax(dim=1)
    return ~(least < most)  # NaN wins in both


def _ranks(values: Tensor, valid: Tensor | None) -> _Ranks:
    size = values.shape[1]
    position = torch.arange(size, device=values.device)
    ordered, order = _ordered(values if valid is None else values.where(valid, torch.inf))
    first = _run_starts(ordered)
    before = position - first
    if values.device.type == "cpu" and not before.any():  # on a GPU, asking this would wait for it
        last = first
    else:
        last = size - 1 - _run_starts(ordered.flip(1)).flip(1)
    if valid is not None:
        count = valid.sum(dim=1, keepdim=True)
        last = last.clamp(max=count - 1)
        before = before.where(position < count, 0)
        first = first.where(position < count, count)
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
    """For each position of a sorted row, where its run of equal values begins."""
    starts = torch.zeros(ordered.shape, dtype=torch.int64, device=ordered.device)
    position = torch.arange(1, ordered.shape[1], device=ordered.device)
    torch.mul(ordered[:, 1:] != ordered[:, :-1], position, out=starts[:, 1:])
    if ordered.device.type != "cpu":
        return starts.cummax(dim=1).values
    table = starts.numpy()
    np.maximum.accumulate(table, axis=1, out=table)
    return starts


def _pearson(a: Tensor, b: Tensor, valid: Tensor | None) -> Tensor:
    a, b = _scaled(a, valid), _scaled(b, valid)
    length = ((a * a).sum(dim=1) * (b * b).sum(dim=1)).sqrt()
    return ((a * b).sum(dim=1) / length).clamp(-1.0, 1.0)


def _scaled(x: Tensor, valid: Tensor | None) -> Tensor:
    """Without its mean and to a largest value of 1, so that no square underflows; NaN for zeros only."""
    if valid is None:
        centred = x - x.mean(dim=1, keepdim=True)
    else:
        mean = x.where(valid, 0.0).sum(dim=1, keepdim=True) / valid.sum(dim=1, keepdim=True)
        centred = (x - mean).where(valid, 0.0)
    high = centred.abs().amax(dim=1, keepdim=True)
    return centred / high.where(high > 0, torch.nan)


def _tau_b(ranks_a: _Ranks, ranks_b: _Ranks, valid: Tensor | None) -> Tensor:
    size = ranks_a.first.shape[1]
    count = torch.tensor([size]) if valid is None else valid.sum(dim=1)
    pairs = (count * (count - 1) // 2).to(ranks_a.tied.device, non_blocking=True)
    both = _sorted(ranks_a.first << 32 | ranks_b.first)  # by a, ties by b: these are no swaps
    position = torch.arange(size, device=both.device)
    before = position - _run_starts(both)
    together = (before if valid is None else before.where(position < count[:, None], 0)).sum(dim=1)
    order = _sorted((both & 0xFFFFFFFF) << 32 | position) & 0xFFFFFFFF
    agree_minus_differ = pairs - ranks_a.tied - ranks_b.tied + together - 2 * _swaps(order)
    untied = [(pairs - ranks.tied).double() for ranks in (ranks_a, ranks_b)]
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
    position = torch.arange(padded, dtype=kind, device=order.device)
    keys = torch.empty((rows, padded), dtype=kind, device=order.device)
    keys[:, :size] = order.to(kind) << shift
    keys[:, size:] = position[size:] << shift  # in order already, above all others: no swap
    keys |= position
    swaps = torch.zeros(rows, dtype=torch.int64, device=order.device)
    for level in range(levels):
        half = 1 << level
        blocks = _sorted(keys.view(rows, -1, 2 * half))
        from_left = (blocks & half) == 0  # the bit of the original position that separates the halves
        counts = from_left.sum(dim=1)  # [rows, 2·half]
        unswapped = (padded // (2 * half)) * (half * (half - 1) // 2)
        swaps += (counts * torch.arange(2 * half, device=order.device)).sum(dim=1) - unswapped
        keys = blocks
    return swaps


# -----------------------------------------------------------------------------------------------


INFLUENTIAL = "_influential"  # only the query rows that can reach the prediction
ALL_NAMES = tuple(name + rows for rows in ("", INFLUENTIAL) for name in (*NAMES, "max"))


def conductance(chunk: Chunk) -> list[Callable[[], Tables]]:
    """The sweep of conductance maps."""
    path = PathOptions(int(chunk.options.steps), chunk.options.rule, chunk.options.precision)
    maps = integration.sweep_groups(
        chunk.clf, chunk.encodings, chunk.targets, path, chunk.mask, chunk.budget, chunk.cancel
    )
    names = chunk.rows if runs_by_itself(chunk.clf.device) and chunk.rows else ALL_NAMES
    return _values_of(maps, chunk, names)


def attattr_values(chunk: Chunk) -> list[Callable[[], Tables]]:
    """The sweep of AttAttr's maps: "max" alone."""
    options = chunk.options
    scale = AttAttrOptions(int(options.steps), options.rule, options.precision, options.of)
    maps = attattr.sweep_groups(
        chunk.clf, chunk.encodings, chunk.targets, scale, chunk.mask, chunk.budget, chunk.cancel
    )
    values = _values_of(maps, chunk, ["max"])
    return [lambda value=value: {"max": value()["max"]} for value in values]  # type: ignore[misc]


def _values_of(maps: Iterator[Swept], chunk: Chunk, names: Sequence[str]) -> list[Callable[[], Tables]]:
    """Of all groups; no name holds a group while the next one is computed."""
    groups = map(partial(map_values, on=chunk.mask.array(), names=names), maps)
    return [value for values in groups for value in values]


def by_nodes(chunk: Chunk) -> Iterator[slice]:
    return integration.groups(chunk.clf, chunk.encodings, int(chunk.options.steps), chunk.budget)


def map_values(swept: Swept, on: np.ndarray, names: Sequence[str] = ALL_NAMES) -> list[Callable[[], Tables]]:
    """For each example the values of these names for the heads on, [L, H], and "error", relative to the maps' size.

    Names with ``_influential`` compare only the query rows that can reach the prediction: elsewhere no head of the
    layer has an attribution other than exactly 0.
    """
    present = swept.clf.present.array()
    rows = np.flatnonzero(on[present])  # of the heads side by side
    layers = np.nonzero(on & present)[0]
    clf, device, count = swept.clf, swept.logits.device, len(swept.lengths)

    def take(t: Tensor, dim: int) -> Tensor:
        return t if len(rows) == present.sum() else t.index_select(dim, put(torch.from_numpy(rows), device))

    def table(values: np.ndarray) -> np.ndarray:
        out = np.full(on.shape, np.nan)
        out[on & present] = values
        return out

    if not runs_by_itself(device):

        def example_values(i: int) -> Tables:
            a, b = (take(swept.example(tables, i), 0)[None].cpu() for tables in (swept.attention, swept.attribution))
            errors = [take(torch.cat([e[i] for e in swept.errors]), 0)[None].cpu()] if swept.errors else []
            values, error = _values(a, b, errors, layers, names, None)
            return {name: table(v[0].numpy()) for name, v in values.items()} | {"error": error[0].numpy()}

        return [partial(example_values, i) for i in range(count)]

    (attention,), (attribution,) = swept.attention, swept.attribution
    lengths = put(torch.tensor(swept.lengths), device)
    token = torch.arange(attention.shape[-1], device=device) < lengths[:, None]  # [B, T]
    inside = token[:, None, :, None] & token[:, None, None]  # [B, 1, T, T]
    per_map, error = _values(
        take(attention, 1), take(attribution, 1), [take(e, 1) for e in swept.errors], layers, names, inside
    )
    wait = fetch([torch.stack([per_map[name] for name in names]), error, swept.logits.float()])

    def finish(i: int) -> Tables:  # holds no maps: the next ones need their memory
        values, errors, logits = wait()
        answers_of(clf, logits)
        return {name: table(values[n, i]) for n, name in enumerate(names)} | {"error": errors[i]}

    return [partial(finish, i) for i in range(count)]


def _values(
    attention: Tensor,
    attribution: Tensor,
    errors: list[Tensor],
    layers: np.ndarray,
    names: Sequence[str],
    inside: Tensor | None,
) -> tuple[dict[str, Tensor], Tensor]:
    """Values [B, S] by name and the error [B], of maps [B, S, T, T]; ``inside`` is false for padding."""
    batch, heads = attention.shape[:2]
    if inside is not None:
        attribution = attribution.where(inside, 0.0)
    a, b = attention.flatten(0, 1), attribution.flatten(0, 1)  # [B·S, T, T]
    valid = None if inside is None else inside.expand(attention.shape).flatten(0, 1)
    of_all_rows = [name for name in names if not name.endswith(INFLUENTIAL)]
    influential = [name.removesuffix(INFLUENTIAL) for name in names if name.endswith(INFLUENTIAL)]
    computed = of_all_rows if inside is not None else list(dict.fromkeys(of_all_rows + influential))
    by_name = _of_maps(a, b, computed, valid)
    if influential:
        reach = _reaching(attribution, layers).flatten(0, 1)  # [B·S, T]
        if inside is None:  # in most layers every row can reach the prediction: the values are those of all rows
            partly = ~reach.all(dim=1)
            values = {name: by_name[name].clone() for name in influential}
            rows = reach[partly][:, :, None].expand_as(a[partly])
            for name, v in _of_maps(a[partly], b[partly], influential, rows).items():
                values[name][partly] = v
        else:
            assert valid is not None
            values = _of_maps(a, b, influential, valid & reach[:, :, None])
        by_name = {name: by_name[name] for name in of_all_rows} | {name + INFLUENTIAL: v for name, v in values.items()}
    size = torch.linalg.vector_norm(attribution, dim=(1, 2, 3), dtype=torch.float64)
    error = torch.full_like(size, torch.nan)
    if errors:
        error = torch.linalg.vector_norm(errors[0].nan_to_num(), dim=1) / size.where(size > 0, torch.nan)
        error = error.masked_fill(errors[0].isnan().all(dim=1), torch.nan)
    return {name: v.view(batch, heads) for name, v in by_name.items()}, error


def _of_maps(a: Tensor, b: Tensor, names: Sequence[str], valid: Tensor | None) -> dict[str, Tensor]:
    """[N] of each name, for [N, T, T]."""
    a, b = a.flatten(1), b.flatten(1)
    valid = None if valid is None else valid.flatten(1)
    values = correlated(a, b, [name for name in names if name != "max"], valid)
    if "max" in names:
        most = (b if valid is None else b.where(valid, -torch.inf)).amax(dim=1).double()
        values["max"] = most if valid is None else most.where(valid.any(dim=1), torch.nan)
    return {name: values[name] for name in names}


def _reaching(attribution: Tensor, layers: np.ndarray) -> Tensor:
    """[B, S, T] whether any head of a head's layer has an attribution in a query's row."""
    rows = (attribution != 0).any(dim=3)
    layer = put(torch.from_numpy(layers), rows.device)
    counts = torch.zeros(len(rows), int(layers.max(initial=-1)) + 1, rows.shape[2], device=rows.device)
    return counts.index_add_(1, layer, rows.to(counts))[:, layer] > 0
