"""K sets of weights of one model: the last iterates of its training, or the results of K trainings.

A posterior's covariance is computed from them. Files are read tensor by tensor, so ten iterates of a model with 110
million parameters need the memory of their largest tensor, not 4.4 GB.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from ...errors import ModelError, OptionError
from ...storage.writing import replacing


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
