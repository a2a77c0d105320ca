"""The teacher's posterior N(mu, Sigma), the student's prior made of it, and training against that prior.

The posterior: the teacher's final weights, and how the iterates vary around their own mean.
With deviations Dev [K, P] (each row divided by sqrt(K - 1)) the sample covariance is S = Dev^T Dev. It has rank K - 1
at most, so it is mixed with its own diagonal:

    Sigma = diag(S) - (1 - a) diag(S_r) + (1 - a) S_r            a = ``shrinkage``, S_r = the best rank r of S

which keeps every variance for any rank. a = 1/2 is the mixture of stochastic weight averaging; a = 1 is the diagonal.
No P x P matrix is ever formed: a K x K matrix is kept, and the part of one tensor is computed on demand.

Iterates of a training are not draws from its posterior; their spread grows with the learning rate. ``scale``
multiplies Sigma. It does not change the conditional mean, but it sets how strongly variational inference holds a
student to that mean.

The student's prior: the teacher's posterior given that v2 = 0, and of that the kept weights v alone.

    m = mu_v + Sigma_v2 Sigma_22^-1 (0 - mu_2)          R = Sigma_v - Sigma_v2 Sigma_22^-1 Sigma_2v

With Sigma = D + F^T F (F is [r, P]), G = F_2 D_2^-1 F_2^T and b = F_2 D_2^-1 mu_2, both of size r,

    m = mu_v - F_v^T (I + G)^-1 b                        R = D_v + F_v^T (I + G)^-1 F_v

so that every inverse is r x r. The marginal of v is had by leaving v1's entries out. A diagonal Sigma has r = 0; then
m is the copied weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import scipy
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from ...errors import ModelError, OptionError
from ...storage.writing import replacing
from .layer_removal import Entries, Partition
from .plan import PosteriorOptions, check_rank

# -----------------------------------------------------------------------------------------------
# K sets of weights of one model: the last iterates of its training, or the results of K trainings.
#
# A posterior's covariance is computed from them. Files are read tensor by tensor, so ten iterates of a model with 110
# million parameters need the memory of their largest tensor, not 4.4 GB.


class Iterates(Protocol):
    """``count`` sets of weights with the same names and shapes."""

    count: int

    def stack(self, name: str) -> Tensor:
        """[K, *shape] of one tensor, in float32."""


class MemoryIterates:
    """Weights in memory, for small models."""

    def __init__(self, weights: Sequence[Mapping[str, Tensor]]) -> None:
        self.weights, self.count = list(weights), len(weights)

    def stack(self, name: str) -> Tensor:
        return torch.stack([w[name].detach().float() for w in self.weights])


class FileIterates:
    """Weights in safetensors files, one per iterate, in the order given."""

    def __init__(self, paths: Sequence[str | Path]) -> None:
        self.paths, self.count = [Path(p) for p in paths], len(paths)
        self.files: list[Any] = []
        for path in self.paths:
            try:
                self.files.append(safe_open(path, framework="pt"))
            except (OSError, SafetensorError) as error:
                raise ModelError(f"The iterate '{path.name}' cannot be read: {error}. Collect it again.") from error
        names = [sorted(f.keys()) for f in self.files]
        for path, own_names in zip(self.paths, names, strict=True):
            if own_names != names[0]:
                raise ModelError(f"The iterate '{path.name}' holds other tensors than '{self.paths[0].name}'.")

    def stack(self, name: str) -> Tensor:
        shape = self.files[0].get_slice(name).get_shape()
        out = torch.empty(self.count, *shape)
        for k, (path, file) in enumerate(zip(self.paths, self.files, strict=True)):
            tensor = file.get_tensor(name)
            if list(tensor.shape) != shape:
                raise ModelError(f"The iterate '{path.name}' has {name} in another shape than the others.")
            out[k] = tensor
        return out


def save_iterate(model: nn.Module, path: str | Path) -> Path:
    """Write a model's weights as one iterate; a crash leaves no half file."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part:
        save_file({name: p.detach().float().cpu().contiguous() for name, p in model.named_parameters()}, part)
    return path


# -----------------------------------------------------------------------------------------------


CHUNK = 1 << 20  # columns multiplied at once in float64


class Block(NamedTuple):
    """One tensor's part of a Gaussian with covariance diag(``diagonal``) + factor^T factor over all tensors."""

    mean: Tensor
    diagonal: Tensor  # its shape
    factor: Tensor  # [r, *shape]


