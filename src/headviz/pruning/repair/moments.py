"""The numbers for least squares on one linear map: second moments of what it reads, and the map as one matrix.

The map is W_O, which reads the heads' outputs, or W_2, which reads the neurons' activations.
Shapes: N rows (tokens), D hidden size, W what the map reads: h kept heads of size d, or the kept neurons.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...models.slices import is_transposed, weight_of

RIDGE = 1e-3  # of the mean squared head output: directions that the sample hardly shows stay as they are


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


def moments(pieces: Iterable[tuple[Tensor, Tensor]], constant: bool = True) -> Moments:
    """Accumulate (outputs [N, W], wanted [N, D]); ``constant`` says whether there is a bias to be found."""
    total: Moments | None = None
    for outputs, wanted in pieces:
        behind = outputs.new_full((len(outputs), 1), float(constant))
        x = torch.cat([outputs, behind], dim=1).double()
        y = wanted.double().to(x.device)
        one = Moments(len(x), (x.T @ x).cpu().numpy(), (x.T @ y).cpu().numpy(), float((y * y).sum()))
        total = one if total is None else total + one
    assert total is not None
    return total


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
