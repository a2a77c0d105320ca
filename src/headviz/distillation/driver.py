"""The pieces of a distillation, done one after the other or on several machines. ``run_state`` has the protocol."""

from __future__ import annotations

import copy
import dataclasses
import math
import shutil
import time
from pathlib import Path
from typing import Any

from torch import nn

from ..errors import RunError, require_kind
from ..progress import Cancel, PhaseProgress, of_phase
from ..storage.paths import outside_path
from ..storage.writing import DiskError, disk_errors
from ..tasks import trained_on
from .conditional import FAR
from .context import ITERATES, Context, open_context
from .iterates import save_iterate
from .methods import COPY, LIKELIHOOD, METHODS, TEACHER, Method
from .options import TrainingOptions
from .plan import STUDENTS, DistillationPlan
from .plan import TEACHER as TEACHER_PIECE
from .run_state import FILE, State, absorb, begin, load, outcome, ready, save
from .students import train
from .teacher_updates import teacher_updates

WORK = "training"


def perform(
    context: Context, piece: str, progress: PhaseProgress | None = None, cancel: Cancel | None = None
) -> dict[str, Any]:
    """Do one piece and give its result as JSON. Models and iterates go to the context's folder.

    A training that is stopped goes on from its last checkpoint when the piece is done again.
    """
    if piece == TEACHER_PIECE:
        return _teacher(context, progress, cancel)
    if piece not in context.plan.pieces:
        raise RunError(f"This distillation has no piece '{piece}'.")
    return _student(context, piece, progress, cancel)


def _teacher(context: Context, progress: PhaseProgress | None, cancel: Cancel | None) -> dict[str, Any]:
    plan, partition = context.plan, context.partition
    if progress is not None:
        progress("evaluating", 0, 0)
    metrics = context.problem.measure(context.teacher, cancel)
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
            collect(context, progress, cancel)
        found = context.prior
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


def collect(context: Context, progress: PhaseProgress | None = None, cancel: Cancel | None = None) -> None:
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
        progress=of_phase(progress, "collecting iterates"),
        cancel=cancel,
    )


class _Unmeasured:
    """A problem that measures nothing: collecting iterates needs no metrics."""

    def __init__(self, problem: Any) -> None:
        self.problem = problem

    def __getattr__(self, name: str) -> Any:
        return getattr(self.problem, name)

    def measure(self, subject: Any, cancel: Cancel | None = None) -> dict[str, float]:
        return {}


def _student(context: Context, piece: str, progress: PhaseProgress | None, cancel: Cancel | None) -> dict[str, Any]:
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
        prior=context.prior if method.needs_posterior else None,
        teacher=copy.deepcopy(context.teacher.model) if method.objective == TEACHER else None,
        folder=context.folder / WORK / piece,
        progress=of_phase(progress, f"training {piece}"),
        cancel=cancel,
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


def distil(
    plan: DistillationPlan, folder: str | Path, progress: PhaseProgress | None = None, cancel: Cancel | None = None
) -> dict[str, Any]:
    """Carry out a plan in this process, or continue it; the result is its outcome as JSON.

    The state is written after every piece. Nothing is written before plan, model and data have been checked.
    At the end the folder itself holds the model of the first initialisation and seed; the others lie below it.

    >>> import headviz, tempfile
    >>> few = {"train_limit": 16, "dev_limit": 16, "training": {"steps": 1, "every": 1}}
    >>> plan = headviz.DistillationPlan("demo", "demo", "layers:3,4", inits=("copy",), **few)
    >>> outcome = headviz.distil(plan, tempfile.mkdtemp() + "/student")
    >>> outcome["remove"], len(outcome["students"])
    ('layers:3,4', 1)
    """
    require_kind(plan, DistillationPlan, "plan = headviz.DistillationPlan(model, task, remove)")
    place = outside_path(folder, "--out")
    state = load(plan, place)
    if state is None and place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise RunError(f"'{place}' exists and is not an empty folder. Choose another name or remove it first.")
    state = begin(plan) if state is None else state
    if ready(plan, state):
        context = open_context(plan, place)
        _same(context, state)
        context = _as_begun(context, state)
        new = not (place / FILE).exists()
        try:
            with disk_errors(place):
                save(state, place)  # from here on the folder is this distillation's
                while ready(plan, state):
                    piece = ready(plan, state)[0]
                    state = absorb(state, piece, perform(context, piece, progress, cancel))
                    save(state, place)
        except DiskError as error:
            if new and not state["students"]:
                shutil.rmtree(place, ignore_errors=True)  # it holds no student to go on from
                raise error.reworded(f"{error} Nothing was kept.") from error
            raise error.reworded(f"{error} What is finished stays: the same command goes on from there.") from error
    tidy(place)
    state = _settle(plan, state, place)
    return outcome(plan, state)


def _settle(plan: DistillationPlan, state: State, place: Path) -> State:
    """Move the first student's model to the top, so that the folder itself can be loaded."""
    piece = plan.pieces[0]
    first = state["students"][piece]
    folder = place / STUDENTS / piece
    if first["model"] == ".":
        return state
    if folder.exists():  # else the model was moved before, and only the state was not saved
        for path in sorted(folder.iterdir()):
            path.replace(place / path.name)
        folder.rmdir()
        if not any(folder.parent.iterdir()):
            folder.parent.rmdir()
    state = absorb(state, piece, {**first, "model": "."})
    save(state, place)
    return state


def _same(context: Context, state: State) -> None:
    """Refuse to continue with other weights or data than the state was started with."""
    teacher = state["teacher"]
    if teacher is None:
        return
    for what, now, then in (
        ("model", context.teacher.digest, teacher["digest"]),
        ("data", context.problem.digest, teacher["data"]),
    ):
        if now != then:
            raise RunError(
                f"The {what} has changed since this distillation was started. Start a new one in another folder.",
                code="source-changed",
                resumable=False,
            )


def _as_begun(context: Context, state: State) -> Context:
    """All students of a distillation have the shrinkage that was chosen with its teacher, by whatever version."""
    prior = None if state["teacher"] is None else state["teacher"]["prior"]
    return context if prior is None else dataclasses.replace(context, shrinkage=prior.get("shrinkage"))


def tidy(folder: Path) -> None:
    """Delete what only an unfinished distillation needs: checkpoints and iterates."""
    for name in (WORK, ITERATES):
        shutil.rmtree(folder / name, ignore_errors=True)
