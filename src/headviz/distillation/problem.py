"""What a student learns from: one small interface that classifiers and translators answer alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from torch import Tensor, nn

Call = Callable[..., Any]  # the model, or the model with other weights
Cancel = Callable[[], bool]


class Subject(Protocol):
    """A model with what it needs to be used: a classifier, or a translator."""

    @property
    def model(self) -> Any: ...

    @property
    def digest(self) -> str: ...

    def save(self, folder: str | Path) -> Path: ...


class Problem(Protocol):
    """Training and dev data of one task, for models of one kind."""

    regression: bool
    metrics: tuple[str, ...]  # the primary one first

    @property
    def examples(self) -> int:
        """How many training examples there are."""

    @property
    def observations(self) -> int:
        """How many labels they carry: what a likelihood is a product over."""

    @property
    def digest(self) -> str:
        """Identifies the data."""

    def outputs(self, call: Call, index: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Logits [n, C] and gold labels [n] of these training examples."""

    def measure(self, subject: Any, cancel: Cancel | None = None) -> dict[str, float]:
        """Dev metrics; NaN where one is undefined."""

    def fresh(self, model: nn.Module, seed: int) -> nn.Module:
        """The same architecture with random weights."""

    def with_model(self, subject: Any, model: nn.Module) -> Any:
        """The subject around another model of its architecture."""


def batch_at(examples: int, batch: int, seed: int, step: int) -> list[int]:
    """The examples of one step: a function of seed and step alone, so that a training can go on anywhere."""
    per_epoch = max(1, examples // batch)
    epoch, at = divmod(step, per_epoch)
    order = np.random.default_rng([seed, epoch]).permutation(examples)
    chosen: list[int] = order[at * batch : (at + 1) * batch].tolist()
    return chosen
