"""What the pages ask of the library, as jobs: evaluations and comparisons under masks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..heads import HeadMask
from . import jobs, loaders

if TYPE_CHECKING:
    from ..comparison import Comparison
    from ..evaluation import Evaluation
    from ..models.classifier import Classifier
    from ..tasks import Dataset


@dataclass(frozen=True, eq=False)
class Measured:
    """A mask on the data, against the full model."""

    full: Evaluation
    masked: Evaluation
    comparison: Comparison


def evaluation(clf: Classifier, data: Dataset, mask: HeadMask) -> Evaluation | None:
    """The evaluation under a mask, or None while progress stands on the page."""
    mask = mask | clf.present
    key = ("evaluation", clf.digest, str(clf.dtype), data.digest, mask.hex)
    return jobs.need(key, "Evaluating", lambda p, c: loaders.evaluation(clf, data, mask, p, c))


def measured(clf: Classifier, data: Dataset, mask: HeadMask) -> Measured | None:
    """Full and masked evaluation and their comparison, or None while they are on their way."""
    full = evaluation(clf, data, clf.full_mask)
    if full is None:
        return None
    masked = full if mask.without(clf.present.off) == clf.full_mask else evaluation(clf, data, mask)
    if masked is None:
        return None
    key = ("comparison", clf.digest, str(clf.dtype), data.digest, masked.mask.hex)
    found = jobs.need(key, "Comparing", lambda p, c: _compare(data, full, masked))
    return None if found is None else Measured(full, masked, found)


def _compare(data: Dataset, full: Evaluation, masked: Evaluation) -> Comparison:
    from ..comparison import Answers, compare

    classes = 0 if data.is_regression else full.logits.shape[1]
    answers = Answers(full.gold, full.predictions, classes)
    return compare(answers, masked.predictions, list(data.task.metrics), data.slices)
