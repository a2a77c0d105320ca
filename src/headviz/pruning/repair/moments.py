"""The numbers for least squares on one linear map: second moments of what it reads, and the map as one matrix.

The map is W_O, which reads the heads' outputs, or W_2, which reads the neurons' activations.
Shapes: N rows (tokens), D hidden size, W what the map reads: h kept heads of size d, or the kept neurons.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ...models.slices import is_transposed, weight_of

HELD_OUT = 5  # one text in so many is not fitted on


@dataclass(frozen=True)
class Moments:
    """Second moments over the rows of a layer, in float64."""

    rows: int
    outer: np.ndarray  # [W + 1, W + 1]: inputs with a constant 1 behind them, or 0 where the map has no bias
    cross: np.ndarray  # [W + 1, D]
    energy: float  # Σ ‖wanted‖²

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            self.rows + other.rows, self.outer + other.outer, self.cross + other.cross, self.energy + other.energy
        )

    def error(self, weights: np.ndarray) -> float:
        """Σ ‖wanted − outputs·weights‖² for weights [W + 1, D], the last row being the bias."""
        fit = float(np.sum(weights * self.cross))
        own = float(np.sum(weights * (self.outer @ weights)))
        return max(0.0, self.energy - 2 * fit + own)


class Split(NamedTuple):
    """The moments of the rows that a map is fitted on, and of those of held-out texts."""

    fit: Moments
    held: Moments


class Part(NamedTuple):
    """One map to be solved, and what it reads and should give."""

    layer: int
    name: str
    matrix: nn.Linear
    size: int  # inputs of each head; a neuron is one
    rows: Split


def held_out(texts: Iterable[Any]) -> list[bool]:
    """Which texts are not fitted on: chosen by what they say, so that order does not matter and equal ones agree.

    Of a single text, none is.
    """
    keys = [sha256(repr((text.ids, text.target)).encode()).digest() for text in texts]
    different = sorted(set(keys))
    chosen = set(different[: max(len(different) // HELD_OUT, len(different) > 1)])
    return [key in chosen for key in keys]


def moments(pieces: Iterable[tuple[Tensor, Tensor]], constant: bool = True) -> Moments:
    """Accumulate (outputs [N, W], wanted [N, D]); ``constant`` says whether there is a bias to be found."""
    return _total([_moments(*piece, constant) for piece in pieces])


def split_moments(pieces: Iterable[tuple[Tensor, Tensor, Tensor]], constant: bool = True) -> Split:
    """The same of (outputs, wanted, whether a row is of a held-out text [N])."""
    sides: tuple[list[Moments], list[Moments]] = ([], [])
    for outputs, wanted, held in pieces:
        for side, rows in zip(sides, (~held, held), strict=True):
            side.append(_moments(outputs[rows.to(outputs.device)], wanted[rows.to(wanted.device)], constant))
    return Split(*map(_total, sides))


def _moments(outputs: Tensor, wanted: Tensor, constant: bool) -> Moments:
    behind = outputs.new_full((len(outputs), 1), float(constant))
    x = torch.cat([outputs, behind], dim=1).double()
    y = wanted.double().to(x.device)
    return Moments(len(x), (x.T @ x).cpu().numpy(), (x.T @ y).cpu().numpy(), float((y * y).sum()))


def _total(found: Sequence[Moments]) -> Moments:
    return sum(found[1:], start=found[0])


def weights_of(matrix: nn.Module) -> np.ndarray:
    """A linear map with its bias as the last row (zero where it has none): [W + 1, D], float64."""
    weight = weight_of(matrix)  # [D, W]
    bias: Any = matrix.bias
    last = weight.new_zeros(len(weight)) if bias is None else bias
    return torch.cat([weight.T, last[None]]).detach().double().cpu().numpy()


def set_weights(matrix: nn.Linear, weights: np.ndarray) -> None:
    """The inverse of ``weights_of``, for a model that belongs to the caller alone."""
    new = torch.from_numpy(weights).to(matrix.weight)
    weight = new[:-1] if is_transposed(matrix) else new[:-1].T
    matrix.weight = nn.Parameter(weight.contiguous(), requires_grad=False)
    if matrix.bias is not None:
        matrix.bias = nn.Parameter(new[-1].contiguous(), requires_grad=False)
