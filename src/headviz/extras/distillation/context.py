"""The teacher, the task's data and the removal, loaded once for all pieces of a distillation."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from ...errors import ModelError, OptionError
from ...evaluation.dispatch import check_data
from ...models.base import Model, TransformerModel
from ...models.classifier import Classifier
from .classifying import Classifying
from .conditional import Prior, supported
from .iterates import FileIterates, Iterates, MemoryIterates
from .partition import Partition, remove, zeroed_model
from .plan import ITERATES, DistillationPlan
from .posterior import Posterior
from .problem import Problem, check_forcing
from .recurrent import RnnTranslating, without_attention
from .removal import Removal
from .sentences import Translating

if TYPE_CHECKING:
    from ...tasks import Dataset

SAMPLE = 64  # examples on which the student is compared with the zeroed teacher


@dataclass(frozen=True, eq=False)
class Context:
    """Loaded models and data. ``subject`` is the student with the teacher's own weights."""

    plan: DistillationPlan
    folder: Path
    teacher: Any
    problem: Problem
    subject: Any
    partition: Partition
    _prior: list[Prior] = field(default_factory=list)  # the one that was computed last

    @property
    def iterate_paths(self) -> list[Path]:
        return [self.folder / ITERATES / f"{k:03d}.safetensors" for k in range(self.plan.iterates.count)]

    def prior(self, shrinkage: float | None = None) -> Prior:
        """The student's prior. The piece ``teacher`` must be done, because it collects the iterates.

        ``shrinkage`` was chosen in that piece, by whatever version; None = it is chosen now.
        """
        if not self._prior or shrinkage not in (None, self._prior[0].posterior.shrinkage):
            self._prior[:] = [self._computed(shrinkage)]
        return self._prior[0]

    def _computed(self, shrinkage: float | None) -> Prior:
        mean, iterates, options = dict(self.teacher.model.named_parameters()), self._iterates(), self.plan.posterior
        if options.shrinkage is None and shrinkage is not None:
            options = replace(options, shrinkage=shrinkage)
        if options.shrinkage is None and options.covariance != "diagonal":
            return supported(mean, iterates, options, self.partition, independent=self.plan.trainings is not None)
        return Prior(Posterior(mean, iterates, options), self.partition)

    def _iterates(self) -> Iterates:
        if self.plan.trainings is None:
            return FileIterates(self.iterate_paths)
        models = [_load(self.plan, folder).model for folder in self.plan.trainings]
        return MemoryIterates(
            [same_shapes(self.teacher.model, m, f) for m, f in zip(models, self.plan.trainings, strict=True)]
        )

    def difference(self) -> dict[str, float | None]:
        """How much the student with copied weights differs from the teacher with v2 at zero, on training examples.

        ``largest`` = the largest difference of two logits; ``typical`` = the mean distance of the teacher's logits
        from their mean; ``changed`` = the share of predictions that differ, None for a regression.
        """
        index = list(range(min(SAMPLE, len(self.problem.lengths))))
        zeroed = zeroed_model(self.teacher.model, self.partition).eval()
        with torch.inference_mode():
            theirs, _ = self.problem.outputs(zeroed, index)
            ours, _ = self.problem.outputs(self.subject.model.eval(), index)
        regression = self.problem.regression
        spread = theirs - (0 if regression else theirs.mean(-1, keepdim=True))
        return {
            "largest": float((ours - theirs).abs().max()),
            "typical": float(spread.abs().mean()),
            "changed": None if regression else float((ours.argmax(-1) != theirs.argmax(-1)).float().mean()),
        }


def open_context(plan: DistillationPlan, folder: Path) -> Context:
    """Load the teacher and the data and remove the part; a ``UserError`` where they do not fit together."""
    teacher, removal = _load(plan, plan.model), Removal.parse(plan.remove)
    if not isinstance(teacher, TransformerModel):
        if not removal.attention:
            raise OptionError(
                f"'{plan.model}' is a recurrent translator, and {plan.remove} is not in it. Remove its attention "
                "(--remove attention)."
            )
        student, partition = without_attention(teacher.model, removal.by)
        train, dev = _data(plan, teacher)
        rnn_problem = RnnTranslating(teacher, train, dev, plan.beams)
        return Context(plan, folder, teacher, rnn_problem, rnn_problem.with_model(teacher, student), partition)
    check_forcing(teacher.model, plan.training)
    removed = remove(teacher, removal)
    train, dev = _data(plan, teacher)
    problem: Problem
    if not isinstance(teacher, Classifier):
        problem = Translating(teacher, train, dev, plan.beams)
    elif plan.beams > 1:
        raise OptionError(f"'{plan.model}' is a classifier and does not search. Leave beams at 1.")
    else:
        problem = Classifying(teacher, train, dev, plan.label_order)
    return Context(plan, folder, teacher, problem, removed.student, removed.partition)


def _load(plan: DistillationPlan, name: str) -> Any:
    from ...models.loading import load

    return load(name, revision=plan.revision if name == plan.model else None, device=plan.device)


def _data(plan: DistillationPlan, teacher: Model) -> tuple[Dataset, Dataset]:
    train, dev = plan.dataset(plan.train_split, plan.train_limit), plan.dataset(plan.dev_split, plan.dev_limit)
    for data in (train, dev):
        check_data(teacher, data, plan.label_order)
    return train, dev


def same_shapes(teacher: nn.Module, other: nn.Module, name: str) -> dict[str, torch.Tensor]:
    """The weights of another training of the same architecture."""
    own, theirs = dict(teacher.named_parameters()), dict(other.named_parameters())
    if {n: p.shape for n, p in own.items()} != {n: p.shape for n, p in theirs.items()}:
        raise ModelError(f"'{name}' is not another training of the teacher: its weights have other names or shapes.")
    return {n: p.detach().cpu() for n, p in theirs.items()}
