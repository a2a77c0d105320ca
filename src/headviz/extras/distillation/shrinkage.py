"""How much of the iterates' correlations to believe: decided by what they foretell, before any student is trained.

Correlations among a hundred thousand weights cannot be had from ten iterates unless few directions carry them. So each
row is left out in turn, and the others foretell its kept weights from its zeroed ones, as the conditional mean does.
Rows are the steps from one iterate to the next, since iterates of one training share most of their way, or independent
trainings themselves. The shrinkage that foretells most is taken; where none foretells more than chance would, it is 1:
a diagonal covariance, whose conditional mean is the copied weights. ``conditional.supported`` declines a shrinkage
whose conditional mean lies too far away.
"""

from __future__ import annotations

from dataclasses import dataclass

import scipy
import torch
from torch import Tensor

from .iterates import Iterates
from .layer_removal import Piece
from .options import PosteriorOptions
from .partition import Partition

GRID = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97)
SAMPLE = 200_000  # kept weights that are foretold, at most
LEAST = 3  # rows
SURE = 0.95  # one-sided


@dataclass(frozen=True)
class Chosen:
    """``foretold``: the share of the left-out rows' squared length that the others foretell, at the best shrinkage
    below 1. ``low`` is its one-sided 95 % limit. Where ``low`` is not above 0, ``shrinkage`` is 1. NaN: too few.

    ``declined`` is a shrinkage that was supported, but moved the conditional mean too far: ``moved`` times the copied
    weights' length. ``shrinkage`` is then 1, too (``conditional.supported``).
    """

    shrinkage: float
    foretold: float
    low: float
    declined: float | None = None
    moved: float = 0.0

    @property
    def note(self) -> str:
        """What was found, for the user."""
        found = f"{100 * self.foretold:.2g} % of steps that were left out"
        if self.declined is not None:
            return (
                f"With shrinkage {self.declined:g} the iterates' correlations foretell {found}, but the conditional "
                f"mean would lie {self.moved:.2g} times the copied weights' length away from them: zero is far outside "
                "what the iterates show. So the covariance is taken as diagonal and the conditional mean is the "
                "copied weights."
            )
        if self.shrinkage == 1:
            why = "There are too few iterates to tell whether their correlations foretell anything"
            if self.foretold == self.foretold:
                low = f"{100 * self.low:.2g} %"
                why = f"The iterates' correlations are not shown to foretell anything ({found}, at least {low})"
            return f"{why}, so the covariance is taken as diagonal and the conditional mean is the copied weights."
        return f"Shrinkage {self.shrinkage:g}: the iterates' correlations foretell {found}."


def chosen(iterates: Iterates, partition: Partition, options: PosteriorOptions, *, independent: bool) -> Chosen:
    """The shrinkage for these iterates. ``independent`` says that they are trainings of their own."""
    kept, zeroed = _rows(iterates, partition, independent)
    if len(kept) < LEAST:
        return Chosen(1.0, float("nan"), float("nan"))
    gains = torch.stack([_gains(kept, zeroed, k, options.floor) for k in range(len(kept))])  # [rows, GRID]
    best = int(gains.mean(0).argmax())
    mine = gains[:, best]
    half = scipy.special.stdtrit(len(mine) - 1, SURE) * float(mine.std()) / len(mine) ** 0.5
    foretold = float(mine.mean())
    low = foretold - half
    return Chosen(GRID[best] if low > 0 else 1.0, foretold, low)


def _rows(iterates: Iterates, partition: Partition, independent: bool) -> tuple[Tensor, Tensor]:
    """The kept weights that are looked at [rows, n] and all zeroed ones [rows, m]."""
    total = partition.sizes["kept"]
    every = max(1, -(-total // SAMPLE))
    kept = [_taken(iterates, piece, independent)[:, ::every] for piece in partition.kept.values()]
    zeroed = [_taken(iterates, piece, independent) for piece in partition.zeroed]
    return torch.cat(kept, dim=1), torch.cat(zeroed, dim=1)


def _taken(iterates: Iterates, piece: Piece, independent: bool) -> Tensor:
    stack = iterates.stack(piece.name)
    rows = torch.stack([piece.take(tensor).flatten() for tensor in stack]).double()
    return rows if independent else rows[1:] - rows[:-1]


def _gains(kept: Tensor, zeroed: Tensor, left: int, floor: float) -> Tensor:
    """[GRID] the share of one row's squared length, about the others' mean, that they foretell."""
    others = [k for k in range(len(kept)) if k != left]
    scale = (len(others) - 1) ** 0.5
    v, w = kept[others], zeroed[others]
    v_mean, w_mean = v.mean(0), w.mean(0)
    v, w = (v - v_mean) / scale, (w - w_mean) / scale
    target, given = kept[left] - v_mean, zeroed[left] - w_mean
    variance = w.square().sum(0)
    variance = variance.clamp(min=floor * float(variance.mean()) or 1.0)
    scaled = w / variance
    inner, b = scaled @ w.T, scaled @ given  # the factor's own scale is left out
    length = float(target.square().sum())
    if not length:
        return torch.zeros(len(GRID), dtype=torch.float64)
    found = []
    for a in GRID:
        share = 1 - a
        small = torch.eye(len(w), dtype=torch.float64) + share / a * inner
        guess = (share / a * torch.linalg.solve(small, b)) @ v
        found.append(1 - float((target - guess).square().sum()) / length)
    return torch.tensor(found, dtype=torch.float64)
