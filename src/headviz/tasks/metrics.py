"""The tasks' metrics. An undefined one is NaN, and ``why_undefined`` gives the reason.

Other tools return 0 where a metric is undefined (such as the Matthews correlation of constant predictions). That
would read as "no better than chance", which was not measured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import TaskError, is_one_of, unknown_choice
from .bleu import bleu, chrf
from .catalogue import Task


def _accuracy(predictions: np.ndarray, gold: np.ndarray) -> float:
    from sklearn.metrics import accuracy_score

    return accuracy_score(gold, predictions)


def _f1(predictions: np.ndarray, gold: np.ndarray) -> float:
    from sklearn.metrics import f1_score

    # class 1 is the positive one in GLUE's F1 (duplicate, equivalent); labels= allows -1 (another class)
    return f1_score(gold, predictions, labels=[1], average="macro")


def _matthews(predictions: np.ndarray, gold: np.ndarray) -> float:
    from sklearn.metrics import matthews_corrcoef

    return matthews_corrcoef(gold, predictions)


def _pearson(predictions: np.ndarray, gold: np.ndarray) -> float:
    from scipy.stats import pearsonr

    return pearsonr(predictions, gold).statistic


def _spearman(predictions: np.ndarray, gold: np.ndarray) -> float:
    from scipy.stats import spearmanr

    return spearmanr(predictions, gold).statistic


def _bleu(predictions: np.ndarray, gold: np.ndarray) -> float:
    return bleu(predictions.tolist(), gold.tolist()).value


def _chrf(predictions: np.ndarray, gold: np.ndarray) -> float:
    return chrf(predictions.tolist(), gold.tolist()).value


METRICS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "accuracy": _accuracy,
    "f1": _f1,
    "matthews": _matthews,
    "pearson": _pearson,
    "spearman": _spearman,
}
# of translations: arrays of texts
TEXT_METRICS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {"bleu": _bleu, "chrf": _chrf}
# how many points one unit of a metric is: a share of 1 is 100 points; BLEU is in points already
POINTS: dict[str, float] = {**dict.fromkeys(METRICS, 100.0), **dict.fromkeys(TEXT_METRICS, 1.0)}


def points_in(name: str) -> float:
    """Points in one unit of a metric: multiply a difference by it before calling it points."""
    known = name.split("-")[0]  # bleu-tokenised is in BLEU's unit
    if known not in POINTS:
        raise TaskError(unknown_choice("metric", name, POINTS))
    return POINTS[known]


def metric(name: str, predictions: Any, gold: Any) -> float:
    """One metric; NaN where it is undefined. Higher is better for all of them."""
    known = METRICS | TEXT_METRICS
    if not is_one_of(name, known):
        raise TaskError(unknown_choice("metric", name, known))
    predictions, gold = np.asarray(predictions), np.asarray(gold)
    if predictions.shape != gold.shape or gold.ndim != 1:
        raise ValueError(f"predictions {predictions.shape} and gold labels {gold.shape} must be equally long rows")
    if why_undefined(name, predictions, gold) is not None:
        return float("nan")
    return float(known[name](predictions, gold))


def constant(name: str, gold: Any) -> float | None:
    """What the best constant answer reaches: the share of the majority, F1 of always class 1, Matthews 0.

    None where a constant has no value (a correlation, a translation), or without gold labels.
    """
    gold = np.asarray(gold)
    if name == "matthews":  # undefined of a constant; of answers that do not depend on the text it is 0
        return 0.0
    if name not in ("accuracy", "f1") or not len(gold):
        return None
    said = 1 if name == "f1" else np.bincount(gold.astype(np.int64)).argmax()
    value = metric(name, np.full(len(gold), said), gold)
    return None if value != value else value


def metrics(task: Task, predictions: Any, gold: Any) -> dict[str, float]:
    """Every metric of the task, its primary one first.

    ``predictions`` are class indices of the task (see ``labels.predicted``), numbers for a regression, or
    translations with the references as ``gold``.
    """
    return {name: metric(name, predictions, gold) for name in task.metrics}


def why_undefined(name: str, predictions: Any, gold: Any) -> str | None:
    """Why a metric has no value here, in words; None if it has one."""
    predictions, gold = np.asarray(predictions), np.asarray(gold)
    if not len(gold):
        return "there are no examples"
    if name == "f1" and not ((predictions == 1).any() or (gold == 1).any()):
        return "no example is, or is predicted to be, of the positive class"
    if name in ("matthews", "pearson", "spearman"):
        for values, what in ((predictions, "prediction"), (gold, "gold label")):
            if not np.isfinite(values).all():
                return f"a {what} is not a finite number"
            if (values == values[0]).all():
                return f"every {what} is the same"
    return None
