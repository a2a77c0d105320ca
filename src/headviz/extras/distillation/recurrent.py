"""Distilling a recurrent translator on a translation task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ...models.recurrent import BEGIN, END, RnnTranslator, padded
from ...models.recurrent_network import Rnn, redrawn
from ...progress import Cancel, tracked
from .problem import Call, TaskData

if TYPE_CHECKING:
    from ...tasks import Dataset

CHUNK = 256  # sentences translated between two looks at the cancel flag


class RnnTranslating(TaskData):
    """Sentence pairs. A target word is one observation, the end of the sentence included."""

    def __init__(self, teacher: RnnTranslator, train: Dataset, dev: Dataset, beams: int = 1) -> None:
        super().__init__(train, dev)
        self.beams = beams
        self.device = teacher.device
        self.sources = [teacher.source.encode(t) for t in train.texts]
        self.targets = [teacher.target.encode(t) for t in train.references]

    @property
    def lengths(self) -> list[int]:
        return [len(s) + len(t) for s, t in zip(self.sources, self.targets, strict=True)]

    @property
    def observations(self) -> int:
        return sum(map(len, self.targets))

    def outputs(self, call: Call, index: Sequence[int]) -> tuple[Tensor, Tensor]:
        source, mask = padded([self.sources[i] for i in index], self.device)
        gold, real = padded([self.targets[i] for i in index], self.device)
        given = torch.cat([torch.full_like(gold[:, :1], BEGIN), gold[:, :-1]], 1)
        given[given == END] = BEGIN  # after the end of a sentence any word will do: its output is not used
        return call(source, mask, given, real), gold[real]

    def measure(self, subject: Any, cancel: Cancel | None = None) -> dict[str, float]:
        from ...tasks import metrics

        found: list[str] = []
        for at in tracked(range(0, len(self.dev), CHUNK), cancel=cancel):
            found += subject.translate(self.dev.texts[at : at + CHUNK], beams=self.beams)
        return metrics(self.dev.task, found, self.dev.references)

    def fresh(self, model: nn.Module, seed: int) -> nn.Module:
        assert isinstance(model, Rnn)
        return redrawn(model, seed)
