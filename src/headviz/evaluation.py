"""Plain evaluation: a classifier, a data set and a mask give metrics and logits, in the data's order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import Cancelled, OptionError, TaskError
from .heads import HeadMask

if TYPE_CHECKING:
    from .models.classifier import Classifier, Encoding
    from .tasks import Dataset

Progress = Callable[[int, int], None]  # (done, total)
Cancel = Callable[[], bool]

BATCH_TOKENS = 4096


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a model says about a data set under one mask."""

    metrics: dict[str, float]  # NaN where a metric is undefined on these predictions
    logits: np.ndarray  # float32 [n, C], in the data's order, classes in the model's order
    gold: np.ndarray  # [n] class numbers of the model, or values for a regression
    mask: HeadMask
    seconds: float
    truncated: int  # texts that were cut to the model's length

    @property
    def n(self) -> int:
        return len(self.logits)

    @property
    def predictions(self) -> np.ndarray:
        """[n] class numbers of the model; for a regression its values."""
        return predictions_of(self.logits)

    @property
    def probabilities(self) -> np.ndarray:
        """[n, C] softmax of the logits; for a regression the logits themselves."""
        if self.logits.shape[1] == 1:
            return self.logits
        exp = np.exp(self.logits - self.logits.max(axis=1, keepdims=True))
        return exp / exp.sum(axis=1, keepdims=True)

    def to_json(self) -> dict[str, Any]:
        """Plain values for the command line and for files; an undefined metric is null."""
        return {
            "metrics": {k: (None if np.isnan(v) else float(v)) for k, v in self.metrics.items()},
            "n": self.n,
            "seconds": round(self.seconds, 4),
            "mask": self.mask.hex,
            "heads_off": [h.dotted for h in self.mask.off],
            "truncated": self.truncated,
        }


def predictions_of(logits: np.ndarray) -> np.ndarray:
    """Class numbers, or values for a regression head."""
    return logits[:, 0] if logits.shape[1] == 1 else logits.argmax(axis=1)


def evaluate(
    clf: Classifier,
    data: Dataset,
    mask: HeadMask | None = None,
    *,
    batch_tokens: int = BATCH_TOKENS,
    label_order: Sequence[str] | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Evaluation:
    """Evaluate under a mask (None = every head the model has).

    Texts of similar length share a batch of at most ``batch_tokens`` tokens, padding included.
    Between batches ``progress(done, total)`` is told, and ``cancel()`` may stop everything with
    ``Cancelled``. For many masks on the same data use ``headviz.Evaluator``, which reuses layers.
    """
    start = time.perf_counter()
    if len(data) == 0:
        raise TaskError("There is nothing to evaluate: the data set has no examples.")
    if batch_tokens < 1:
        raise OptionError(f"batch_tokens must be at least 1, not {batch_tokens}.")
    gold = gold_for(clf, data, label_order)
    encodings = encode_data(clf, data)
    logits = np.empty((len(data), clf.num_labels), dtype=np.float32)
    done = 0
    if progress is not None:
        progress(0, len(data))
    for index in batches([len(e) for e in encodings], batch_tokens):
        if cancel is not None and cancel():
            raise Cancelled
        logits[index] = clf.logits(clf.collate([encodings[i] for i in index]), mask).cpu().numpy()
        done += len(index)
        if progress is not None:
            progress(done, len(data))
    return Evaluation(
        metrics=metrics_for(clf, data, logits, gold),
        logits=logits,
        gold=gold,
        mask=clf.full_mask if mask is None else mask,
        seconds=time.perf_counter() - start,
        truncated=sum(e.truncated for e in encodings),
    )


def encode_data(clf: Classifier, data: Dataset) -> list[Encoding]:
    """Token ids of every example, in the data's order."""
    return clf.encode(list(data.texts), None if data.pairs is None else list(data.pairs))


def batches(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Positions grouped by length, each group at most ``batch_tokens`` tokens once padded (never empty)."""
    group: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        if group and (len(group) + 1) * lengths[i] > batch_tokens:
            yield group
            group = []
        group.append(i)
    if group:
        yield group


def gold_for(clf: Classifier, data: Dataset, label_order: Sequence[str] | None = None) -> np.ndarray:
    """The gold labels as class numbers of the model, matched by name; values for a regression."""
    from .tasks import label_map

    if clf.is_regression != data.task.regression:
        kinds = {True: "a regression model", False: "a classifier"}
        raise TaskError(
            f"'{clf.name}' is {kinds[clf.is_regression]}, but task '{data.task.name}' needs "
            f"{kinds[data.task.regression]}."
        )
    if data.task.regression:
        return np.asarray(data.labels, dtype=np.float64)
    to_model = label_map(clf.labels, data, label_order)
    return to_model[np.asarray(data.labels)]


def metrics_for(clf: Classifier, data: Dataset, logits: np.ndarray, gold: np.ndarray) -> dict[str, float]:
    """The task's own metrics; the positive class of F1 is the task's last label, found by name."""
    from .tasks import label_map, metrics

    predictions = predictions_of(logits)
    if data.task.regression:
        return metrics(data.task, predictions, gold)
    to_task = np.full(clf.num_labels, -1)
    to_model = label_map(clf.labels, data, None) if len(gold) else np.arange(clf.num_labels)
    to_task[to_model] = np.arange(len(to_model))
    return metrics(data.task, to_task[predictions], np.asarray(data.labels))