class Posterior:
    """A Gaussian over the teacher's weights, read tensor by tensor."""

    def __init__(self, mean: Mapping[str, Tensor], iterates: Iterates, options: PosteriorOptions | None = None) -> None:
        self.options = PosteriorOptions() if options is None else options
        self.mean = mean
        self.iterates = iterates
        self.count = iterates.count
        check_rank(self.options.rank, self.count)
        self.gram = self._gram()
        size = sum(t.numel() for t in mean.values())
        trace = float(self.gram.trace())
        if not trace > 0 or not torch.isfinite(self.gram).all():
            raise OptionError(
                "The iterates are all the same, or not finite: there is no covariance in them. "
                "Collect them at a learning rate above 0."
            )
        self.least_variance = self.options.floor * (trace / size)
        self.mix = self._mix()  # [r, K]: the factor of a tensor is mix @ its deviations

    @property
    def rank(self) -> int:
        return len(self.mix)

    @property
    def shrinkage(self) -> float:
        """The share of the diagonal; 1 where none was given and nobody looked at what the iterates support."""
        return 1.0 if self.options.shrinkage is None else self.options.shrinkage

    def _gram(self) -> Tensor:
        gram = torch.zeros(self.count, self.count, dtype=torch.float64)
        for name in self.mean:
            deviations = self._deviations(name).flatten(1)
            for part in deviations.split(CHUNK, dim=1):
                wide = part.double()
                gram += wide @ wide.T
        return gram

    def _mix(self) -> Tensor:
        if self.options.covariance == "diagonal":
            return torch.zeros(0, self.count)
        values, vectors = torch.linalg.eigh(self.gram)
        order = values.argsort(descending=True)
        values, vectors = values[order], vectors[:, order]
        # the last direction is the iterates' mean, which centring has removed
        independent = int((values[: self.count - 1] > 1e-10 * values[0]).sum())
        rank = independent if self.options.rank is None else self.options.rank
        if rank > independent:
            raise OptionError(
                f"A covariance of rank {rank} was asked for, but the {self.count} iterates span only {independent} "
                "directions: some are the same. Collect others, or ask for a lower rank."
            )
        return vectors[:, :rank].T.float()

    def _deviations(self, name: str) -> Tensor:
        stack = self.iterates.stack(name)
        if stack.shape[1:] != self.mean[name].shape:
            raise OptionError(
                f"The iterates have {name} as {tuple(stack.shape[1:])}, the teacher as {tuple(self.mean[name].shape)}: "
                "they belong to another model."
            )
        stack -= stack.mean(0, dtype=torch.float64).float()
        return stack.div_((self.count - 1) ** 0.5)

    def block(self, name: str) -> Block:
        """One tensor's mean, diagonal and factor. The diagonal may hold zeros; a prior raises them."""
        deviations = self._deviations(name)
        diagonal = deviations.square().sum(0)
        factor = (self.mix @ deviations.flatten(1)).view(self.rank, *deviations.shape[1:])
        share = 1 - self.shrinkage
        diagonal = (diagonal - share * factor.square().sum(0)).clamp_(min=0) if self.rank else diagonal
        scale = self.options.scale
        return Block(self.mean[name].detach().float().cpu(), diagonal.mul_(scale), factor.mul_((share * scale) ** 0.5))


# -----------------------------------------------------------------------------------------------
# How much of the iterates' correlations to believe: decided by what they foretell, before any student is trained.
#
# Correlations among a hundred thousand weights cannot be had from ten iterates unless few directions carry them. So
# each row is left out in turn, and the others foretell its kept weights from its zeroed ones, as the conditional mean
# does. Rows are the steps from one iterate to the next, since iterates of one training share most of their way, or
# independent trainings themselves. The shrinkage that foretells most is taken; where none foretells more than chance
# would, it is 1: a diagonal covariance, whose conditional mean is the copied weights. ``supported``
# declines a shrinkage whose conditional mean lies too far away.


GRID = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97)
SAMPLE = 200_000  # kept weights that are predicted, at most
LEAST = 3  # rows
SURE = 0.95  # one-sided


@dataclass(frozen=True)
class Chosen:
    """``foretold``: the share of the left-out rows' squared length that the others foretell, at the best shrinkage
    below 1. ``low`` is its one-sided 95 % limit. Where ``low`` is not above 0, ``shrinkage`` is 1. NaN: too few.

    ``declined`` is a shrinkage that was supported, but moved the conditional mean too far: ``moved`` times the copied
    weights' length. ``shrinkage`` is then 1, too (``supported``).
    """

    shrinkage: float
    foretold: float
    low: float
    declined: float | None = None
    moved: float = 0.0

    @property
    def note(self) -> str:
        """What was found, for the user."""
        text = f"{100 * self.foretold:.2g} % of steps that were left out"
        if self.declined is not None:
            return (
                f"With shrinkage {self.declined:g} the iterates' correlations foretell {text}, but the conditional "
                f"mean would lie {self.moved:.2g} times the copied weights' length away from them: zero is far outside "
                "what the iterates show. So the covariance is taken as diagonal and the conditional mean is the "
                "copied weights."
            )
        if self.shrinkage == 1:
            why = "There are too few iterates to tell whether their correlations foretell anything"
            if self.foretold == self.foretold:
                low = f"{100 * self.low:.2g} %"
                why = f"The iterates' correlations are not shown to foretell anything ({text}, at least {low})"
            return f"{why}, so the covariance is taken as diagonal and the conditional mean is the copied weights."
        return f"Shrinkage {self.shrinkage:g}: the iterates' correlations foretell {text}."


