"""One vector for each head of one model, to stand in its place when it is off; and the bias that it becomes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Fill:
    """One vector per head, in float32, for each row of the grid [H, d]; zero for heads that the model has lost."""

    kind: str
    values: tuple[Tensor, ...]
    examples: int  # of the reference
    reference: str  # its digest

    @cached_property
    def digest(self) -> str:
        """The same for the same vectors, wherever they came from."""
        sha = hashlib.sha256()
        for rows in self.values:
            sha.update(rows.detach().cpu().contiguous().numpy().tobytes())
        return sha.hexdigest()


def added_bias(weight: Tensor, fill: Tensor, rows: Tensor) -> Tensor:
    """[D] what W_O [D, h·d] makes of these rows (numbers of columns) of a fill [h, d]: the bias that replaces heads."""
    return (weight.detach()[:, rows].double() @ fill.reshape(-1)[rows].to(weight.device).double()).to(weight.dtype)


def add_bias(matrix: torch.nn.Linear, more: Tensor) -> None:
    """Add to a linear map's bias, in place; a map without one gets one, which only headviz's own format keeps."""
    old = matrix.bias
    bias = more if old is None else old.detach() + more
    trained = matrix.weight.requires_grad if old is None else old.requires_grad
    matrix.own_bias = old is None or has_own_bias(matrix)  # type: ignore[assignment]
    matrix.bias = torch.nn.Parameter(bias.contiguous(), requires_grad=trained)


def has_own_bias(matrix: torch.nn.Linear) -> bool:
    """Whether plain transformers has no bias here."""
    return bool(getattr(matrix, "own_bias", False))
