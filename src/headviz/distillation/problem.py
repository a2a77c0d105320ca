"""What a student learns from: one small interface that classifiers and translators answer alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from torch import Tensor, nn

from ..progress import Cancel

Call = Callable[..., Any]  # the model, or the model with other weights


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
    def lengths(self) -> Sequence[int]:
        """The length of every training example in tokens."""

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


class Batches:
    """The examples of each step: a function of seed and step alone, so that a training can go on anywhere.

    Within every 50 batches drawn at random examples are sorted by length, and the batches then shuffled: less padding.
    A short rest at an epoch's end is left out; the next epoch is drawn anew.
    """

    def __init__(self, lengths: Sequence[int], batch: int, seed: int) -> None:
        self.lengths = np.asarray(lengths)
        self.batch, self.seed = min(batch, len(self.lengths)), seed
        self._epoch = -1
        self._rows = np.empty((0, 0), dtype=np.int64)

    def at(self, step: int) -> list[int]:
        epoch, row = divmod(step, len(self.lengths) // self.batch)
        if epoch != self._epoch:
            self._epoch, self._rows = epoch, self._drawn(epoch)
        chosen: list[int] = self._rows[row].tolist()
        return chosen

    def _drawn(self, epoch: int) -> np.ndarray:
        draw = np.random.default_rng([self.seed, epoch])
        order = draw.permutation(len(self.lengths))
        order = order[: len(order) // self.batch * self.batch]
        for at in range(0, len(order), 50 * self.batch):
            window = order[at : at + 50 * self.batch]
            order[at : at + 50 * self.batch] = window[np.argsort(self.lengths[window], kind="stable")]
        rows: np.ndarray = order.reshape(-1, self.batch)
        return rows[draw.permutation(len(rows))]
