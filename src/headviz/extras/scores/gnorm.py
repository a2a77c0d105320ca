"""How strongly the size of the answer depends on each head's W_Q, W_K and W_V (Guo and Sheridan 2026, Greedy-Gnorm).

The answer's size is the norm of an example's logits. No weight is touched and no gradient of a whole matrix is made:
what goes into a linear map and the gradient of what comes out of it give the norm of the gradient of each head's rows.

Shapes: B examples of a chunk, h heads present in a layer, d head size, T tokens, E width.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ...attribution.walk import Walk
from ...models.fast.gpu import exact
from ...models.fast.linear import products
from ...models.pruning import is_transposed, key_index
from ...scores.chunk import Chunk, Tables
from ...scores.gradients import per_example
from ...scores.measures import Inputs
from ...scores.options import NoOptions
from ...scores.statistics import Counts, Summary, mean

NAMES = ("query", "key", "value")
Use = tuple[Tensor, Tensor]  # what went into a map and what came out


class Watched(TorchFunctionMode):
    """Inside the block, what goes into these linear maps and comes out of them is kept: ``uses`` of each weight."""

    def __init__(self, maps: Sequence[nn.Module]) -> None:
        super().__init__()
        self.uses: dict[int, list[Use]] = {id(m.weight): [] for m in maps}

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        out = func(*args, **(kwargs or {}))
        weight_index = linear_weight(func, args)
        if weight_index is not None and id(args[weight_index]) in self.uses:
            went_in = args[0 if weight_index == 1 else 1]
            if not out.requires_grad:  # the input does not depend on the text; the gradient of the output is needed
                out = out.detach().requires_grad_(True)
            self.uses[id(args[weight_index])].append((went_in.detach(), out))
        return out


def linear_weight(func: Callable, args: tuple) -> int | None:
    """Where a linear map's weight stands among the arguments; None for any other function."""
    if func is torch.nn.functional.linear:
        return 1
    return 2 if func is torch.addmm and len(args) == 3 else None  # as GPT-2 calls its transposed matrices


def sweep(chunk: Chunk) -> list[Callable[[], Tables]]:
    """For each example: "query", "key" and "value", the norm of the gradient of ‖logits‖ by each head's weights."""
    norms = _norms(chunk)
    return per_example(chunk, {name: [layer[i] for layer in norms] for i, name in enumerate(NAMES)})


def _norms(chunk: Chunk) -> list[tuple[Tensor, Tensor, Tensor]]:
    """[B, h] of each layer for queries, keys and values."""
    clf, size = chunk.clf, len(chunk.encodings)
    places = [clf.projections(layer) for layer in range(clf.num_layers)]
    watched = Watched([m for p in places for m in (p.query, p.key, p.value)])
    walk = Walk(clf, chunk.encodings, [None] * size, chunk.mask)
    with torch.enable_grad(), products(clf.device), watched:
        logits = walk.choose(clf.forward(walk.rows(walk.end.clone().requires_grad_(True)), clf.call(chunk.mask)))
        total = torch.linalg.vector_norm(logits.float().nan_to_num().flatten(1), dim=1).sum()
        uses = [use for uses_of_map in watched.uses.values() for use in uses_of_map]
        outputs = [out for _, out in uses]
        grads = torch.autograd.grad(total, outputs, allow_unused=True, materialize_grads=True)
    if size > 1 and any(_per_text(went_in, size) is None for went_in, _ in uses):  # positions, say, are for all texts
        each = [_norms(chunk.subset([i])) for i in range(size)]
        return [tuple(torch.cat(rows) for rows in zip(*layer, strict=True)) for layer in zip(*each, strict=True)]  # type: ignore[misc]
    by_output = {id(out): grad for out, grad in zip(outputs, grads, strict=True)}
    sharing = Counter(id(p.query) for p in places)
    earlier: Counter[int] = Counter()  # layers that share their modules (ALBERT) use them one after the other
    layers = []
    for layer, p in enumerate(places):
        before = earlier[id(p.query)]
        earlier[id(p.query)] += 1
        norms = []
        for number, m in enumerate((p.query, p.key, p.value)):
            uses = watched.uses[id(m.weight)]
            count = len(uses) // sharing[id(p.query)]
            uses = uses[before * count : (before + 1) * count]
            pairs = [(_per_text(x, size), _per_text(by_output[id(out)], size)) for x, out in uses if out.shape[-1]]
            norms.append(_of_heads(chunk, layer, p, number, pairs))
        layers.append((norms[0], norms[1], norms[2]))
    return layers


def _per_text(x: Tensor, size: int) -> Tensor | None:
    """Reshapes [B·T, E] to [B, T, E]; None if the rows are not the texts' tokens."""
    if size == 1:
        return x.reshape(1, -1, x.shape[-1])
    if x.dim() == 2:
        x = x.reshape(size, -1, x.shape[-1]) if len(x) % size == 0 else x[None]
    return x if len(x) == size else None


def _of_heads(chunk: Chunk, layer: int, places: Any, number: int, pairs: Sequence[tuple[Any, Any]]) -> Tensor:
    """[B, h]: ‖Σ_t δ_t x_tᵀ‖ over each head's rows δ, from the products of all pairs of tokens."""
    clf = chunk.clf
    heads = len(clf.present.kept_in(layer))
    if not heads:
        return torch.zeros(len(chunk.encodings), 0, device=clf.device)
    x = exact(torch.cat([went_in for went_in, _ in pairs], dim=1))
    out = exact(torch.cat([grad for _, grad in pairs], dim=1))
    if places.value is places.query:  # three thirds of one matrix
        width = places.output.weight.shape[0 if is_transposed(places.output) else 1]
        out = out[..., width * number : width * (number + 1)] if number < 2 else out[..., -width:]
    out = out.unflatten(-1, (-1, clf.head_size)).transpose(1, 2)  # [B, heads, T, d]
    norms = ((out @ out.transpose(2, 3)) * (x @ x.transpose(1, 2))[:, None]).sum(dim=(2, 3)).clamp_min(0).sqrt()
    if norms.shape[1] == heads:
        return norms
    index = key_index(clf.present, layer, clf.group_size)  # heads that share their keys and values
    return norms.repeat_interleave(heads // norms.shape[1], dim=1) if index is None else norms[:, index]


def gnorm(inputs: Inputs, options: NoOptions) -> Summary:
    """The product of the three mean norms. Uncertainty: that of its linear part."""
    rows = [inputs.rows[name] for name in NAMES]
    means = [mean(norms, inputs.units) for norms in rows]
    q, k, v = (m.values for m in means)
    summary = mean(k * v * rows[0] + q * v * rows[1] + q * k * rows[2] - 2 * q * k * v, inputs.units)

    def resample(counts: Counts) -> np.ndarray:
        drawn = [m.resample(counts) for m in means if m.resample is not None]
        return np.prod(drawn, axis=0)

    return replace(summary, values=q * k * v, resample=resample)
