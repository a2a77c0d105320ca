"""Distilling a recurrent translator on a translation task: what it learns from, and taking its attention out."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ...errors import ModelError
from ...progress import Cancel, tracked
from ...tasks import metrics
from .layer_removal import Piece
from .partition import Partition
from .problem import Call, TaskData

if TYPE_CHECKING:
    from ...tasks import Dataset

CHUNK = 256  # sentences translated between two looks at the cancel flag


class RnnTranslating(TaskData):
    """Sentence pairs. A target word is one observation, the end of the sentence included."""

    def __init__(self, teacher: Any, train: Dataset, dev: Dataset, beams: int = 1) -> None:
        super().__init__(train, dev)
        self.beams = beams
        self.teacher = teacher
        self.sources = [teacher.source.encode(t) for t in train.texts]
        self.targets = [teacher.target.encode(t) for t in train.references]

    @property
    def lengths(self) -> list[int]:
        return [len(s) + len(t) for s, t in zip(self.sources, self.targets, strict=True)]

    @property
    def observations(self) -> int:
        return sum(map(len, self.targets))

    def outputs(self, call: Call, index: Sequence[int]) -> tuple[Tensor, Tensor]:
        inputs, gold = self.teacher.forced([self.sources[i] for i in index], [self.targets[i] for i in index])
        return call(*inputs), gold[inputs[-1]]

    def measure(self, subject: Any, cancel: Cancel | None = None) -> dict[str, float]:
        found: list[str] = []
        for at in tracked(range(0, len(self.dev), CHUNK), cancel=cancel):
            found += subject.translate(self.dev.texts[at : at + CHUNK], beams=self.beams)
        return metrics(self.dev.task, found, self.dev.references)

    def fresh(self, model: nn.Module, seed: int) -> nn.Module:
        return redrawn(model, seed)


ZEROED = {
    "": ("energy.weight",),  # Theorem 3
    "2": ("energy.weight", "query.weight", "key.weight", "key.bias"),  # nothing is left over
    "4": ("query.weight", "key.weight"),
    "keys": ("key.weight",),  # none of the paper's
}


def redrawn(model: Any, seed: int) -> nn.Module:
    """A copy with new random weights."""
    own: Any = copy.deepcopy(model)
    own.draw(seed)
    made: nn.Module = own
    return made


def without_attention(model: Any, by: str = "") -> tuple[Any, Partition]:
    """The student with the teacher's weights, and the partition: ``ZEROED``, and the rest of the attention.

    All of them give every source word the same energy.
    """
    if model.attention is None:
        raise ModelError("This translator has no attention that could be removed.")
    student = type(model)(dataclasses.replace(model.config, attention=False))
    weights = dict(model.named_parameters())
    with torch.no_grad():
        for name, p in student.named_parameters():
            p.copy_(weights[name])
    shapes = {name: p.shape for name, p in weights.items()}
    kept = {name: Piece(name) for name, _ in student.named_parameters()}
    return student.eval(), Partition(shapes, kept, tuple(Piece(f"attention.{name}") for name in ZEROED[by]))
