"""A step's result becomes its record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .state import Point, StepRecord, Work, logits_digest

if TYPE_CHECKING:
    import numpy as np

    from ..heads import HeadMask
    from ..models.classifier import Classifier
    from .judging import Judge


@dataclass(frozen=True, eq=False)
class Result:
    """An evaluated model, before it becomes a record."""

    answers: np.ndarray  # to every dev example, as the run's judge gives them
    parameters: int
    flops: int
    seconds: dict[str, float]
    curve: tuple[Point, ...] = ()
    repair_error: dict[str, float] | None = None
    trained: Classifier | None = None


def record_of(
    judge: Judge,
    result: Result,
    mask: HeadMask,
    work: Work,
    score_seconds: float,
    reference: np.ndarray,
) -> StepRecord:
    """``reference`` are θ*'s answers with all heads."""
    found = judge.measured(result.answers, reference)
    return StepRecord(
        seed=work.seed,
        step=work.step,
        heads_off=len(mask.off),
        sparsity=mask.sparsity,
        mask=mask.hex,
        metrics=found.metrics,
        intervals=found.intervals,
        deltas=found.deltas,
        agreement=found.agreement,
        parameters=result.parameters,
        flops=result.flops,
        seconds={"score": score_seconds, **result.seconds},
        logits=logits_digest(result.answers),
        curve=result.curve,
        repair_error=result.repair_error,
    )
