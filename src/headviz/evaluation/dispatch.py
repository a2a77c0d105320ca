"""Evaluation of any model: what fits its kind, for one mask (``evaluate``) or for many (``evaluator_of``)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast, overload

import numpy as np

from .. import plugins
from ..errors import ModelError, OptionError, TaskError, whole_number
from ..models.base import Model
from ..models.classifier import Classifier
from ..models.network import require_model
from ..models.stand_in import RESAMPLE, ZERO, StandIn
from ..progress import Cancel, Progress
from ..storage.exchange import MaskLike
from ..tasks.dataset import require_dataset
from .donors import Donors, PlaceMeans, TextRows
from .evaluator import Evaluator, EvaluatorOptions
from .mask_evaluator import MaskEvaluator
from .plain import BATCH_TOKENS, Evaluation, check_inputs, class_order, gold_for
from .precision import AUTO
from .stand_ins import required, standing_in

if TYPE_CHECKING:
    from ..models.base import TransformerModel
    from ..tasks import Dataset


def check_fit(clf: Model, data: Dataset, label_order: Sequence[str] | str | None = None) -> None:
    """Refuse a model and data that do not belong together; making an evaluator takes longer."""
    _ = clf.num_layers  # a model without heads says so
    class_order(clf, data, label_order)


def check_data(clf: Model, data: Dataset, label_order: Sequence[str] | str | None = None) -> None:
    """Refuse data that ``evaluate`` would refuse, for a model with or without heads."""
    class_order(clf, data, label_order)


def check_texts(clf: Model, data: Dataset) -> None:
    """Refuse texts that the model does not read: pairs, single texts, or sentences to translate."""
    _ = clf.num_layers
    check_inputs(clf, data)


def check_gold(clf: Model, data: Dataset, purpose: str) -> None:
    """Refuse data without gold answers."""
    clf.answer.refuse(clf, data)
    data.answer.refuse(clf, data)
    if not data.answer.has_gold(data):
        lacking = data.answer.gold_name
        raise TaskError(
            f"The {data.split} split of '{data.task.name}' carries no {lacking}, and {purpose}. "
            f"Name the column of the {lacking}."
        )


def gold_answers(
    clf: Model, data: Dataset, label_order: Sequence[str] | str | None = None
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The model's output for each class of the task, and the gold answers in the model's own terms.

    Both are None where the encodings hold the gold answers, as for sentences to translate.
    """
    _ = data.gold  # refuses data without labels
    order = class_order(clf, data, label_order)
    return order, gold_for(data, order)


