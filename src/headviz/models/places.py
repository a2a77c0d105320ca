"""Answers that are read from several tokens of a text: the first piece of each word, or every token of a passage.

``places`` are the tokens' positions in the encoding, one for each output, -1 for a word that was cut off. A batch holds
them as a table [B, W], padded with -1; logits [B, W, C] are NaN where there is no token.

Shapes: B texts of a batch, N rows of tokens, W most places of a text, D hidden size, C outputs of a token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

PLACES = "places"  # in a batch


def table_of(encodings: Sequence[Any]) -> np.ndarray | None:
    """[B, W]; None where the answer is read from the text as a whole."""
    if encodings[0].places is None:
        return None
    places = [encoding.places or () for encoding in encodings]
    table = np.full((len(places), max(map(len, places))), -1, dtype=np.int64)
    for row, own_places in zip(table, places, strict=True):
        row[: len(own_places)] = own_places
    return table


def logits_of(output: Any, places: Tensor | None = None) -> Tensor:
    """What a transformers model gave, at these places where there are some."""
    if "logits" in output:
        logits: Tensor = output.logits
    else:
        logits = torch.stack([output.start_logits, output.end_logits], dim=-1)
    return logits if places is None else at(logits, places)


def at(logits: Tensor, places: Tensor) -> Tensor:
    """[B, T, C] -> [B, W, C]"""
    index = places.clamp(min=0)[..., None].expand(-1, -1, logits.shape[-1])
    return logits.gather(1, index).masked_fill((places < 0)[..., None], torch.nan)


def each_token(model: Any, states: Tensor) -> Tensor:
    """[N, D] -> [N, C]: transformers' heads over tokens, which are the same in nearly all families."""
    if hasattr(model, "head"):
        states = model.head(states)
    last = next(getattr(model, name) for name in ("classifier", "qa_outputs", "score") if hasattr(model, name))
    logits: Tensor = last(states)
    return logits


def fitted(logits: Tensor, shape: Sequence[int]) -> Tensor:
    """[n, …] with as many places as all texts together need."""
    if logits.dim() == 2:
        return logits
    return torch.nn.functional.pad(logits, (0, 0, 0, shape[0] - logits.shape[1]), value=torch.nan)
