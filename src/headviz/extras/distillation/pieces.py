"""The pieces of a distillation: the teacher with its iterates, and a student's training. ``job`` hands them out."""

from __future__ import annotations

import copy
import dataclasses
import math
import shutil
import time
from typing import Any

from torch import nn

from ...engine.job import Tools
from ...progress import Cancel, of_phase
from ...tasks import trained_on
from .conditional import FAR
from .context import ITERATES, Context
from .iterates import save_iterate
from .methods import COPY, LIKELIHOOD, METHODS, TEACHER, Method
from .options import TrainingOptions
from .plan import STUDENTS, WORK
from .students import train
from .teacher_updates import teacher_updates


def teacher(context: Context, tools: Tools) -> dict[str, Any]:
    """Measure the teacher, collect iterates where a student needs them, and compute the prior."""
    plan, partition = context.plan, context.partition
    tools.progress("evaluating", 0, 0)
    metrics = context.problem.measure(context.teacher, tools.cancel)
    notes = [partition.remark] if partition.remark else []
    if shared := trained_on(context.problem.train, context.problem.dev):
        notes.append(shared)
    own = teacher_updates(plan.model, plan.revision)
    if own is not None and own > plan.training.steps:
        notes.append(
            f"Students get {plan.training.steps:,} updates, the teacher had {own:,}. "
            "That favours students that start from its weights."
        )
    prior: dict[str, Any] | None = None
    if plan.needs_posterior:
        if plan.trainings is None:
            collect(context, tools)
        found = context.prior()
        notes += found.notes
        moved = found.moved
        if moved > FAR:  # only with a shrinkage that was given
            notes.append(
                f"The conditional mean is far from the copied weights ({moved:.2g} times their length): zero is "
                "far outside what the iterates show, so the covariance extrapolates. Copied weights will probably do "
                "better; more shrinkage (1 = diagonal) brings the mean nearer."
            )
        posterior = found.posterior
        prior = {"rank": posterior.rank, "iterates": posterior.count, "moved": moved}
        prior["shrinkage"] = posterior.shrinkage
        if found.chosen is not None and found.chosen.declined is not None:
            prior["declined"] = {"shrinkage": found.chosen.declined, "moved": found.chosen.moved}
    return {
        "metrics": {k: (float(v) if math.isfinite(v) else None) for k, v in metrics.items()},
        "constant": context.problem.constants,
        "digest": context.teacher.digest,
        "data": context.problem.digest,
        "parameters": sum(p.numel() for p in context.teacher.model.parameters()),
        "partition": {**partition.sizes, "exact": partition.exact, "difference": context.difference()},
        "prior": prior,
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

    onward = Method("further training", COPY, LIKELIHOOD)
    train(
        context.teacher,
        _Unmeasured(context.problem),
        onward,
        training,
        options.seed,
        folder=context.folder / WORK / ITERATES,
        at_step=keep,
        progress=of_phase(tools.progress, "collecting iterates"),
        cancel=tools.cancel,
    )


class _Unmeasured:
    """A problem that measures nothing: collecting iterates needs no metrics."""

    def __init__(self, problem: Any) -> None:
        self.problem = problem

    def __getattr__(self, name: str) -> Any:
        return getattr(self.problem, name)

    def measure(self, subject: Any, cancel: Cancel | None = None) -> dict[str, float]:
        return {}


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
    subject = dataclasses.replace(trained.subject)  # a new object, because the old one remembers an older digest
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
