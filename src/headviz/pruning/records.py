"""A step's result becomes its record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .measure import measured
from .state import Point, StepRecord, Work, logits_digest

if TYPE_CHECKING:
    import numpy as np

    from ..evaluation import Evaluation
    from ..heads import HeadMask
    from ..models.classifier import Classifier
    from ..tasks import Dataset


@dataclass(frozen=True, eq=False)
class Result:
    """An evaluated model, before it becomes a record."""

    evaluation: Evaluation
    parameters: int
    flops: int
    seconds: dict[str, float]
    curve: tuple[Point, ...] = ()
    repair_error: dict[str, float] | None = None
    trained: Classifier | None = None


def record_of(
    dev: Dataset,
    order: np.ndarray,
    result: Result,
    mask: HeadMask,
    work: Work,
    score_seconds: float,
    reference: np.ndarray,
) -> StepRecord:
    """``reference`` are θ*'s dev logits with all heads."""
    found = measured(dev, order, result.evaluation, reference)
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
        logits=logits_digest(result.evaluation.logits),
        curve=result.curve,
        repair_error=result.repair_error,
    )
