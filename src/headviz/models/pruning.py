"""Really removing heads: the rows of W_Q, W_K, W_V and the columns of W_O are cut out."""

from __future__ import annotations

import copy
import dataclasses
from typing import TypeVar

import torch
from torch import nn

from ..errors import MaskError, ModelError
from ..heads import HeadMask
from ..models.network import require_model
from . import position_tables as position
from .network import Network

N = TypeVar("N", bound=Network)


def prune(clf: N, mask: HeadMask) -> N:
    """A new, smaller model with the same logits as ``clf`` under ``mask``.

    Heads keep their original numbers: pruning twice by those numbers is pruning once by both. The
    caller's model is left as it was, and shares no memory with the result. A family whose heads can only be masked is
    a ``ModelError``.

    >>> import headviz
    >>> clf = headviz.load("demo", device="cpu")
    >>> small = headviz.prune(clf, clf.full_mask.without([(0, 1), (0, 2)]))
    >>> small.heads_per_layer[:2], clf.heads_per_layer[:2]
    ([10, 12], [12, 12])
    """
    require_model(clf)
    require_prunable(clf)
    return cut(dataclasses.replace(clf, model=copy.deepcopy(clf.model)), clf.present | mask)


def cut(clf: N, kept: HeadMask) -> N:
    """Remove all other heads from the model's own matrices. In place."""
    smaller = dataclasses.replace(clf, present=kept)
    for layer in range(clf.num_layers):
        index = kept_rows(clf.present, kept, layer, clf.head_size, clf.device)
        if index is None:
            continue
        query, key, value, output = smaller.projections(layer)
        for matrix in (query, key, value):
            slice_rows(matrix, index)
        slice_columns(output, index)
    position.fit(smaller, clf.present)
    return smaller


def require_prunable(clf: Network) -> None:
    """A clear error for families whose heads can be masked but not removed."""
    if not clf.family.prunable:
        raise ModelError(
            f"Heads of this model can be masked, but not really removed: {clf.family.why_not_prunable}. "
            "Evaluate it under a mask instead."
        )


def kept_rows(
    before: HeadMask, after: HeadMask, layer: int, head_size: int, device: torch.device
) -> torch.Tensor | None:
    """Row numbers, in the matrices as they are now, of the heads that stay; None if all do."""
    present, kept = before.kept_in(layer), set(after.kept_in(layer))
    if kept.issuperset(present):
        return None
    rows = [i * head_size + k for i, h in enumerate(present) if h in kept for k in range(head_size)]
    return torch.tensor(rows, dtype=torch.long, device=device)


def slice_rows(matrix: nn.Linear, index: torch.Tensor) -> None:
    """Keep these outputs of a linear map, in place."""
    matrix.weight = _like(matrix.weight, matrix.weight.detach()[index])
    if matrix.bias is not None:
        matrix.bias = _like(matrix.bias, matrix.bias.detach()[index])
    matrix.out_features = len(index)


def slice_columns(matrix: nn.Linear, index: torch.Tensor) -> None:
    """Keep these inputs of a linear map, in place."""
    matrix.weight = _like(matrix.weight, matrix.weight.detach()[:, index])
    matrix.in_features = len(index)


def _like(old: torch.Tensor, values: torch.Tensor) -> nn.Parameter:
    """A parameter in the place of another, trained if that one was."""
    return nn.Parameter(values.contiguous(), requires_grad=old.requires_grad)


def zero_columns(matrix: nn.Linear, heads: list[int], head_size: int) -> None:
    """Zero what W_O reads from these heads (by their place in the matrix)."""
    if len(heads) * head_size > matrix.in_features:
        raise MaskError("More heads than the matrix has.")
    weight = matrix.weight.detach().clone()
    for h in heads:
        weight[:, h * head_size : (h + 1) * head_size] = 0
    matrix.weight = nn.Parameter(weight, requires_grad=False)
