"""The student's prior: the teacher's posterior given that v2 = 0, and of that the kept weights v alone.

    m = mu_v + Sigma_v2 Sigma_22^-1 (0 - mu_2)          R = Sigma_v - Sigma_v2 Sigma_22^-1 Sigma_2v

With Sigma = D + F^T F (F is [r, P]), G = F_2 D_2^-1 F_2^T and b = F_2 D_2^-1 mu_2, both of size r,

    m = mu_v - F_v^T (I + G)^-1 b                        R = D_v + F_v^T (I + G)^-1 F_v

so that every inverse is r x r. The marginal of v is had by leaving v1's entries out. A diagonal Sigma has r = 0; then
m is the copied weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from .iterates import Iterates
from .options import PosteriorOptions
from .partition import Partition
from .posterior import Block, Posterior
from .shrinkage import Chosen, chosen

FAR = 0.5  # of the copied weights' length: a conditional mean farther away is an extrapolation


class Prior:
    """A Gaussian over the student's weights, read tensor by tensor by the student's names.

    ``notes`` are sentences for the user: where the covariance had to be regularised.
    """

    def __init__(self, posterior: Posterior, partition: Partition, chosen: Chosen | None = None) -> None:
        self.posterior = posterior
        self.partition = partition
        self.chosen = chosen  # where the shrinkage was not given
        self.least = posterior.least_variance * posterior.options.scale
        self.zeroed = partition.sizes["zeroed"]
        self.raised = 0  # zeroed weights whose variance had to be raised
        inner, b = self._gather()
        small = torch.linalg.inv(torch.eye(posterior.rank, dtype=torch.float64) + inner)
        small = (small + small.T) / 2
        self.shift = (small @ b).float()  # [r]
        self.root = torch.linalg.cholesky(small).T.float().contiguous()  # rows of the new factor from the old one's
        self.notes = self._notes()

    def _gather(self) -> tuple[Tensor, Tensor]:
        rank = self.posterior.rank
        inner = torch.zeros(rank, rank, dtype=torch.float64)
        b = torch.zeros(rank, dtype=torch.float64)
        for piece in self.partition.zeroed:
            block = self.posterior.block(piece.name)
            mean = piece.take(block.mean).flatten().double()
            diagonal = piece.take(block.diagonal).flatten().double()
            self.raised += int((diagonal < self.least).sum())
            diagonal.clamp_(min=self.least)
            taken = [piece.take(f).flatten() for f in block.factor]
            factor = torch.stack(taken).double() if taken else torch.zeros(0, len(mean), dtype=torch.float64)
            scaled = factor / diagonal
            inner += scaled @ factor.T
            b += scaled @ mean
        return inner, b

    def _notes(self) -> tuple[str, ...]:
        told = () if self.chosen is None else (self.chosen.note,)
        if not self.raised:
            return told
        return (
            *told,
            f"The covariance of the zeroed weights is singular: {self.raised:,} of {self.zeroed:,} have (almost) no "
            f"variance of their own. Their variances were raised to {self.least:.2g} "
            f"({self.posterior.options.floor:g} of the mean variance).",
        )

    def block(self, name: str) -> Block:
        """One of the student's tensors: m, and R as diagonal and factor."""
        piece = self.partition.kept[name]
        whole = self.posterior.block(piece.name)
        mean, diagonal = piece.take(whole.mean), piece.take(whole.diagonal).clamp(min=self.least)
        if not self.posterior.rank:
            return Block(mean.clone(), diagonal, whole.factor.new_zeros(0, *mean.shape))
        factor = torch.stack([piece.take(f) for f in whole.factor])  # [r, *shape]
        flat = factor.flatten(1)
        mean = mean - (self.shift @ flat).view(mean.shape)
        return Block(mean, diagonal, (self.root @ flat).view(factor.shape))

    def mean(self) -> dict[str, Tensor]:
        """The conditional mean of every weight: what a student starts from."""
        return {name: self.block(name).mean for name in self.partition.kept}

    @property
    def moved(self) -> float:
        """How far the conditional mean lies from the copied weights, relative to their length."""
        far = size = 0.0
        for name, piece in self.partition.kept.items():
            copied = piece.take(self.posterior.mean[piece.name]).detach().float().cpu()
            far += float((self.block(name).mean - copied).double().square().sum())
            size += float(copied.double().square().sum())
        return (far / size) ** 0.5 if size else 0.0


def supported(
    mean: Mapping[str, Tensor],
    iterates: Iterates,
    options: PosteriorOptions,
    partition: Partition,
    *,
    independent: bool,
) -> Prior:
    """The prior with the shrinkage that the iterates support.

    What they foretell of one step says little about zero, which lies many steps away. Where the conditional mean would
    be far from the copied weights it is therefore not believed, and the covariance is diagonal.
    """
    found = chosen(iterates, partition, options, independent=independent)
    prior = Prior(Posterior(mean, iterates, replace(options, shrinkage=found.shrinkage)), partition, found)
    if found.shrinkage == 1 or (moved := prior.moved) <= FAR:
        return prior
    copying = replace(found, shrinkage=1.0, declined=found.shrinkage, moved=moved)
    return Prior(Posterior(mean, iterates, replace(options, shrinkage=1.0)), partition, copying)
