"""The result of an evaluation, and what every evaluation needs: encodings, batches, gold answers, metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..answers.answer import Answer
from ..answers.metrics import constant, metrics, why_undefined
from ..heads import HeadMask
from ..models.stand_in import ZERO
from ..results import Result, flat_row, plain
from ..statistics.intervals import interval_of_mean

if TYPE_CHECKING:
    from ..models.base import Model, TransformerModel
    from ..models.classifier import Classifier, Encoding
    from ..tasks import Dataset

BATCH_TOKENS = 4096
ENOUGH_TOKENS = 512  # a batch of so many is as fast per token as a larger one; from there on padding decides
LONGEST_TO_SHORTEST = 1.1


@dataclass(frozen=True, eq=False)
class Evaluation(Result):
    """What a model answers to a data set under one mask."""

    metrics: dict[str, float]  # NaN where a metric is undefined on these predictions
    logits: np.ndarray  # float32 [n, C], in the data's order, classes in the model's order
    gold: np.ndarray | None  # [n] class numbers of the model, values for a regression; None without labels
    mask: HeadMask
    seconds: float
    truncated: int  # texts that were cut to the model's length
    unread: int = field(default=0, kw_only=True)  # of them those that were cut before their gold answer
    answer: Answer = field(kw_only=True)
    # how often each class is predicted (None without classes), and what the best constant answer reaches, by metric
    predicted: dict[str, int] | None = field(default=None, kw_only=True)
    constant: dict[str, float | None] = field(default_factory=dict, kw_only=True)
    ablation: str = field(default=ZERO, kw_only=True)  # what stands in the place of heads that are off
    reference: int | None = field(default=None, kw_only=True)  # examples on which that was measured
    precision: str = field(default="float32", kw_only=True)  # what the layers computed in
    # metrics of each draw, where it is drawn; ``logits`` and ``metrics`` are those of the first
    draws: tuple[dict[str, float], ...] = field(default=(), kw_only=True)

    def __repr__(self) -> str:
        figures = ", ".join(f"{name} {value:.4f}" for name, value in self.metrics.items())
        return f"<{type(self).__name__} of {self.n:,} examples: {figures}; {self.mask or 'no heads'}>"

    @property
    def n(self) -> int:
        return len(self.logits)

    @property
    def predictions(self) -> np.ndarray:
        """[n] class numbers of the model; for a regression its values."""
        return self.answer.plain(self.logits)

    @property
    def probabilities(self) -> np.ndarray:
        """[n, C] softmax of the logits; for a regression the logits themselves."""
        return self.answer.values(self.logits)

    def to_dict(self) -> dict[str, Any]:
        """Without the logits and the gold answers; an undefined metric is None."""
        return {
            "metrics": {k: (None if np.isnan(v) else float(v)) for k, v in self.metrics.items()},
            "predicted": self.predicted,
            "constant": self.constant,
            "n": self.n,
            "seconds": round(self.seconds, 4),
            "mask": None if self.mask is None else self.mask.hex,
            "heads_off": [] if self.mask is None else [h.dotted for h in self.mask.off],
            "truncated": self.truncated,
            "unread": self.unread,
            "ablation": self.ablation,
            "reference": self.reference,
            **({} if self.precision == "float32" else {"precision": self.precision}),
            **({"draws": self.over_draws()} if self.draws else {}),
        }

    @property
    def cut_off(self) -> str:
        """How many texts were cut, in words; empty where none was."""
        return cut_off_sentence(self.truncated, self.unread)

    def records(self) -> list[dict[str, Any]]:
        """One row: the metrics, and what the evaluation was of."""
        return [flat_row(self.metrics | {"n": self.n, "seconds": self.seconds, "mask": plain(self.mask)})]

    def over_draws(self) -> dict[str, dict[str, Any]]:
        """For each metric its mean over the draws, with a 95 % interval of that mean (None from a single draw)."""
        spreads = {}
        for name in self.draws[0] if self.draws else ():
            values = [draw[name] for draw in self.draws]
            mean, low, high = interval_of_mean(values)
            spreads[name] = plain({"mean": mean, "low": low, "high": high, "values": values})
        return spreads


def stand_in_fields(clf: TransformerModel, donors: Any = None) -> dict[str, Any]:
    """The fields of an ``Evaluation`` about what stands in the place of heads that are off."""
    if donors is not None:
        return {"ablation": donors.stand_in.kind, "reference": donors.examples}
    return {} if clf.fill is None else {"ablation": clf.fill.kind, "reference": clf.fill.examples}


def encode_data(clf: Any, data: Dataset) -> list[Encoding]:
    """Token ids of every example, in the data's order."""
    return clf.encode(list(data.texts), None if data.pairs is None else list(data.pairs))


