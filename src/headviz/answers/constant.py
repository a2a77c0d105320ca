"""Answers that are (nearly) all of one class, and what such answers reach.

A model that always says the same can look unharmed: on MRPC, where 68 % of the pairs are equivalent, "equivalent" for
every pair has accuracy .684 and F1 .812.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

NEARLY = 0.98  # share of the answers that counts as all
NONE_OF_THEM = "none of the classes"


def counts(predictions: ArrayLike, labels: Sequence[str]) -> dict[str, int]:
    """How often each class is predicted; -1 is an output that is none of them."""
    predicted = np.asarray(predictions, dtype=np.int64)
    found = dict(zip(labels, np.bincount(predicted[predicted >= 0], minlength=len(labels)).tolist(), strict=True))
    other = int((predicted < 0).sum())
    return found | ({NONE_OF_THEM: other} if other else {})


def remark(predicted: Mapping[str, int] | None, majority: float | None = None, accuracy: float | None = None) -> str:
    """The sentence that comes first where (nearly) all answers are one class; empty where they are not.

    ``predicted`` counts the answers by class. ``majority`` is the share of the most frequent gold label: where that
    is (nearly) all of them too, there is nothing to remark, unless the ``accuracy`` says that it is another class.
    """
    total = sum(predicted.values()) if predicted else 0
    wrong = accuracy is not None and accuracy < 0.5
    if not predicted or not total or (majority is not None and majority >= NEARLY and not wrong):
        return ""
    name, often = max(predicted.items(), key=lambda kv: kv[1])
    if often < NEARLY * total:
        return ""
    if total == 1:
        return f"The one answer is “{name}”."
    if often == total:
        return f"All {total:,} answers are “{name}”."
    return f"Nearly all answers are “{name}” ({often:,} of {total:,})."


def going_on(said: str) -> str:
    """A remark behind other words of its sentence: ``With 90 % of the heads removed, all 408 answers are “yes”.``"""
    return said[:1].lower() + said[1:]


def remark_on(predictions: NDArray, gold: NDArray, labels: Sequence[str]) -> str:
    """The same of arrays of class numbers."""
    if not len(gold):
        return remark(counts(predictions, labels))
    majority = np.bincount(gold.astype(np.int64)).max() / len(gold)
    return remark(counts(predictions, labels), majority, float((predictions == gold).mean()))


def corrected(value: float, full: float, constant: float | None) -> float:
    """A metric as the share of what the full model has above the best constant answer: 1 = all of it, 0 = none.

    NaN where a constant answer has no value, or the full model is no better than it.
    """
    if constant is None or not full > constant:
        return float("nan")
    return (value - constant) / (full - constant)
