"""The pieces of a distillation: the teacher with its iterates, and a student's training. ``job`` hands them out."""

from __future__ import annotations

import copy
import json
import math
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from ...engine import Tools
from ...errors import Cancelled, ModelError, OptionError
from ...evaluation.dispatch import check_data
from ...models.base import Model, TransformerModel
from ...models.classifier import Classifier
from ...models.hub import locate
from ...models.loading import load
from ...progress import of_phase
from ...pruning.finetuning import TRAIN_LIMIT, UPDATES
from ...tasks import trained_on
from .layer_removal import Partition, remove, zeroed_model
from .plan import (
    COPY,
    ITERATES,
    LIKELIHOOD,
    METHODS,
    STUDENTS,
    TEACHER,
    WORK,
    DistillationPlan,
    Method,
    TrainingOptions,
)
from .posterior import FAR, FileIterates, Iterates, MemoryIterates, Posterior, Prior, save_iterate, supported
from .problem import Classifying, Problem, RnnTranslating, Translating, check_forcing, without_attention
from .removal import Removal
from .students import train

if TYPE_CHECKING:
    from ...tasks import Dataset


def teacher(context: Context, tools: Tools) -> dict[str, Any]:
    """Measure the teacher, collect iterates where a student needs them, and compute the prior."""
    plan, partition = context.plan, context.partition
    tools.progress("evaluating", 0, 0)
    metrics = context.problem.measure(context.teacher, tools.cancel)
    notes = [partition.remark] if partition.remark else []
    if shared := trained_on(context.problem.train, context.problem.dev):
        notes.append(shared)
    updates = teacher_updates(plan.model, plan.revision)
    if updates is not None and updates > plan.training.steps:
        notes.append(
            f"Students get {plan.training.steps:,} updates, the teacher had {updates:,}. "
            "That favours students that start from its weights."
        )
    prior_record: dict[str, Any] | None = None
    if plan.needs_posterior:
        if plan.trainings is None:
            collect(context, tools)
        prior = context.prior()
        notes += prior.notes
        moved = prior.moved
        if moved > FAR:  # only with a shrinkage that was given
            notes.append(
                f"The conditional mean is far from the copied weights ({moved:.2g} times their length): zero is "
                "far outside what the iterates show, so the covariance extrapolates. Copied weights will probably do "
                "better; more shrinkage (1 = diagonal) brings the mean nearer."
            )
        posterior = prior.posterior
        prior_record = {
            "rank": posterior.rank,
            "iterates": posterior.count,
            "moved": moved,
            "shrinkage": posterior.shrinkage,
        }
        if prior.chosen is not None and prior.chosen.declined is not None:
            prior_record["declined"] = {"shrinkage": prior.chosen.declined, "moved": prior.chosen.moved}
    return {
        "metrics": {k: (float(v) if math.isfinite(v) else None) for k, v in metrics.items()},
        "constant": context.problem.constants,
        "digest": context.teacher.digest,
        "data": context.problem.digest,
        "parameters": sum(p.numel() for p in context.teacher.model.parameters()),
        "partition": {**partition.sizes, "exact": partition.exact, "difference": context.difference()},
        "prior": prior_record,
        "notes": notes,
    }


