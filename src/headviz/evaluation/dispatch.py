"""Evaluation of any model: what fits its kind, for one mask (``evaluate``) or for many (``evaluator_of``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import OptionError
from ..heads import HeadMask
from ..models.base import Model
from ..models.classifier import Classifier
from ..models.network import require_model
from ..progress import Cancel, Progress
from ..tasks.dataset import require_dataset
from .evaluator import Evaluator, EvaluatorOptions
from .plain import BATCH_TOKENS, Evaluation, class_order, evaluate_classes
from .translation import TranslationEvaluator, TranslationOptions, evaluate_translation, require_translation

if TYPE_CHECKING:
    from ..tasks import Dataset


def check_fit(clf: Model, data: Dataset, label_order: Sequence[str] | str | None = None) -> None:
    """Refuse a model and data that do not belong together; making an evaluator takes longer."""
    if isinstance(clf, Classifier) and not data.is_translation:
        class_order(clf, data, label_order)
    else:
        require_translation(clf, data)


def evaluate(
    clf: Model,
    data: Dataset,
    mask: HeadMask | None = None,
    *,
    batch_tokens: int = BATCH_TOKENS,
    label_order: Sequence[str] | str | None = None,
    beams: int = 1,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Evaluation:
    """Evaluate under a mask (None = every head the model has).

    Texts of similar length share a batch of at most ``batch_tokens`` tokens, padding included.
    Between batches ``progress(done, total)`` is told, and ``cancel()`` may stop everything with
    ``Cancelled``. For many masks on the same data use ``headviz.Evaluator``, which reuses layers.

    A translation model gives a ``TranslationEvaluation``; ``beams`` is for those alone, 1 = greedy.
    """
    require_model(clf)
    require_dataset(data)
    how: Any = {"batch_tokens": batch_tokens, "progress": progress, "cancel": cancel}
    if isinstance(clf, Classifier) and not data.is_translation:
        _refuse_beams(beams)
        return evaluate_classes(clf, data, mask, label_order=label_order, **how)
    return evaluate_translation(clf, data, mask, beams=beams, **how)


def evaluator_of(
    clf: Model,
    data: Dataset,
    options: EvaluatorOptions | None = None,
    *,
    label_order: Sequence[str] | str | None = None,
    beams: int = 1,
) -> Any:
    """An evaluator of many masks that fits the model: for a classifier or for a translator."""
    require_model(clf)
    require_dataset(data)
    if isinstance(clf, Classifier) and not data.is_translation:
        _refuse_beams(beams)
        return Evaluator(clf, data, options, label_order=label_order)
    if options is not None and options.precision != "float32":
        raise OptionError(
            f"A translation model is evaluated in its own precision; '{options.precision}' is for classifiers."
        )
    return TranslationEvaluator(clf, data, TranslationOptions(beams))


def _refuse_beams(beams: int) -> None:
    if beams != 1:
        raise OptionError("beams is for translation models; a classifier has none.")
