"""Distilling a classifier on a task of the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from ...errors import TaskError
from ...evaluation.dispatch import evaluate
from ...evaluation.plain import class_order, encode_data, gold_for
from ...progress import Cancel
from .problem import Call, TransformerData

if TYPE_CHECKING:
    from ...models.classifier import Classifier
    from ...tasks import Dataset


class Classifying(TransformerData):
    """Texts with classes, or numbers; the teacher fixes tokenizer and class order."""

    def __init__(
        self, teacher: Classifier, train: Dataset, dev: Dataset, label_order: Sequence[str] | str | None = None
    ) -> None:
        if train.labels is None or dev.labels is None:
            raise TaskError("Students learn from gold labels and are measured by them. Name the label column.")
        super().__init__(teacher, train, dev)
        self.teacher, self.label_order = teacher, label_order
        gold = gold_for(train, class_order(teacher, train, label_order))
        self.regression = not teacher.answer.decides
        self.gold = teacher.answer.tensor(gold)
        self.encodings = encode_data(teacher, train)

    @property
    def lengths(self) -> list[int]:
        return [len(e) for e in self.encodings]

    @property
    def observations(self) -> int:
        return len(self.train)

    def outputs(self, call: Call, index: Sequence[int]) -> tuple[Tensor, Tensor]:
        batch = self.teacher.collate([self.encodings[i] for i in index])
        return call(**batch).logits.float(), self.gold[list(index)].to(self.teacher.device)

    def measure(self, subject: Any, cancel: Cancel | None = None) -> dict[str, float]:
        found = evaluate(subject, self.dev, label_order=self.label_order, precision="float32", cancel=cancel)
        return found.metrics
