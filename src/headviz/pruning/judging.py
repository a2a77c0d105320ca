"""Evaluate a model of a run.

A state keeps a model's answers to all dev examples as one array, such as a classifier's logits. Everything that is
recorded about a step can be computed again from them.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import plugins
from ..answers.comparison import Delta
from ..answers.metrics import metric, why_undefined
from ..evaluation.evaluator import Evaluator, EvaluatorOptions
from ..evaluation.plain import class_order
from ..models import LENGTH
from ..models.pruning import never_empty, prune
from ..results import plain
from ..tasks import Dataset
from .state import Point, StepRecord, Work, logits_digest

if TYPE_CHECKING:
    from ..heads import HeadMask
    from ..models.classifier import Classifier
    from ..progress import Cancel, Progress
    from .context import Context


@dataclass(frozen=True, eq=False)
class Evaluated:
    """An evaluated model."""

    answers: np.ndarray  # to every dev example, as the run's judge gives them
    parameters: int
    flops: int
    seconds: dict[str, float]
    curve: tuple[Point, ...] = ()
    repair_error: dict[str, Any] | None = None
    trained: Classifier | None = None


class Judge(ABC):
    """Evaluates models on the dev set of a run; a subclass for each kind of task."""

    def __init__(self, context: Context, label_order: Sequence[str] | None, flops_length: int) -> None:
        self.data, self.label_order, self.flops_length = context.dev, label_order, flops_length

    @abstractmethod
    def answers(
        self, clf: Classifier, mask: HeadMask | None, progress: Progress | None, cancel: Cancel | None
    ) -> np.ndarray:
        """A model's answers under a mask."""

    @abstractmethod
    def measured(self, answers: np.ndarray, reference: np.ndarray) -> Measured:
        """Metrics of answers, and their comparison with those of θ* with all heads."""

    def evaluated(
        self, clf: Classifier, mask: HeadMask | None, progress: Progress | None = None, cancel: Cancel | None = None
    ) -> Evaluated:
        """A model's answers on dev and its size under a mask."""
        start = time.perf_counter()
        if mask is not None and not mask.is_full and clf.family.prunable and not never_empty(clf, clf.under(mask)):
            # same logits to float precision, and faster the more heads are off
            clf, mask = prune(clf, mask), None
        answers = self.answers(clf, mask, progress, cancel)
        cost = clf.cost(mask, self.flops_length)
        return Evaluated(answers, cost.parameters, cost.flops, {"evaluate": time.perf_counter() - start})

    def record(
        self, result: Evaluated, mask: HeadMask, work: Work, score_seconds: float, reference: np.ndarray
    ) -> StepRecord:
        """A step's result as its record; ``reference`` are θ*'s answers with all heads."""
        measured = self.measured(result.answers, reference)
        return StepRecord(
            seed=work.seed,
            step=work.step,
            heads_off=len(mask.off),
            sparsity=mask.sparsity,
            mask=mask.hex,
            metrics=measured.metrics,
            intervals=measured.intervals,
            deltas=measured.deltas,
            agreement=measured.agreement,
            parameters=result.parameters,
            flops=result.flops,
            seconds={"score": score_seconds, **result.seconds},
            logits=logits_digest(result.answers),
            curve=result.curve,
            repair_error=result.repair_error,
            predicted=measured.predicted,
            constant=measured.constant,
        )


def judge_of(context: Context, label_order: Sequence[str] | None = None, flops_length: int = LENGTH) -> Judge:
    """The judge for the task of the dev set. ``label_order`` names the model's outputs where their names do not."""
    make = plugins.function(context.dev.answer.own.get("judge", Classes))
    return make(context, label_order, flops_length)


class Classes(Judge):
    """Classes of texts, or numbers."""

    def __init__(self, context: Context, label_order: Sequence[str] | None, flops_length: int) -> None:
        super().__init__(context, label_order, flops_length)
        self.order = class_order(context.clf, context.dev, label_order)  # the model's output of each class

    def answers(
        self, clf: Classifier, mask: HeadMask | None, progress: Progress | None, cancel: Cancel | None
    ) -> np.ndarray:
        # nothing is kept between masks, so that a resumed run gets exactly the same bits
        model = Evaluator(clf, self.data, EvaluatorOptions(budget=0, precision="float32"), label_order=self.label_order)
        return model.evaluate(mask, keep=False, progress=progress, cancel=cancel).logits

    def measured(self, answers: np.ndarray, reference: np.ndarray) -> Measured:
        mine, theirs = (self.data.answer.predicted(logits, self.order) for logits in (answers, reference))
        return measured(self.data, mine, theirs)


@dataclass(frozen=True)
class Measured:
    """The parts of a step's record that come from the answers on dev."""

    metrics: dict[str, float | None]
    intervals: dict[str, tuple[float | None, float | None]]
    deltas: dict[str, dict[str, float | None]]
    agreement: float | None
    predicted: dict[str, int] | None = None  # how often each class is predicted
    constant: dict[str, float | None] | None = None  # what the best constant answer reaches
    undefined: dict[str, str] = field(default_factory=dict)  # why a metric has no value, in words


def measured(data: Dataset, mine: np.ndarray, theirs: np.ndarray) -> Measured:
    """What predictions are worth, next to those of θ* with all heads; both in the task's own terms."""
    names, answer = data.task.metrics, data.answer
    counts = answer.counts(mine, data.label_names)
    if not answer.has_gold(data):
        agreement = answer.answers(theirs, theirs, data.label_names).agreement(mine)
        return Measured({}, {}, {}, plain(agreement), counts)
    gold = data.gold
    answers = answer.answers(gold, theirs, data.label_names)
    return Measured(
        {name: plain(metric(name, *answer.read_by(name, mine, gold))) for name in names},
        {name: _ends(answers.interval(mine, name)) for name in names},
        {name: _plain(answers.deltas([mine], name)[0]) for name in names},
        plain(answers.agreement(mine)),
        counts,
        {name: answers.constant(name) for name in names} if data.labels is not None else None,
        {name: why for name in names if (why := why_undefined(name, *answer.read_by(name, mine, gold))) is not None},
    )


def _ends(ends: tuple[float | None, float | None]) -> tuple[float | None, float | None]:
    return plain(ends[0]), plain(ends[1])


def _plain(d: Delta) -> dict[str, float | None]:
    return dict(
        zip(("delta", "low", "high", "p"), plain([d.delta, d.interval_low, d.interval_high, d.p_value]), strict=True)
    )
