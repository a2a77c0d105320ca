"""The results within a step: scores, the mask that they choose, an evaluated model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .state import Choice, Point, Table

if TYPE_CHECKING:
    import numpy as np

    from ..heads import HeadMask
    from ..models.classifier import Classifier


@dataclass(frozen=True)
class Scored:
    """A score table as a state keeps it; None = not measured."""

    values: Table
    low: Table | None = None
    high: Table | None = None
    samples: int = 0
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, choice: Choice) -> Scored:
        """The scores of an earlier step."""
        assert choice.scores is not None
        return cls(choice.scores, choice.interval_low, choice.interval_high, choice.samples)


@dataclass(frozen=True)
class Chosen:
    """A mask and what it was chosen by."""

    mask: HeadMask
    scores: Scored


@dataclass(frozen=True, eq=False)
class Result:
    """An evaluated model."""

    answers: np.ndarray  # to every dev example, as the run's judge gives them
    parameters: int
    flops: int
    seconds: dict[str, float]
    curve: tuple[Point, ...] = ()
    repair_error: dict[str, Any] | None = None
    trained: Classifier | None = None
