"""The functions for heads that transformers 5 no longer has, under their old names and with their old results.

``from headviz.transformers4 import find_pruneable_heads_and_indices, prune_linear_layer, get_head_mask, prune_heads``
replaces the imports from ``transformers.pytorch_utils`` and ``transformers.modeling_utils``, for code that was written
for transformers 4. New code needs ``headviz.masked`` and ``headviz.prune_heads`` alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Any

import torch
from torch import Tensor, nn

from .models.in_place import prune_heads

__all__ = ["find_pruneable_heads_and_indices", "get_head_mask", "prune_heads", "prune_linear_layer"]


def find_pruneable_heads_and_indices(
    heads: Iterable[int], n_heads: int, head_size: int, already_pruned_heads: Set[int]
) -> tuple[set[int], Tensor]:
    """The heads that are still there to remove, and which entries of the hidden size stay, as a vector of indices.

    ``heads`` have their original numbers; ``n_heads`` is how many the layer has now, without ``already_pruned_heads``.
    """
    to_remove = set(heads) - set(already_pruned_heads)
    stays = torch.ones(n_heads, head_size, dtype=torch.bool)
    for head in to_remove:
        stays[head - sum(pruned < head for pruned in already_pruned_heads)] = False
    return to_remove, stays.flatten().nonzero().flatten()


def prune_linear_layer(layer: nn.Linear, index: Tensor, dim: int = 0) -> nn.Linear:
    """A new linear layer with the entries ``index`` of the outputs (``dim=0``) or of the inputs (``dim=1``).

    Unlike in transformers 4 its weights have the layer's own precision, where that is not float32.
    """
    index = index.to(layer.weight.device)
    with torch.no_grad():
        weight = layer.weight.index_select(dim, index)
        rows, columns = weight.shape
        new = nn.Linear(columns, rows, layer.bias is not None, device=weight.device, dtype=weight.dtype)
        new.weight.copy_(weight)
        if layer.bias is not None:
            new.bias.copy_(layer.bias if dim == 1 else layer.bias[index])
    return new


def get_head_mask(
    model: Any, head_mask: Tensor | None, num_hidden_layers: int, is_attention_chunked: bool = False
) -> Tensor | list[None]:
    """A head mask in the shape that the layers of transformers 4 took: [layers, batch, heads, queries, keys].

    ``head_mask`` is [heads], the same for all layers, or [layers, heads], with 1 for a head that stays; None gives one
    None per layer. ``model`` tells the precision. It is the first argument because this was a method:
    ``MyModel.get_head_mask = get_head_mask`` makes it one again.
    """
    if head_mask is None:
        return [None] * num_hidden_layers
    if head_mask.dim() == 1:
        head_mask = head_mask[None, None, :, None, None].expand(num_hidden_layers, -1, -1, -1, -1)
    elif head_mask.dim() == 2:
        head_mask = head_mask[:, None, :, None, None]
    if head_mask.dim() != 5:
        raise ValueError(f"A head mask has 1, 2 or 5 dimensions, and this one has {head_mask.dim()}.")
    head_mask = head_mask.to(dtype=model.dtype)
    return head_mask.unsqueeze(-1) if is_attention_chunked else head_mask
