"""Distilling a transformer translation model on a translation task."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ..errors import ModelError
from ..evaluation.dispatch import evaluate
from ..models.fresh_weights import fresh
from ..models.translator import NO_TOKEN
from ..progress import Cancel
from .problem import Call
from .recurrent import require_translation

if TYPE_CHECKING:
    from ..models.translator import Translator
    from ..tasks import Dataset


class Translating:
    """Sentence pairs, teacher-forced. A token of the reference is one observation, its end mark included."""

    regression = False

    def __init__(self, teacher: Translator, train: Dataset, dev: Dataset) -> None:
        require_translation(train)
        require_translation(dev)
        if teacher.dtype != torch.float32:
            raise ModelError(f"Students are trained in float32, not {teacher.dtype}. Load the model without a dtype.")
        self.teacher, self.train, self.dev = teacher, train, dev
        self.encodings = teacher.encode(list(train.texts), list(train.references))
        self.metrics = dev.task.metrics

    @property
    def lengths(self) -> list[int]:
        return [len(e) + len(e.target or ()) for e in self.encodings]

    @property
    def observations(self) -> int:
        return sum(len(e.target or ()) for e in self.encodings)

    @property
    def digest(self) -> str:
        said = f"{self.train.digest}{self.dev.digest}{self.teacher.tokenizer_digest}"
        return hashlib.sha256(said.encode()).hexdigest()

    def outputs(self, call: Call, index: Sequence[int]) -> tuple[Tensor, Tensor]:
        batch = self.teacher.collate([self.encodings[i] for i in index])
        gold = batch.pop("labels")
        real = gold != NO_TOKEN
        logits: Tensor = call(**batch, use_cache=False).logits
        return logits[real].float(), gold[real]

    def measure(self, subject: Any, cancel: Cancel | None = None) -> dict[str, float]:
        found: dict[str, float] = evaluate(subject, self.dev, cancel=cancel).metrics
        return found

    def fresh(self, model: nn.Module, seed: int) -> nn.Module:
        made: nn.Module = fresh(model, seed)
        return made

    def with_model(self, subject: Any, model: nn.Module) -> Any:
        return dataclasses.replace(subject, model=model)
