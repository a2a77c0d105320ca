"""What a student learns from: one class for each kind of model, and the batches of a training."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from ...answers.answer import IGNORED, Answer
from ...answers.one_class import ONE_CLASS
from ...errors import ModelError, OptionError, TaskError
from ...evaluation.dispatch import evaluate
from ...evaluation.plain import class_order, encode_data, gold_for
from ...models.folders import fresh
from ...progress import Cancel, tracked
from ...tasks import constant, metrics
from .layer_removal import Entries, Partition
from .plan import TrainingOptions

if TYPE_CHECKING:
    from ...models.base import Encoded, TransformerModel
    from ...models.classifier import Classifier
    from ...tasks import Dataset


Call = Callable[..., Any]  # the model, or the model with other weights


class Problem(ABC):
    """Training and dev data of one task, for models of one kind."""

    rows: Answer = ONE_CLASS  # the answer that a row of its outputs is, with its losses
    tokenizer_digest = ""

    def __init__(self, teacher: Any, train: Dataset, dev: Dataset) -> None:
        self.teacher, self.train, self.dev = teacher, train, dev

    @property
    def digest(self) -> str:
        """Identifies the data."""
        return hashlib.sha256(f"{self.train.digest}{self.dev.digest}{self.tokenizer_digest}".encode()).hexdigest()

    @property
    def constants(self) -> dict[str, float | None]:
        """What one answer for all dev examples reaches; None where a metric has no such value."""
        names = self.dev.task.metrics
        return {name: None if self.dev.labels is None else constant(name, self.dev.gold) for name in names}

    def with_model(self, subject: Any, model: nn.Module) -> Any:
        """The same classifier or translator around another network of its architecture."""
        return dataclasses.replace(subject, model=model)

    @property
    @abstractmethod
    def lengths(self) -> Sequence[int]:
        """The length of every training example in tokens."""

    @property
    @abstractmethod
    def observations(self) -> int:
        """How many labels they carry: what a likelihood is a product over."""

    @abstractmethod
    def outputs(self, call: Call, index: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Logits [n, C] and gold labels [n] of these training examples."""

    @abstractmethod
    def measure(self, subject: Any, cancel: Cancel | None = None) -> dict[str, float]:
        """Dev metrics; NaN where one is undefined."""

    @abstractmethod
    def fresh(self, model: nn.Module, seed: int) -> nn.Module:
        """The same architecture with random weights."""


class TransformerProblem(Problem):
    """The same for a teacher of the transformer family, which fixes the tokenizer."""

    encodings: Sequence[Encoded]  # of the training data

    def __init__(self, teacher: TransformerModel, train: Dataset, dev: Dataset) -> None:
        super().__init__(teacher, train, dev)
        self.tokenizer_digest = teacher.tokenizer_digest
        if teacher.dtype != torch.float32:
            raise ModelError(f"Students are trained in float32, not {teacher.dtype}. Load the model without a dtype.")

    @property
    def lengths(self) -> list[int]:
        return [len(e) + len(e.target or ()) for e in self.encodings]

    def fresh(self, model: nn.Module, seed: int) -> nn.Module:
        network: nn.Module = fresh(model, seed)
        return network


def check_forcing(model: nn.Module, options: TrainingOptions) -> None:
    """Only a recurrent translator makes its translation word by word while it learns."""
    if options.forcing < 1 and "forcing" not in signature(model.forward).parameters:
        raise OptionError("Only recurrent translators learn from words of their own. Leave forcing at 1.")