def batches(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Positions grouped by length, each group at most ``batch_tokens`` tokens once padded (never empty).

    A group of ``ENOUGH_TOKENS`` takes no text that is much longer than its shortest.
    """
    group: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        if group:
            padded = len(group) * lengths[i]
            uneven = lengths[i] > LONGEST_TO_SHORTEST * lengths[group[0]]
            if padded + lengths[i] > batch_tokens or (uneven and padded >= ENOUGH_TOKENS):
                yield group
                group = []
        group.append(i)
    if group:
        yield group


def check_inputs(clf: Model, data: Dataset) -> None:
    """Refuse texts that the model does not read."""
    clf.answer.refuse(clf, data)
    data.answer.refuse(clf, data)
    clf.check_texts(data.pairs is not None)


def class_order(clf: Model, data: Dataset, label_order: Sequence[str] | str | None = None) -> Any:
    """For each class of the task the model's output for it, matched by name or given by the user.

    Refuses data that the model was not made for: another kind of answer, or one text where it reads two.
    """
    check_inputs(clf, data)
    return data.answer.order(clf, data, label_order)


def gold_for(data: Dataset, order: np.ndarray) -> np.ndarray | None:
    """The gold answers in the model's terms: its class numbers, values for a regression; None without labels."""
    return None if data.labels is None else data.answer.in_model(data.gold, order)


def cut_off_sentence(truncated: int, unread: int, consequence: str = "counts as wrong") -> str:
    """How many texts are cut, how many of them before their gold answer, and what follows; empty where none is."""
    if not truncated:
        return ""
    count = f"{truncated:,} text{'' if truncated == 1 else 's'} cut to the model's length"
    return count + (f", {unread:,} of them before the answer, which {consequence}" if unread else "")


def unread(data: Dataset, encodings: Sequence[Encoding]) -> int:
    """How many texts are cut before their gold answer."""
    assert data.labels is not None
    read = [(e.places, label) for e, label in zip(encodings, data.labels, strict=False) if e.truncated and e.places]
    return sum(data.answer.unread(places, label) for places, label in read if places is not None)


def cut_off(clf: Any, data: Dataset, consequence: str = "counts as wrong") -> str:
    """``cut_off_sentence`` of a data set, where nothing has encoded it yet."""
    encodings = encode_data(clf, data)
    lost = 0 if data.labels is None else unread(data, encodings)
    return cut_off_sentence(sum(e.truncated for e in encodings), lost, consequence)


def metrics_for(data: Dataset, logits: np.ndarray, order: np.ndarray) -> dict[str, float]:
    """The task's own metrics of these logits; none for data without labels."""
    if data.labels is None:
        return {}
    return metrics(data.task, data.answer.predicted(logits, order), data.gold)


def counts_for(clf: Classifier, data: Dataset, logits: np.ndarray, order: np.ndarray) -> dict[str, int] | None:
    """How often each class of the task, or of the model where the data have no labels, is predicted."""
    if data.labels is None:
        return data.answer.counts(data.answer.plain(logits), clf.labels)
    return data.answer.counts(data.answer.predicted(logits, order), data.label_names)


def constants_for(data: Dataset) -> dict[str, float | None]:
    """What the best constant answer reaches in each metric of the task; None where it has no value."""
    return {} if data.labels is None else {name: constant(name, data.gold) for name in data.task.metrics}


def undefined_for(data: Dataset, logits: np.ndarray, order: np.ndarray) -> dict[str, str]:
    """Why a metric of these logits has no value, in words, by its name; only metrics without one."""
    if data.labels is None:
        return {}
    predicted = data.answer.predicted(logits, order)
    reasons = {
        name: why_undefined(name, *data.answer.read_by(name, predicted, data.gold)) for name in data.task.metrics
    }
    return {name: reason for name, reason in reasons.items() if reason is not None}
