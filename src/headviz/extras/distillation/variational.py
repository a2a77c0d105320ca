"""Mean-field Gaussian q = N(w, diag(s^2)) over a student's weights, against a prior p = N(m, D + F^T F).

    KL(q || p) = 1/2 [ tr(P S) + (w - m)^T P (w - m) - n - log|S| - log|P| ],   P = (D + F^T F)^-1, S = diag(s^2)

P by Woodbury: with A = I + F D^-1 F^T = L L^T and B = L^-1 F D^-1, P = D^-1 - B^T B, and log|P| = -sum log D - log|A|.
Exact, with matrices of the prior's rank only. The reparameterised draw is w + s * noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from .conditional import Prior


class Divergence:
    """KL to one prior. The whole prior is kept in memory for training: 3 + r numbers per weight."""

    def __init__(self, prior: Prior, device: torch.device | str = "cpu") -> None:
        names = list(prior.partition.kept)
        inner = torch.eye(prior.posterior.rank, dtype=torch.float64)
        log_diagonal = 0.0
        for name in names:
            block = prior.block(name)
            flat = block.factor.flatten(1).double()
            inner += (flat / block.diagonal.flatten().double()) @ flat.T
            log_diagonal += float(block.diagonal.double().log().sum())
        lower = torch.linalg.cholesky(inner)
        self.log_det = log_diagonal + 2 * float(lower.diagonal().log().sum())
        self.size = 0
        self.mean: dict[str, Tensor] = {}
        self.precision: dict[str, Tensor] = {}  # D^-1
        self.cross: dict[str, Tensor] = {}  # B, [r, n of the tensor]
        self.own: dict[str, Tensor] = {}  # diagonal of P
        for name in names:
            block = prior.block(name)
            self.size += block.mean.numel()
            precision = 1 / block.diagonal
            flat = (block.factor / block.diagonal).flatten(1).double()
            cross = torch.linalg.solve_triangular(lower, flat, upper=False).float()
            self.mean[name] = block.mean.to(device)
            self.precision[name] = precision.to(device)
            self.cross[name] = cross.to(device)
            self.own[name] = (precision - cross.square().sum(0).view(precision.shape)).clamp(min=0).to(device)

    def __call__(self, mean: Mapping[str, Tensor], log_sd: Mapping[str, Tensor]) -> Tensor:
        """KL of the Gaussian with these means and logarithms of standard deviations, in nats."""
        first = next(iter(mean.values()))
        total = first.new_zeros(())
        along = first.new_zeros(len(next(iter(self.cross.values()))))  # B (w - m)
        for name, w in mean.items():
            off = w - self.mean[name]
            total = total + (off.square() * self.precision[name]).sum()
            total = total + (self.own[name] * (2 * log_sd[name]).exp()).sum() - 2 * log_sd[name].sum()
            along = along + self.cross[name] @ off.flatten()
        return (total - along.square().sum() - self.size + self.log_det) / 2


def starting_log_sd(prior: Prior, name: str) -> Tensor:
    """Logarithms of the prior's own marginal standard deviations: where q starts."""
    block = prior.block(name)
    return (block.diagonal + block.factor.square().sum(0)).log() / 2


def draw(mean: Mapping[str, Tensor], log_sd: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """One reparameterised sample of every weight, from torch's random numbers."""
    return {name: w + log_sd[name].exp() * torch.randn_like(w) for name, w in mean.items()}


def nats_per_weight(kl: float, size: int) -> float:
    """A KL in a unit that compares across models."""
    return kl / size if size else math.nan