def chosen(iterates: Iterates, partition: Partition, options: PosteriorOptions, *, independent: bool) -> Chosen:
    """The shrinkage for these iterates. ``independent`` says that they are trainings of their own."""
    kept, zeroed = _rows(iterates, partition, independent)
    if len(kept) < LEAST:
        return Chosen(1.0, float("nan"), float("nan"))
    gains = torch.stack([_gains(kept, zeroed, k, options.floor) for k in range(len(kept))])  # [rows, GRID]
    best = int(gains.mean(0).argmax())
    foretold, spread = float(gains[:, best].mean()), float(gains[:, best].std())
    low = foretold - scipy.special.stdtrit(len(gains) - 1, SURE) * spread / len(gains) ** 0.5
    return Chosen(GRID[best] if low > 0 else 1.0, foretold, low)


def _rows(iterates: Iterates, partition: Partition, independent: bool) -> tuple[Tensor, Tensor]:
    """The kept weights that are looked at [rows, n] and all zeroed ones [rows, m]."""
    total = partition.sizes["kept"]
    every = max(1, -(-total // SAMPLE))
    kept = [_taken(iterates, entries, independent)[:, ::every] for entries in partition.kept.values()]
    zeroed = [_taken(iterates, entries, independent) for entries in partition.zeroed]
    return torch.cat(kept, dim=1), torch.cat(zeroed, dim=1)


def _taken(iterates: Iterates, entries: Entries, independent: bool) -> Tensor:
    rows = entries.take(iterates.stack(entries.name), leading=1).flatten(1).double()
    return rows if independent else rows[1:] - rows[:-1]


def _gains(kept: Tensor, zeroed: Tensor, row: int, floor: float) -> Tensor:
    """[GRID] the share of one row's squared length, about the others' mean, that they foretell."""
    others = [k for k in range(len(kept)) if k != row]
    scale = (len(others) - 1) ** 0.5
    v, w = kept[others], zeroed[others]
    v_mean, w_mean = v.mean(0), w.mean(0)
    v, w = (v - v_mean) / scale, (w - w_mean) / scale
    target, weight = kept[row] - v_mean, zeroed[row] - w_mean
    variance = w.square().sum(0)
    variance = variance.clamp(min=floor * float(variance.mean()) or 1.0)
    scaled = w / variance
    inner, b = scaled @ w.T, scaled @ weight  # the factor's own scale is left out
    length = float(target.square().sum())
    if not length:
        return torch.zeros(len(GRID), dtype=torch.float64)
    gains = []
    for a in GRID:
        share = 1 - a
        small = torch.eye(len(w), dtype=torch.float64) + share / a * inner
        guess = (share / a * torch.linalg.solve(small, b)) @ v
        gains.append(1 - float((target - guess).square().sum()) / length)
    return torch.tensor(gains, dtype=torch.float64)


# -----------------------------------------------------------------------------------------------


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
        self.raised = 0  # zeroed weights whose variance had to be raised
        inner, b = self._gather()
        small = torch.linalg.inv(torch.eye(posterior.rank, dtype=torch.float64) + inner)
        small = (small + small.T) / 2
        self.shift = (small @ b).float()  # [r]
        self.root = torch.linalg.cholesky(small).T.float().contiguous()  # rows of the new factor from the old one's

    def _gather(self) -> tuple[Tensor, Tensor]:
        rank = self.posterior.rank
        inner = torch.zeros(rank, rank, dtype=torch.float64)
        b = torch.zeros(rank, dtype=torch.float64)
        for entries in self.partition.zeroed:
            block = self.posterior.block(entries.name)
            mean = entries.take(block.mean).flatten().double()
            diagonal = entries.take(block.diagonal).flatten().double()
            self.raised += int((diagonal < self.least).sum())
            diagonal.clamp_(min=self.least)
            factor = entries.take(block.factor, leading=1).flatten(1).double()
            scaled = factor / diagonal
            inner += scaled @ factor.T
            b += scaled @ mean
        return inner, b

    @property
    def notes(self) -> tuple[str, ...]:
        notes = () if self.chosen is None else (self.chosen.note,)
        if not self.raised:
            return notes
        zeroed, floor = self.partition.sizes["zeroed"], self.posterior.options.floor
        return (
            *notes,
            f"The covariance of the zeroed weights is singular: {self.raised:,} of {zeroed:,} have (almost) no "
            f"variance of their own. Their variances were raised to {self.least:.2g} ({floor:g} of the mean variance).",
        )

    def block(self, name: str) -> Block:
        """One of the student's tensors: m, and R as diagonal and factor."""
        entries = self.partition.kept[name]
        block = self.posterior.block(entries.name)
        mean, diagonal = entries.take(block.mean), entries.take(block.diagonal).clamp(min=self.least)
        factor = entries.take(block.factor, leading=1)  # [r, *shape]
        flat = factor.flatten(1)
        mean = mean - (self.shift @ flat).view(mean.shape)
        return Block(mean, diagonal, (self.root @ flat).view(factor.shape))

    def mean(self) -> dict[str, Tensor]:
        """The conditional mean of every weight: what a student starts from."""
        return {name: self.block(name).mean for name in self.partition.kept}

    @property
    def moved(self) -> float:
        """How far the conditional mean lies from the copied weights, relative to their length."""
        distance = length = 0.0
        for name, entries in self.partition.kept.items():
            copied = entries.take(self.posterior.mean[entries.name]).detach().float().cpu()
            distance += float((self.block(name).mean - copied).double().square().sum())
            length += float(copied.double().square().sum())
        return (distance / length) ** 0.5 if length else 0.0


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
    support = chosen(iterates, partition, options, independent=independent)
    prior = Prior(Posterior(mean, iterates, replace(options, shrinkage=support.shrinkage)), partition, support)
    if support.shrinkage == 1 or (moved := prior.moved) <= FAR:
        return prior
    copying = replace(support, shrinkage=1.0, declined=support.shrinkage, moved=moved)
    return Prior(Posterior(mean, iterates, replace(options, shrinkage=1.0)), partition, copying)


# -----------------------------------------------------------------------------------------------
# Mean-field Gaussian q = N(w, diag(s^2)) over a student's weights, against a prior p = N(m, D + F^T F).
#
# KL(q || p) = 1/2 [ tr(P S) + (w - m)^T P (w - m) - n - log|S| - log|P| ], P = (D + F^T F)^-1, S = diag(s^2)
#
# P by Woodbury: with A = I + F D^-1 F^T = L L^T and B = L^-1 F D^-1, P = D^-1 - B^T B, and log|P| = -sum log D -
# log|A|. Exact, with matrices of the prior's rank only. The reparameterised draw is w + s * noise.


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
        self.diagonal: dict[str, Tensor] = {}  # of P
        for name in names:
            block = prior.block(name)
            self.size += block.mean.numel()
            precision = 1 / block.diagonal
            flat = (block.factor / block.diagonal).flatten(1).double()
            cross = torch.linalg.solve_triangular(lower, flat, upper=False).float()
            self.mean[name] = block.mean.to(device)
            self.precision[name] = precision.to(device)
            self.cross[name] = cross.to(device)
            self.diagonal[name] = (precision - cross.square().sum(0).view(precision.shape)).clamp(min=0).to(device)

    def __call__(self, mean: Mapping[str, Tensor], log_sd: Mapping[str, Tensor]) -> Tensor:
        """KL of the Gaussian with these means and logarithms of standard deviations, in nats."""
        first = next(iter(mean.values()))
        total = first.new_zeros(())
        projected = first.new_zeros(len(next(iter(self.cross.values()))))  # B (w - m)
        for name, w in mean.items():
            deviation = w - self.mean[name]
            total = total + (deviation.square() * self.precision[name]).sum()
            total = total + (self.diagonal[name] * (2 * log_sd[name]).exp()).sum() - 2 * log_sd[name].sum()
            projected = projected + self.cross[name] @ deviation.flatten()
        return (total - projected.square().sum() - self.size + self.log_det) / 2


def starting_log_sd(prior: Prior, name: str) -> Tensor:
    """Logarithms of the prior's own marginal standard deviations: where q starts."""
    block = prior.block(name)
    return (block.diagonal + block.factor.square().sum(0)).log() / 2


def draw(mean: Mapping[str, Tensor], log_sd: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """One reparameterised sample of every weight, from torch's random numbers."""
    return {name: w + log_sd[name].exp() * torch.randn_like(w) for name, w in mean.items()}
