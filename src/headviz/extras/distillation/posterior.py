"""The teacher's posterior N(mu, Sigma): its final weights, and how the iterates vary around their own mean.

With deviations Dev [K, P] (each row divided by sqrt(K - 1)) the sample covariance is S = Dev^T Dev. It has rank K - 1
at most, so it is mixed with its own diagonal:

    Sigma = diag(S) - (1 - a) diag(S_r) + (1 - a) S_r            a = ``shrinkage``, S_r = the best rank r of S

which keeps every variance for any rank. a = 1/2 is the mixture of stochastic weight averaging; a = 1 is the diagonal.
No P x P matrix is ever formed: a K x K matrix is kept, and the part of one tensor is computed on demand.

Iterates of a training are not draws from its posterior; their spread grows with the learning rate. ``scale``
multiplies Sigma. It does not change the conditional mean, but it sets how strongly variational inference holds a
student to that mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from ...errors import ModelError, OptionError
from ...storage.writing import replacing
from .plan import PosteriorOptions

# -----------------------------------------------------------------------------------------------
# K sets of weights of one model: the last iterates of its training, or the results of K trainings.
#
# A posterior's covariance is computed from them. Files are read tensor by tensor, so ten iterates of a model with 110
# million parameters need the memory of their largest tensor, not 4.4 GB.


class Iterates(Protocol):
    """``count`` sets of weights with the same names and shapes."""

    @property
    def count(self) -> int: ...

    def stack(self, name: str) -> Tensor:
        """[K, *shape] of one tensor, in float32."""


class MemoryIterates:
    """Weights in memory, for small models."""

    def __init__(self, weights: Sequence[Mapping[str, Tensor]]) -> None:
        self.weights = list(weights)

    @property
    def count(self) -> int:
        return len(self.weights)

    def stack(self, name: str) -> Tensor:
        return torch.stack([w[name].detach().float() for w in self.weights])


class FileIterates:
    """Weights in safetensors files, one per iterate, in the order given."""

    def __init__(self, paths: Sequence[str | Path]) -> None:
        self.paths = [Path(p) for p in paths]
        self.files: list[Any] = []
        for path in self.paths:
            try:
                self.files.append(safe_open(path, framework="pt").__enter__())
            except (OSError, SafetensorError) as error:
                raise ModelError(f"The iterate '{path.name}' cannot be read: {error}. Collect it again.") from error
        names = [sorted(f.keys()) for f in self.files]
        for path, mine in zip(self.paths, names, strict=True):
            if mine != names[0]:
                raise ModelError(f"The iterate '{path.name}' holds other tensors than '{self.paths[0].name}'.")

    @property
    def count(self) -> int:
        return len(self.files)

    def stack(self, name: str) -> Tensor:
        out: Tensor | None = None
        for k, file in enumerate(self.files):
            tensor = file.get_tensor(name)
            if out is None:
                out = torch.empty(self.count, *tensor.shape)
            if tensor.shape != out.shape[1:]:
                raise ModelError(f"The iterate '{self.paths[k].name}' has {name} in another shape than the others.")
            out[k] = tensor
        if out is None:
            raise OptionError("There are no iterates to make a covariance of.")
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
        _enough(self.count, self.options)
        self.gram = self._gram()
        size = sum(t.numel() for t in mean.values())
        trace = float(self.gram.trace())
        if not trace > 0 or not torch.isfinite(self.gram).all():
            raise OptionError(
                "The iterates are all the same, or not finite: there is no covariance in them. "
                "Collect them at a learning rate above 0."
            )
        self.mean_variance = trace / size
        self.mix = self._mix()  # [r, K]: the factor of a tensor is mix @ its deviations

    @property
    def rank(self) -> int:
        return len(self.mix)

    @property
    def shrinkage(self) -> float:
        """The share of the diagonal; 1 where none was given and nobody looked at what the iterates support."""
        return 1.0 if self.options.shrinkage is None else self.options.shrinkage

    @property
    def least_variance(self) -> float:
        return self.options.floor * self.mean_variance

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


def _enough(count: int, options: PosteriorOptions) -> None:
    if count < 2:
        raise OptionError(f"A covariance needs at least 2 iterates, and there are {count}. Collect more.")
    if options.rank is not None and options.rank > count - 1:
        raise OptionError(
            f"A covariance of rank {options.rank} needs at least {options.rank + 1} iterates, and there are {count}. "
            f"Collect more, or ask for rank {count - 1} or less."
        )
