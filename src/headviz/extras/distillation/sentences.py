"""Distilling a transformer translation model on a translation task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from ...answers.answer import IGNORED
from ...evaluation.dispatch import evaluate
from ...progress import Cancel
from .problem import Call, TransformerData

if TYPE_CHECKING:
    from ...models.base import TransformerModel
    from ...tasks import Dataset


class Translating(TransformerData):
    """Sentence pairs, teacher-forced. A token of the reference is one observation, its end mark included."""

    def __init__(self, teacher: TransformerModel, train: Dataset, dev: Dataset, beams: int = 1) -> None:
        super().__init__(teacher, train, dev)
        self.beams = beams
        self.teacher = teacher
        self.encodings = teacher.encode(list(train.texts), list(train.references))

    @property
    def lengths(self) -> list[int]:
        return [len(e) + len(e.target or ()) for e in self.encodings]

    @property
    def observations(self) -> int:
        return sum(len(e.target or ()) for e in self.encodings)

    def outputs(self, call: Call, index: Sequence[int]) -> tuple[Tensor, Tensor]:
        batch = self.teacher.collate([self.encodings[i] for i in index])
        gold = batch.pop("labels")
        real = gold != IGNORED
        logits: Tensor = call(**batch, use_cache=False).logits
        return logits[real].float(), gold[real]

    def measure(self, subject: Any, cancel: Cancel | None = None) -> dict[str, float]:
        found: dict[str, float] = evaluate(subject, self.dev, beams=self.beams, cancel=cancel).metrics
        return found