def collect(context: Context, tools: Tools) -> None:
    """Train a copy of the teacher further and keep its weights every ``gap`` steps."""
    options, paths = context.plan.iterates, context.iterate_paths
    if all(p.exists() for p in paths):
        return
    steps = options.count * options.gap
    training = TrainingOptions(
        steps=steps,
        batch=options.batch,
        learning_rate=options.learning_rate,
        every=options.gap,  # a checkpoint with every iterate
        warmup=0.0,
        schedule="constant",
        forcing=context.plan.training.forcing,
    )

    def keep(step: int, model: nn.Module) -> None:
        if step % options.gap == 0:
            save_iterate(model, paths[step // options.gap - 1])

    train(
        context.teacher,
        _unmeasured(context.problem),
        Method("further training", COPY, LIKELIHOOD),
        training,
        options.seed,
        folder=context.folder / WORK / ITERATES,
        at_step=keep,
        progress=of_phase(tools.progress, "collecting iterates"),
        cancel=tools.cancel,
    )


def _unmeasured(problem: Problem) -> Any:
    """The same problem with no metrics: collecting iterates needs none."""
    unmeasured: Any = copy.copy(problem)
    unmeasured.measure = lambda subject, cancel: {}
    return unmeasured


def student(context: Context, piece: str, shrinkage: float | None, tools: Tools) -> dict[str, Any]:
    """Train one student; a training that was stopped goes on from its last checkpoint. ``shrinkage`` is that of the
    teacher's piece: all students of a distillation have it."""
    plan = context.plan
    init, seed = plan.piece(piece)
    method = METHODS[init]
    start = time.perf_counter()
    trained = train(
        context.subject,
        context.problem,
        method,
        plan.training,
        seed,
        prior=context.prior(shrinkage) if method.needs_posterior else None,
        teacher=copy.deepcopy(context.teacher.model) if method.objective == TEACHER else None,
        folder=context.folder / WORK / piece,
        progress=of_phase(tools.progress, f"training {piece}"),
        cancel=tools.cancel,
    )
    folder = context.folder / STUDENTS / piece
    shutil.rmtree(folder, ignore_errors=True)
    subject = replace(trained.subject)  # a new object, because the old one remembers an older digest
    subject.save(folder)
    return {
        "init": init,
        "seed": seed,
        "curve": [p.to_dict() for p in trained.curve],
        "metrics": trained.metrics,
        "parameters": sum(p.numel() for p in subject.model.parameters()),
        "digest": subject.digest,
        "seconds": trained.curve[-1].seconds,
        "wall_seconds": round(time.perf_counter() - start, 3),
        "model": f"{STUDENTS}/{piece}",
    }


# where a model's folder says how many updates it had: headviz's report, transformers' Trainer, the shipped models
FILES = {"training-report.json": "updates", "trainer_state.json": "global_step", "recipe.json": "steps"}


def teacher_updates(model: str | Path, revision: str | None = None) -> int | None:
    """The teacher's updates, where its folder names them.

    >>> teacher_updates("demo"), teacher_updates("demo-translation")
    (20500, 1000)
    """
    folder = locate(model, revision)
    for name, key in FILES.items():
        file = folder / name
        if not file.is_file():
            continue
        try:
            updates = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ModelError(f"{name} of '{model}' is not JSON: {error}. Remove or correct it.") from error
        if isinstance(updates, dict) and isinstance(updates.get(key), int) and updates[key] > 0:
            return int(updates[key])
    return None


SAMPLE = 64  # examples on which the student is compared with the zeroed teacher


@dataclass(eq=False)
class Context:
    """Loaded models and data. ``subject`` is the student with the teacher's own weights."""

    plan: DistillationPlan
    folder: Path
    teacher: Any
    problem: Problem
    subject: Any
    partition: Partition
    _prior: Prior | None = None  # the one that was computed last

    @property
    def iterate_paths(self) -> list[Path]:
        return [self.folder / ITERATES / f"{k:03d}.safetensors" for k in range(self.plan.iterates.count)]

    def seconds(self) -> float:
        """Seconds of a student's whole training, from the first updates of one that learns from the labels."""
        times: list[float] = []

        def enough() -> bool:
            return len(times) > 2 and times[-1] - times[0] > TRAIN_LIMIT

        options = replace(self.plan.training, steps=UPDATES + 2, every=UPDATES + 2)
        with suppress(Cancelled):
            train(
                self.subject,
                _unmeasured(self.problem),
                Method("timing", COPY, LIKELIHOOD),
                options,
                progress=lambda done, total: times.append(time.perf_counter()),
                cancel=enough,
            )
        first = min(2, len(times) - 2)  # those before warm up
        return (times[-1] - times[first]) / (len(times) - 1 - first) * self.plan.training.steps

    def prior(self, shrinkage: float | None = None) -> Prior:
        """The student's prior. The piece ``teacher`` must be done, because it collects the iterates.

        ``shrinkage`` was chosen in that piece, by whatever version; None = it is chosen now.
        """
        if self._prior is None or shrinkage not in (None, self._prior.posterior.shrinkage):
            self._prior = self._computed(shrinkage)
        return self._prior

    def _computed(self, shrinkage: float | None) -> Prior:
        mean, iterates, options = dict(self.teacher.model.named_parameters()), self._iterates(), self.plan.posterior
        if options.shrinkage is None:
            options = replace(options, shrinkage=shrinkage)
        if options.shrinkage is None and options.covariance != "diagonal":
            return supported(mean, iterates, options, self.partition, independent=self.plan.trainings is not None)
        return Prior(Posterior(mean, iterates, options), self.partition)

    def _iterates(self) -> Iterates:
        if self.plan.trainings is None:
            return FileIterates(self.iterate_paths)
        folders = self.plan.trainings
        return MemoryIterates([same_shapes(self.teacher.model, _load(self.plan, f).model, f) for f in folders])

    def difference(self) -> dict[str, float | None]:
        """How much the student with copied weights differs from the teacher with v2 at zero, on training examples.

        ``largest`` = the largest difference of two logits; ``typical`` = the mean distance of the teacher's logits
        from their mean; ``changed`` = the share of predictions that differ, None where no answer decides.
        """
        index = list(range(min(SAMPLE, len(self.problem.lengths))))
        zeroed = zeroed_model(self.teacher.model, self.partition).eval()
        with torch.inference_mode():
            logits, _ = self.problem.outputs(zeroed, index)
            copied, _ = self.problem.outputs(self.subject.model.eval(), index)
        decides = self.problem.rows.decides
        spread = logits - (logits.mean(-1, keepdim=True) if decides else 0)
        return {
            "largest": float((copied - logits)[logits.isfinite()].abs().max()),
            "typical": float(spread[logits.isfinite()].abs().mean()),
            "changed": float((copied.argmax(-1) != logits.argmax(-1)).float().mean()) if decides else None,
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
    revision = plan.revision if name == plan.model else None
    return load(name, revision=revision, device=plan.device, job=plan.job)


def _data(plan: DistillationPlan, teacher: Model) -> tuple[Dataset, Dataset]:
    train, dev = plan.dataset(plan.train_split, plan.train_limit), plan.dataset(plan.dev_split, plan.dev_limit)
    for data in (train, dev):
        check_data(teacher, data, plan.label_order)
    return train, dev


def same_shapes(teacher: nn.Module, other: nn.Module, name: str) -> dict[str, torch.Tensor]:
    """The weights of another training of the same architecture."""
    weights = dict(other.named_parameters())
    if {n: p.shape for n, p in teacher.named_parameters()} != {n: p.shape for n, p in weights.items()}:
        raise ModelError(f"'{name}' is not another training of the teacher: its weights have other names or shapes.")
    return {n: p.detach().cpu() for n, p in weights.items()}