class Batches:
    """The examples of each step: a function of seed and step alone, so that a training can go on anywhere.

    Within every 50 batches drawn at random examples are sorted by length, and the batches then shuffled: less padding.
    The last batch of an epoch is left out if it is shorter; the next epoch is drawn again.
    """

    def __init__(self, lengths: Sequence[int], batch: int, seed: int) -> None:
        self.lengths = np.asarray(lengths)
        self.batch, self.seed = min(batch, len(self.lengths)), seed
        self._epoch = -1
        self._rows = np.empty((0, 0), dtype=np.int64)

    def at(self, step: int) -> list[int]:
        epoch, row = divmod(step, len(self.lengths) // self.batch)
        if epoch != self._epoch:
            self._epoch, self._rows = epoch, self._drawn(epoch)
        index: list[int] = self._rows[row].tolist()
        return index

    def _drawn(self, epoch: int) -> np.ndarray:
        rng = np.random.default_rng([self.seed, epoch])
        order = rng.permutation(len(self.lengths))
        order = order[: len(order) // self.batch * self.batch]
        for at in range(0, len(order), 50 * self.batch):
            window = order[at : at + 50 * self.batch]
            order[at : at + 50 * self.batch] = window[np.argsort(self.lengths[window], kind="stable")]
        rows: np.ndarray = order.reshape(-1, self.batch)
        return rows[rng.permutation(len(rows))]


class Classifying(TransformerProblem):
    """Texts with classes, or numbers; the teacher fixes tokenizer and class order."""

    def __init__(
        self, teacher: Classifier, train: Dataset, dev: Dataset, label_order: Sequence[str] | str | None = None
    ) -> None:
        if train.labels is None or dev.labels is None:
            raise TaskError("Students learn from gold labels and are measured by them. Name the label column.")
        super().__init__(teacher, train, dev)
        self.label_order = label_order
        self.rows = teacher.answer
        self.gold = teacher.answer.tensor(gold_for(train, class_order(teacher, train, label_order)))
        self.encodings = encode_data(teacher, train)

    @property
    def observations(self) -> int:
        return len(self.train)

    def outputs(self, call: Call, index: Sequence[int]) -> tuple[Tensor, Tensor]:
        batch = self.teacher.collate([self.encodings[i] for i in index])
        return self.teacher.trained_logits(call, batch).float(), self.gold[list(index)].to(self.teacher.device)

    def measure(self, subject: Any, cancel: Cancel | None = None) -> dict[str, float]:
        evaluation = evaluate(subject, self.dev, label_order=self.label_order, precision="float32", cancel=cancel)
        return evaluation.metrics


class Translating(TransformerProblem):
    """Sentence pairs, teacher-forced. A token of the reference is one observation, its end mark included."""

    def __init__(self, teacher: TransformerModel, train: Dataset, dev: Dataset, beams: int = 1) -> None:
        super().__init__(teacher, train, dev)
        self.beams = beams
        self.encodings = teacher.encode(list(train.texts), list(train.references))

    @property
    def observations(self) -> int:
        return sum(len(e.target or ()) for e in self.encodings)

    def outputs(self, call: Call, index: Sequence[int]) -> tuple[Tensor, Tensor]:
        batch = self.teacher.collate([self.encodings[i] for i in index])
        gold = batch.pop("labels")
        is_token = gold != IGNORED
        logits: Tensor = call(**batch, use_cache=False).logits
        return logits[is_token].float(), gold[is_token]

    def measure(self, subject: Any, cancel: Cancel | None = None) -> dict[str, float]:
        metrics: dict[str, float] = evaluate(subject, self.dev, beams=self.beams, cancel=cancel).metrics
        return metrics


# -----------------------------------------------------------------------------------------------
# Distilling a recurrent translator on a translation task: what it learns from, and taking its attention out.


CHUNK = 256  # sentences translated between two looks at the cancel flag


class RnnTranslating(Problem):
    """Sentence pairs. A target word is one observation, the end of the sentence included."""

    def __init__(self, teacher: Any, train: Dataset, dev: Dataset, beams: int = 1) -> None:
        super().__init__(teacher, train, dev)
        self.beams = beams
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
        translations: list[str] = []
        for at in tracked(range(0, len(self.dev), CHUNK), cancel=cancel):
            translations += subject.translate(self.dev.texts[at : at + CHUNK], beams=self.beams)
        return metrics(self.dev.task, translations, self.dev.references)

    def fresh(self, model: nn.Module, seed: int) -> nn.Module:
        network: nn.Module = redrawn(model, seed)
        return network


ZEROED = {
    "": ("energy.weight",),  # Theorem 3
    "2": ("energy.weight", "query.weight", "key.weight", "key.bias"),  # nothing is left over
    "4": ("query.weight", "key.weight"),
    "keys": ("key.weight",),  # none of the paper's
}


def redrawn(model: Any, seed: int) -> Any:
    """A copy with new random weights."""
    network = copy.deepcopy(model)
    network.draw(seed)
    return network


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
    kept = {name: Entries(name) for name, _ in student.named_parameters()}
    return student.eval(), Partition(shapes, kept, tuple(Entries(f"attention.{name}") for name in ZEROED[by]))