def evaluate(
    clf: Model,
    data: Dataset,
    mask: MaskLike | None = None,
    *,
    ablation: str | StandIn = ZERO,
    reference: Dataset | None = None,
    batch_tokens: int | None = None,
    label_order: Sequence[str] | str | None = None,
    beams: int = 1,
    precision: str = AUTO,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Evaluation:
    """Evaluate under a mask (None = every head the model has).

    ``mask`` is a ``HeadMask``, the heads that are off by layer such as ``{3: [5]}``, or a table [L, H] of 1 (kept) and
    0: an array, a tensor or lists. Every function with a mask takes these.

    Texts of similar length share a batch of at most ``batch_tokens`` tokens, by default 4,096 and on a GPU 65,536.
    ``progress(done, total)`` is called after each batch; ``cancel()`` is asked before it and stops everything with
    ``Cancelled``. ``label_order`` gives the model's class for each class of the task, where their names do not match.
    A translation model gives a ``TranslationEvaluation``; only there, ``beams`` > 1 searches.

    ``ablation`` says what stands in the place of a head that is off: "zero", "mean", "mean-by-place", "resample" or
    "constant". All but zero are measured on ``reference``, a sample of examples. With "resample" the result is that
    of the first draw, and ``over_draws()`` has the mean and interval of all.

    ``precision`` is that of a classifier's layers, as ``EvaluatorOptions`` has it.

    For many masks on the same data use ``headviz.Evaluator``, which reuses layers.

    >>> import headviz
    >>> clf, data = headviz.load("demo", device="cpu"), headviz.load_task("demo", limit=30)
    >>> result = headviz.evaluate(clf, data, mask=headviz.HeadMask.full(12, 12).without([(3, 5)]))
    >>> sorted(result.metrics), result.logits.shape
    (['accuracy'], (30, 3))
    """
    start = time.perf_counter()
    require_model(clf)
    require_dataset(data)
    if batch_tokens is not None:
        whole_number(batch_tokens, "batch_tokens", 1)
    stand_in = StandIn.of(ablation)
    evaluate_job = data.answer.own.get("evaluate")
    if evaluate_job is None or stand_in.of_the_text:
        chunk_tokens = BATCH_TOKENS if batch_tokens is None and clf.device.type == "cpu" else batch_tokens
        options = EvaluatorOptions(budget=0, chunk_tokens=chunk_tokens, precision=precision)
        evaluator = evaluator_of(
            clf,
            data,
            options,
            ablation=stand_in,
            reference=reference,
            label_order=label_order,
            beams=beams,
            cancel=cancel,
        )
        result = evaluator.evaluate(mask, progress=progress, cancel=cancel)
        return replace(result, seconds=time.perf_counter() - start)  # with the time that making it took
    if precision not in (AUTO, "float32"):
        raise OptionError(f"'{clf.name}' is evaluated in its own precision; '{precision}' is for classifiers.")
    data.answer.refuse(clf, data)
    clf = _filled(clf, stand_in, reference, label_order, None, cancel)
    evaluation: Evaluation = plugins.function(evaluate_job)(
        clf, data, mask, beams=beams, batch_tokens=batch_tokens or BATCH_TOKENS, progress=progress, cancel=cancel
    )
    return evaluation


class Keywords(TypedDict, total=False):
    """Keywords of ``evaluator_of`` that do not change what kind of evaluator comes back."""

    label_order: Sequence[str] | str | None
    beams: int
    ablation: str | StandIn
    reference: Dataset | None
    progress: Progress | None
    cancel: Cancel | None


@overload
def evaluator_of(
    clf: Classifier, data: Dataset, options: EvaluatorOptions | None = None, **keywords: Unpack[Keywords]
) -> Evaluator: ...
@overload
def evaluator_of(
    clf: Model, data: Dataset, options: EvaluatorOptions | None = None, **keywords: Unpack[Keywords]
) -> MaskEvaluator: ...
def evaluator_of(
    clf: Model,
    data: Dataset,
    options: EvaluatorOptions | None = None,
    *,
    label_order: Sequence[str] | str | None = None,
    beams: int = 1,
    ablation: str | StandIn = ZERO,
    reference: Dataset | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> MaskEvaluator:
    """An evaluator of many masks that fits the model: ``Evaluator`` or ``TranslationEvaluator``.

    ``options`` and ``label_order`` are for classifiers, ``beams`` is for translators; ``ablation`` and ``reference``
    as in ``evaluate``, and ``progress`` and ``cancel`` are those of making it. A model and data that do not belong
    together are a ``TaskError``.

    >>> import headviz
    >>> evaluator = headviz.evaluator_of(headviz.load("demo", device="cpu"), headviz.load_task("demo", limit=30))
    >>> evaluator.precision
    'float32'
    """
    require_model(clf)
    require_dataset(data)
    stand_in, donors = StandIn.of(ablation), None
    if stand_in.of_the_text:
        kind = stand_in.kind
        if kind not in getattr(clf, "ablations", ()):
            raise ModelError(f"Ablation '{kind}' is for classifiers; '{clf.name}' is {clf.title}. Choose mean.")
        make = Donors if kind == RESAMPLE else PlaceMeans
        donors = make(cast("Classifier", clf), required(reference, stand_in), stand_in, progress, cancel)
    else:
        clf = _filled(clf, stand_in, reference, label_order, progress, cancel)
    evaluator_of_job = plugins.function(data.answer.own.get("evaluator", _of_texts))
    evaluator: MaskEvaluator = evaluator_of_job(clf, data, options, label_order, beams, donors, cancel)
    return evaluator


def with_stand_in(
    evaluator: MaskEvaluator, ablation: str | StandIn, reference: Dataset | None, *, cancel: Cancel | None = None
) -> MaskEvaluator:
    """An evaluator like this one, with something else in the place of heads that are off."""
    keywords: Keywords = {"ablation": ablation, "reference": reference, "cancel": cancel}
    return evaluator_of(evaluator.clf, evaluator.data, **evaluator.own_keywords, **keywords)


def _filled(
    clf: Model,
    stand_in: StandIn,
    reference: Dataset | None,
    label_order: Sequence[str] | str | None,
    progress: Progress | None,
    cancel: Cancel | None,
) -> Model:
    if stand_in.kind == ZERO:
        return clf
    _ = clf.num_layers  # a model without heads says so
    return standing_in(
        cast("TransformerModel", clf), stand_in, reference, label_order=label_order, progress=progress, cancel=cancel
    )


def _of_texts(
    clf: Any, data: Dataset, options: Any, label_order: Any, beams: int, donors: TextRows | None, cancel: Cancel | None
) -> MaskEvaluator:
    if beams != 1:
        raise OptionError("beams is for translation models; a classifier has none.")
    return Evaluator(clf, data, options, label_order=label_order, donors=donors, cancel=cancel)
