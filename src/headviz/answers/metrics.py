"""Metrics by name. An undefined one is NaN, and ``why_undefined`` gives the reason.

A correlation is undefined where all gold answers are the same: nothing was measured. Where all predictions are the
same it is 0: such a model is no better than chance, and among others it is the one that was harmed most.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import plugins
from ..errors import TaskError, is_one_of, unknown_choice
from ..statistics.resampling import class_in


@dataclass(frozen=True)
class Metric:
    """One metric of predictions and gold answers, both arrays [n, …]. Higher is better.

    ``undefined`` gives the reason where it has no value; ``constant`` is what the best answer that does not depend on
    the input reaches, None where such an answer has no value.
    """

    of: Callable[[NDArray, NDArray], float]
    undefined: Callable[[NDArray, NDArray], str | None] = lambda predictions, gold: None
    constant: Callable[[NDArray], float | None] = lambda gold: None
    constant_name: str = "one class for all"  # what that answer is called
    points: float = 100.0  # in one unit of the metric
    dims: tuple[int, int] = (1, 1)  # dimensions of predictions and of gold answers


# a user's own functions of (gold answers, predictions), in scikit-learn's order
OWN: dict[str, Callable[[NDArray, NDArray], float]] = {}
ANY = (0, 0)  # they read answers of any dimensions


class Metrics(Mapping[str, Metric]):
    """Those of all jobs, by name; F1 of class 3 is ``f1_3``."""

    def _all(self) -> dict[str, Metric]:
        own = {name: Metric(_turned(of), dims=ANY) for name, of in OWN.items()}
        return own | {name: metric for job in _jobs() for name, metric in job.metrics.items()}

    def __getitem__(self, name: str) -> Metric:
        if name != "f1" and (number := class_in(name)) is not None:
            return f1_of_class(number)
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


def _jobs() -> Collection[Any]:
    return plugins.TABLES["answers"].entries().values()


def _turned(of: Callable[[NDArray, NDArray], float]) -> Callable[[NDArray, NDArray], float]:
    return lambda predicted, gold: of(gold, predicted)


METRICS = Metrics()
ANY_ANSWER = "one answer for all"


def _for(name: str, gold: NDArray) -> Metric:
    """The metric of this name for such gold answers: jobs with other gold answers may share a name."""
    usual = METRICS[name]
    if usual.dims[1] == gold.ndim:
        return usual
    others = (job.metrics[name] for job in _jobs() if name in job.metrics)
    return next((metric for metric in others if metric.dims[1] == gold.ndim), usual)


def f1_of_class(number: int) -> Metric:
    """F1 of one class."""

    def value(predicted: NDArray, gold: NDArray) -> float:
        predicted, gold = predicted == number, gold == number
        size = predicted.sum() + gold.sum()
        return float(2 * (predicted & gold).sum() / size) if size else float("nan")

    def undefined(predicted: NDArray, gold: NDArray) -> str | None:
        if np.isin(number, [predicted, gold]).any():
            return None
        return f"no example is, or is predicted to be, of class {number}"

    return Metric(value, undefined, lambda gold: value(np.full(len(gold), number), gold) if len(gold) else None)


# as papers spell the words of metrics' names
SPELLED = {
    "f1": "F1",
    "roc": "ROC",
    "auc": "AUC",
    "ndcg@10": "nDCG@10",
    "mrr@10": "MRR@10",
    "map": "MAP",
    "pearson": "Pearson's r",
    "spearman": "Spearman's ρ",
    "matthews": "Matthews correlation",
    "neg": "negative",
    "bleu": "BLEU",
    "chrf": "chrF",
}


def metric_title(name: str) -> str:
    """A metric's name for reading; a user's own keeps its spelling."""
    if name in OWN or name not in METRICS:
        return name
    if name != "f1" and (number := class_in(name)) is not None:
        return f"F1 of class {number}"
    return " ".join(SPELLED.get(word, word) for word in name.split("_"))


def constant_name(name: str, answer: Any = None) -> str:
    """What the best constant answer is called next to a metric of a job; without the job, of all that have it."""
    jobs = _jobs() if answer is None else [answer]
    names = {job.metrics[name].constant_name for job in jobs if name in job.metrics}
    if not names and name in METRICS:
        names = {METRICS[name].constant_name}
    return ANY_ANSWER if len(names) > 1 else names.pop() if names else Metric.constant_name


SAME_ANSWERS = "same answers"


def agreement_name(metrics: Iterable[str]) -> str:
    """What ``Answers.agreement`` with another model is called next to metrics of a job."""
    jobs = _jobs()
    return next((job.agrees for name in metrics for job in jobs if name in job.metrics), SAME_ANSWERS)


def points_in(name: str) -> float:
    """Points in one unit of a metric: multiply a difference by it before calling it points."""
    base = name.split("-")[0]  # bleu-tokenised is in BLEU's unit
    if base not in METRICS:
        raise TaskError(unknown_choice("metric", name, METRICS))
    return METRICS[base].points


def metric(name: str, predictions: Any, gold: Any) -> float:
    """One metric; NaN where it is undefined. Higher is better for all of them."""
    if not is_one_of(name, METRICS):
        raise TaskError(unknown_choice("metric", name, METRICS))
    predictions, gold = np.asarray(predictions), np.asarray(gold)
    chosen = _for(name, gold)
    dims = chosen.dims
    same = predictions.shape == gold.shape if dims[0] == dims[1] else len(predictions) == len(gold)
    if dims != ANY and (not same or (gold.size and (predictions.ndim, gold.ndim) != dims)):
        raise ValueError(
            f"predictions {predictions.shape} and gold labels {gold.shape} must have the same shape, or as many rows"
        )
    if why_undefined(name, predictions, gold) is not None:
        return float("nan")
    return float(chosen.of(predictions, gold))


def constant(name: str, gold: Any) -> float | None:
    """What the best constant answer reaches: the share of the majority, F1 of always class 1, 0 of a correlation.

    None where a constant has no value (a translation), or without gold labels.
    """
    gold = np.asarray(gold)
    return _for(name, gold).constant(gold) if name in METRICS else None


def metrics(task: Any, predictions: Any, gold: Any) -> dict[str, float]:
    """Every metric of the task, its primary one first; ``predictions`` and ``gold`` as its job has them."""
    return {name: metric(name, *task.answer.read_by(name, predictions, gold)) for name in task.metrics}


def why_undefined(name: str, predictions: Any, gold: Any) -> str | None:
    """Why a metric has no value here, in words; None if it has one."""
    predictions, gold = np.asarray(predictions), np.asarray(gold)
    if not len(gold):
        return "there are no examples"
    return _for(name, gold).undefined(predictions, gold) if name in METRICS else None


def unrelated(predictions: np.ndarray, gold: np.ndarray) -> str | None:
    """Why there is no correlation."""
    for name, values in (("prediction", predictions), ("gold label", gold)):
        if not np.isfinite(values).all():
            return f"a {name} is not a finite number"
    return "every gold label is the same" if (gold == gold[0]).all() else None


# Answers that are (nearly) all of one class, and what such answers reach -----------------------
#
# A model that always says the same can look unharmed: on MRPC, where 68 % of the pairs are equivalent, "equivalent"
# for every pair has accuracy .684 and F1 .812.


NEARLY = 0.98  # share of the answers that counts as all
NONE_OF_THEM = "none of the classes"


def counts(predictions: ArrayLike, labels: Sequence[str]) -> dict[str, int]:
    """How often each class is predicted; -1 is an output that is none of them."""
    predicted = np.asarray(predictions, dtype=np.int64)
    counts = dict(zip(labels, np.bincount(predicted[predicted >= 0], minlength=len(labels)).tolist(), strict=True))
    other = int((predicted < 0).sum())
    return counts | ({NONE_OF_THEM: other} if other else {})


def remark(predicted: Mapping[str, int] | None, majority: float | None = None, accuracy: float | None = None) -> str:
    """The sentence that comes first where (nearly) all answers are one class; empty where they are not.

    ``predicted`` counts the answers by class. ``majority`` is the share of the most frequent gold label: where that
    is (nearly) all of them too, there is nothing to remark, unless the ``accuracy`` says that it is another class.
    """
    total = sum(predicted.values()) if predicted else 0
    other_class = accuracy is not None and accuracy < 0.5
    if not predicted or not total or (majority is not None and majority >= NEARLY and not other_class):
        return ""
    name, count = max(predicted.items(), key=lambda item: item[1])
    if count < NEARLY * total:
        return ""
    if total == 1:
        return f"The one answer is “{name}”."
    if count == total:
        return f"All {total:,} answers are “{name}”."
    return f"Nearly all answers are “{name}” ({count:,} of {total:,})."


def continued(sentence: str) -> str:
    """A remark behind other words of its sentence: ``With 90 % of the heads removed, all 408 answers are “yes”.``"""
    return sentence[:1].lower() + sentence[1:]


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
