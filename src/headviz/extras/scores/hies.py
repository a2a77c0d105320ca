"""How spread each head's attention is, beside its derivative (Choi et al. 2025, HIES).

A text's entropy is the mean over its tokens of −Σ p·log p, divided by log T: 0 = every token looks at one place,
1 = everywhere alike.

Shapes: B examples of a chunk, h heads present in a layer, T tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...errors import OptionError
from ...models.fast.transfers import exact, fetch, put
from ...scores import gradients
from ...scores.chunk import Chunk, Tables
from ...scores.measures import Given
from ...scores.statistics import Counts, Summary, mean
from .options import BlendOptions


def sweep(chunk: Chunk) -> list[Callable[[], Tables]]:
    """For each example: "signed", the loss's derivative by the gate, and "entropy"."""
    call = chunk.clf.call(chunk.mask, "eager", keep_probs=True, keep_outputs=True)
    signed = [part.sum(dim=-1) for part in gradients.of_texts(chunk, call)]
    lengths = put(torch.tensor([len(e) for e in chunk.encodings]), chunk.clf.device)
    spread = [entropy(probs.detach(), lengths) for probs in call.probs]
    ahead = fetch([torch.stack([p.detach().triu(1).any() for p in call.probs if p.shape[1]] or [lengths[0] > 1])])
    values = gradients.per_example(chunk, {"signed": signed, "entropy": spread})

    def checked(value: Callable[[], Tables]) -> Tables:
        if max(map(len, chunk.encodings)) > 1 and not ahead()[0].any():
            raise OptionError(
                f"Score 'hies' divides entropy by the logarithm of the text's length, but '{chunk.clf.name}' reads "
                "from left to right: its tokens see different numbers of places."
            )
        return value()

    return [partial(checked, value) for value in values]


def entropy(probs: Tensor, lengths: Tensor) -> Tensor:
    """[B, h] of probabilities [B, h, T, T]; padding takes no part. NaN for a text of one token."""
    there = torch.arange(probs.shape[-1], device=probs.device) < lengths[:, None]  # [B, T]
    inside = there[:, None, :, None] & there[:, None, None]
    seen, count = exact(probs), exact(lengths)[:, None]
    parts = torch.special.xlogy(seen, seen).where(inside.to(seen.device), 0.0)
    return -parts.sum(dim=(2, 3)) / (count * count.log()).where(count > 1, torch.nan)


def hies(given: Given, options: BlendOptions) -> Summary:
    """α·importance + (1 − α)·(1 − entropy), each brought between 0 and 1 over the heads."""
    entropies = given.rows["entropy"]
    importance = np.where(np.isnan(entropies), np.nan, np.abs(given.rows["signed"]))
    whole, spread = mean(importance), mean(entropies)
    found = mean(_blend(importance, entropies, whole.values, spread.values, options.alpha))

    def resample(counts: Counts) -> NDArray:
        assert whole.resample is not None
        assert spread.resample is not None
        first, second = whole.resample(counts), spread.resample(counts)
        pairs = zip(first, second, strict=True)
        return np.array([_blend(one, other, one, other, options.alpha) for one, other in pairs])

    return replace(found, resample=resample)


def _blend(importance: NDArray, entropies: NDArray, by: NDArray, spread: NDArray, alpha: float) -> NDArray:
    """The formula, with the least and the largest value of the two tables ``by`` and ``spread``."""
    return alpha * _between(importance, by) + (1 - alpha) * (1 - _between(entropies, spread))


def _between(values: NDArray, table: NDArray) -> NDArray:
    """So that the table's least value becomes 0 and its largest 1; a table of one value becomes 0."""
    known = table[np.isfinite(table)]
    low, high = (known.min(), known.max()) if known.size else (0.0, 0.0)
    scaled: NDArray = (values - low) / (high - low if high > low else 1.0)
    return scaled
