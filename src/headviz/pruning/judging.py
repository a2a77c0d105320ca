"""What a run asks of a model, and how it measures the answers: classes of texts, or translations of sentences.

A state keeps a model's answers to every dev example as one array: a classifier's logits, or the translations as UTF-8,
one a line. All that is recorded of a step can be computed again from them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..evaluation.evaluator import Evaluator, EvaluatorOptions
from ..evaluation.plain import Evaluation, class_order, metrics_for
from ..models.pruning import prune
from .measure import Measured, measured, measured_texts
from .records import Result
from .state import StepRecord, Work, logits_digest

if TYPE_CHECKING:
    from ..heads import HeadMask
    from ..models.classifier import Classifier
    from ..progress import Cancel, Progress
    from ..tasks import Dataset
    from .context import Context
    from .plan import PruningPlan

END = "\n"


class Judge(Protocol):
    """The dev set of a run and what is asked of it."""

    def answers(
        self, clf: Classifier, mask: HeadMask | None, progress: Progress | None, cancel: Cancel | None
    ) -> np.ndarray:
        """A model's answers under a mask."""

    def measured(self, answers: np.ndarray, reference: np.ndarray) -> Measured:
        """What is recorded of answers, beside those of θ* with all heads."""


def judge_of(context: Context, plan: PruningPlan) -> Judge:
    """The one that fits the task."""
    if context.dev.is_translation:
        return Sentences(context.dev)
    return Classes(context.dev, plan.label_order, class_order(context.clf, context.dev, plan.label_order))


@dataclass(frozen=True, eq=False)
class Classes:
    """``order`` is the model's output of each class of the task."""

    data: Dataset
    label_order: tuple[str, ...] | None
    order: np.ndarray

    def answers(
        self, clf: Classifier, mask: HeadMask | None, progress: Progress | None, cancel: Cancel | None
    ) -> np.ndarray:
        # nothing is kept from mask to mask: a resumed run must see the very same bits
        model = Evaluator(clf, self.data, EvaluatorOptions(budget=0), label_order=self.label_order)
        return model.evaluate(mask, keep=False, progress=progress, cancel=cancel).logits

    def measured(self, answers: np.ndarray, reference: np.ndarray) -> Measured:
        metrics = metrics_for(self.data, answers, self.order)
        found: Any = Evaluation(metrics, answers, None, None, 0.0, truncated=0)  # type: ignore[arg-type]
        return measured(self.data, self.order, found, reference)


@dataclass(frozen=True, eq=False)
class Sentences:
    """Translations, greedy."""

    data: Dataset

    def answers(
        self, clf: Classifier, mask: HeadMask | None, progress: Progress | None, cancel: Cancel | None
    ) -> np.ndarray:
        from ..evaluation.translation import require_translation, translate

        model = require_translation(clf, self.data)
        texts, _ = translate(model, self.data.texts, mask, progress=progress, cancel=cancel)
        return lines(texts)

    def measured(self, answers: np.ndarray, reference: np.ndarray) -> Measured:
        return measured_texts(self.data, texts_of(answers), texts_of(reference))


def evaluated(
    context: Context,
    plan: PruningPlan,
    clf: Classifier,
    mask: HeadMask | None,
    seconds: dict[str, float],
    repair_error: dict[str, float] | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Result:
    """A model's answers on dev and its size under a mask."""
    start = time.perf_counter()
    small = clf
    if mask is not None and not mask.is_full and clf.family.prunable:
        # the same logits to float precision, and the less to compute the more heads are off
        small, mask = prune(clf, mask), None
    answers = judge_of(context, plan).answers(small, mask, progress, cancel)
    cost = small.cost(mask, plan.flops_length)
    return Result(
        answers,
        cost.parameters,
        cost.flops,
        {**seconds, "evaluate": time.perf_counter() - start},
        repair_error=repair_error,
    )


def record_of(
    judge: Judge, result: Result, mask: HeadMask, work: Work, score_seconds: float, reference: np.ndarray
) -> StepRecord:
    """A step's result as its record; ``reference`` are θ*'s answers with all heads."""
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
        predicted=found.predicted,
        constant=found.constant,
    )


def lines(texts: list[str]) -> np.ndarray:
    """Texts as one array of bytes; a line break within one would be taken for its end and becomes a space."""
    whole = END.join(" ".join(t.splitlines()) for t in texts)
    return np.frombuffer(whole.encode(), np.uint8).copy()


def texts_of(answers: np.ndarray) -> list[str]:
    """The inverse of ``lines``."""
    return answers.tobytes().decode().split(END)
