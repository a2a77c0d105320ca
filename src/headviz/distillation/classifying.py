"""Distilling a classifier on a task of the table."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ..errors import ModelError, TaskError
from ..evaluation.dispatch import evaluate
from ..evaluation.plain import class_order, encode_data, gold_for
from ..models.fresh_weights import fresh
from ..progress import Cancel
from .problem import Call

if TYPE_CHECKING:
    from ..models.classifier import Classifier
    from ..tasks import Dataset


class Classifying:
    """Texts with classes, or numbers; the teacher fixes tokenizer and class order."""

    def __init__(
        self, teacher: Classifier, train: Dataset, dev: Dataset, label_order: Sequence[str] | str | None = None
    ) -> None:
        if train.labels is None or dev.labels is None:
            raise TaskError("Students learn from gold labels and are measured by them. Name the label column.")
        if teacher.dtype != torch.float32:
            raise ModelError(f"Students are trained in float32, not {teacher.dtype}. Load the model without a dtype.")
        self.teacher, self.train, self.dev = teacher, train, dev
        self.label_order = label_order
        gold = gold_for(train, class_order(teacher, train, label_order))
        self.regression = teacher.is_regression
        self.gold = torch.tensor(gold, dtype=torch.float32 if self.regression else torch.long)
        self.encodings = encode_data(teacher, train)
        self.metrics = dev.task.metrics

    @property
    def lengths(self) -> list[int]:
        return [len(e) for e in self.encodings]

    @property
    def observations(self) -> int:
        return len(self.train)

    @property
    def digest(self) -> str:
        return hashlib.sha256(
            f"{self.train.digest}{self.dev.digest}{self.teacher.tokenizer_digest}".encode()
        ).hexdigest()

    def outputs(self, call: Call, index: Sequence[int]) -> tuple[Tensor, Tensor]:
        batch = self.teacher.collate([self.encodings[i] for i in index])
        return call(**batch).logits.float(), self.gold[list(index)].to(self.teacher.device)

    def measure(self, subject: Any, cancel: Cancel | None = None) -> dict[str, float]:
        return evaluate(subject, self.dev, label_order=self.label_order, cancel=cancel).metrics

    def fresh(self, model: nn.Module, seed: int) -> nn.Module:
        made: nn.Module = fresh(model, seed)
        return made

    def with_model(self, subject: Any, model: nn.Module) -> Any:
        return dataclasses.replace(subject, model=model)
