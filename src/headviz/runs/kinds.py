"""What a run can be: one line per kind. The jobs of all kinds follow ``protocol``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from .. import plugins
from ..errors import RunError, unknown_choice
from .protocol import RunJob
from .record import SWEEP


@dataclass(frozen=True)
class Kind:
    """One line of the table. ``place`` is ``module:function`` below headviz.runs.jobs, imported when needed."""

    place: str
    title: str
    about: str


KINDS: dict[str, Kind] = {
    "prune": Kind("prune:make", "Pruning", "one pruning algorithm on one model and task"),
    "finetune": Kind("finetune:make", "Fine-tuning", "fine-tune a base model on a task"),
    "score": Kind("score:make", "Scores of heads", "a head score over a sample, the examples shared out"),
    "ablation": Kind("ablate:make", "Ablation", "switch every head off in turn and measure what it costs"),
    "faster": Kind("faster:make", "Faster models", "heads and neurons off until the model is so many times as fast"),
    "distill": Kind(
        "distill:make", "Distillation", "remove a part and train students in its place, from several starts"
    ),
    "rehearsal": Kind(
        "rehearsal:make", "Rehearsal", "random numbers only: shows that runs work here and what they cost"
    ),
}


def make_job(kind: str, spec: dict[str, Any]) -> RunJob:
    """The job of a run, with the plugins that its spec names; a spec that does not fit is a ``UserError``."""
    if kind not in KINDS:
        raise RunError(unknown_choice("kind of run", kind, KINDS))
    module, _, name = KINDS[kind].place.partition(":")
    make: Callable[[dict[str, Any]], RunJob] = getattr(import_module(f".jobs.{module}", __package__), name)
    return make(plugins.without(spec))


def kind_title(kind: str) -> str:
    """What a kind of run is called; a sweep has children instead of a job, and an unknown kind its own name."""
    return "Sweep" if kind == SWEEP else KINDS[kind].title if kind in KINDS else kind
