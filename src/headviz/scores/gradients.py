"""The derivative of each example's training loss by each head's gate, at gates of 1: ∂Loss(x)/∂ξ.

The loss is the one that the model is trained with, as transformers computes it: the cross-entropy of the gold label,
the squared error (ŷ − y)² of a regression, or the mean negative log-likelihood of a reference's tokens. Taylor, Fisher
and the Fisher mask search all start from these derivatives. The gate is ξ·head + (1 − ξ)·what stands in its place.

Shapes: B examples of a chunk, h heads present in a layer, T tokens, Q queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import plugins
from ..answers.answer import no_numbers
from ..attention import HeadCall, Kernel
from ..attribution.integration import gradients
from ..attribution.walk import Walk
from ..models.fast.gpu import exact, fetch, runs_by_itself, token_bytes
from ..models.fast.linear import products
from .chunk import Chunk, Tables

Within = AbstractContextManager[object]  # what the passes run in
UNCHANGED: Within = nullcontext()
TOKENS, GPU_TOKENS = 4096, 2**14  # tokens in one pass that needs gradients but no path


def gates(chunk: Chunk) -> list[Callable[[], Tables]]:
    """The sweep of the gates, for each example: "signed", the derivative, and "token", its tokens' absolute parts."""
    return by_example(chunk, parts(chunk))


def parts(chunk: Chunk, within: Within = UNCHANGED, *kernel: Kernel) -> Sequence[Tensor]:
    """[B, h, Q] of each row: the derivative of each example's loss by each head's gate, one part for each query."""
    custom = chunk.data.answer.own.get("gate parts")
    if custom is None:
        return of_texts(chunk, chunk.clf.call(chunk.mask, *kernel, keep_outputs=True), within)
    parts: Sequence[Tensor] = plugins.function(custom)(chunk, chunk.clf.call(chunk.mask, *kernel), within)
    return parts


def by_tokens(chunk: Chunk) -> Iterator[slice]:
    """Examples that share a pass: on a GPU as many as the budget holds, up to ``GPU_TOKENS``."""
    clf, longest, most = chunk.clf, max(len(e) for e in chunk.encodings), TOKENS
    if runs_by_itself(clf.device):
        most = min(GPU_TOKENS, chunk.budget // (clf.num_layers * token_bytes(clf, longest)))
    size = max(1, most // longest)
    for start in range(0, len(chunk.encodings), size):
        yield slice(start, start + size)


def by_example(chunk: Chunk, parts: Sequence[Tensor]) -> list[Callable[[], Tables]]:
    """The tables of the sweep of the gates, from each layer's derivatives by example, head and token."""
    sums = {"signed": [part.sum(dim=-1) for part in parts], "token": [part.abs().sum(dim=-1) for part in parts]}
    return per_example(chunk, sums)


def per_example(chunk: Chunk, parts: Mapping[str, Sequence[Tensor]]) -> list[Callable[[], Tables]]:
    """The tables of a sweep, from values [B, h] of each layer under their names; NaN where a head is off."""
    present = chunk.clf.present.array()
    wait = fetch([torch.stack([exact(torch.cat(list(values), dim=1)) for values in parts.values()])])

    @cache
    def tables() -> dict[str, np.ndarray]:
        (values,) = wait()
        if np.isnan(values[0]).all(axis=1).any() and values.size:
            raise no_numbers(chunk.clf)
        out = np.full((*values.shape[:2], *present.shape), np.nan)
        out[:, :, present] = values
        out[:, :, ~chunk.mask.array()] = np.nan
        return dict(zip(parts, out, strict=True))

    def example(i: int) -> Tables:
        return {name: table[i] for name, table in tables().items()}

    return [partial(example, i) for i in range(len(chunk.encodings))]


def of_texts(
    chunk: Chunk, call: HeadCall, within: Within = UNCHANGED, loss: Callable[[Tensor], Tensor] | None = None
) -> Sequence[Tensor]:
    """[B, h, T] of each layer; padded queries have no gradient. ``call`` keeps the heads' outputs.

    ``loss`` is of the logits, summed over the examples; None = that of the gold answers.
    """
    clf = chunk.clf
    walk = Walk(clf, chunk.encodings, [None] * len(chunk.encodings), chunk.mask)
    with torch.enable_grad(), products(clf.device), within:
        logits = clf.forward(walk.rows(walk.end.clone().requires_grad_(True)), call)
        if loss is None:
            assert chunk.gold is not None
            total = summed_loss(clf, walk.choose(logits), chunk.gold)
        else:
            total = loss(logits)
        grads = gradients(total, call.outputs)
    return [exact((m * g).sum(dim=-1)) for m, g in zip(moves(clf, call.outputs), grads, strict=True)]


def moves(clf: Any, outputs: Sequence[Tensor]) -> list[Tensor]:
    """The derivative of each layer's gated outputs by the gates: outputs minus what stands in the heads' place."""
    stand_ins = map(clf.stand_in_values, range(len(outputs)))
    return [o.detach() if s is None else o.detach() - s for o, s in zip(outputs, stand_ins, strict=True)]


def summed_loss(clf: Any, logits: Tensor, gold: np.ndarray) -> Tensor:
    """The sum over examples: its gradient by an example's own gates is that of the example's own loss."""
    loss: Tensor = clf.answer.loss(logits, clf.answer.tensor(gold, logits.device), reduction="sum")
    return loss
