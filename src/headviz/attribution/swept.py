"""The maps of a few examples where they were made, and their way out: as tables of numbers or as whole maps.

Shapes: B examples, S heads of all layers side by side, T tokens of the longest example, C classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ..errors import ModelError
from ..models.fast.transfers import fetch

if TYPE_CHECKING:
    from ..models.classifier import Classifier

HALVES = (torch.bfloat16, torch.float16)  # numpy does not have the first


@dataclass(frozen=True, eq=False)
class ExampleMaps:
    """One example without its padding. Heads that the model no longer has are NaN."""

    attention: np.ndarray  # float32 [L, H, T, T]
    attribution: np.ndarray  # float32 [L, H, T, T]
    error: np.ndarray  # [L, H] estimated L2 norm of the attribution's error; NaN = no estimate
    logits: np.ndarray  # [C]
    target: int


@dataclass(frozen=True, eq=False)
class Swept:
    """What one sweep found for examples that shared their passes, in pieces: some of the S heads each."""

    clf: Classifier
    lengths: list[int]
    attention: list[Tensor]  # pieces [B, s, T, T]
    attribution: list[Tensor]
    errors: list[Tensor]  # pieces [B, s], L2 norms of the error; none = no estimate
    logits: Tensor  # [B, C]
    chosen: Tensor  # [B] the outputs explained

    def example(self, tables: list[Tensor], i: int) -> Tensor:
        """One example's maps without padding, [S, t, t], where they are."""
        t = self.lengths[i]
        return torch.cat([piece[i, :, :t, :t] for piece in tables])

    def maps(self) -> Callable[[], list[ExampleMaps]]:
        """Begins to fetch all maps; the function that comes back waits for them."""
        parts = [self.attention, self.attribution, self.errors, [self.logits, self.chosen]]
        wait = fetch([t.float() if t.dtype in HALVES else t for part in parts for t in part])

        def finish() -> list[ExampleMaps]:
            found = iter(wait())
            attention, attribution, errors, (logits, chosen) = ([next(found) for _ in part] for part in parts)
            answers = answers_of(self.clf, logits)
            return [
                ExampleMaps(
                    self._grid([piece[i, :, :t, :t] for piece in attention], np.float32),
                    self._grid([piece[i, :, :t, :t] for piece in attribution], np.float32),
                    self._grid([piece[i] for piece in errors], np.float64),
                    answers[i],
                    int(chosen[i]),
                )
                for i, t in enumerate(self.lengths)
            ]

        return finish

    def _grid(self, pieces: list[np.ndarray], dtype: type) -> np.ndarray:
        """Pieces [s, …] at the heads' original numbers, [L, H, …]."""
        present = self.clf.present.array()
        rest = pieces[0].shape[1:] if pieces else ()
        out = np.full((present.size, *rest), np.nan, dtype)
        place, begin = np.flatnonzero(present), 0
        for piece in pieces:
            out[place[begin : begin + len(piece)]] = piece
            begin += len(piece)
        return out.reshape(*present.shape, *rest)


def answers_of(clf: Classifier, logits: np.ndarray) -> np.ndarray:
    """Logits as float32; refused where the model does not answer with numbers."""
    if not np.isfinite(logits).all():
        raise unanswered(clf)
    return logits.astype(np.float32)


def unanswered(clf: Classifier) -> ModelError:
    return ModelError(f"'{clf.name}' answers NaN or infinity: its weights are damaged or overflow in {clf.dtype}.")
