"""What a run can be: one entry per kind. Their jobs follow ``engine.job``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import plugins
from ..engine.job import Job
from ..errors import RunError
from ..plugins import RunKind
from .record import SWEEP

_ENTRIES = (
    RunKind("prune", "Pruning", "one pruning algorithm on one model and task", "headviz.pruning.job:make"),
    RunKind("finetune", "Fine-tuning", "fine-tune a base model on a task", "headviz.runs.jobs.finetune:make"),
    RunKind(
        "score",
        "Scores of heads",
        "a head score over a sample, the examples shared out",
        "headviz.runs.jobs.score:make",
    ),
    RunKind(
        "ablation",
        "Ablation",
        "switch every head off in turn and measure what it costs",
        "headviz.runs.jobs.ablate:make",
    ),
    RunKind(
        "faster",
        "Faster models",
        "heads and neurons off until the model is so many times as fast",
        "headviz.runs.jobs.faster:make",
        side_by_side=True,
    ),
)
RUNS: Mapping[str, RunKind] = plugins.Entries("runs", _ENTRIES)


def make_job(kind: str, spec: dict[str, Any]) -> Job:
    """The job of a run, with the plugins that its spec names; a spec that does not fit is a ``UserError``."""
    options = plugins.without(spec)
    if kind not in RUNS:
        raise RunError(plugins.unknown("kind of run", kind, RUNS))
    job: Job = plugins.function(RUNS[kind].make)(options)
    return job


def kind_title(kind: str) -> str:
    """What a kind of run is called; a sweep has children instead of a job, and an unknown kind its own name."""
    return "Sweep" if kind == SWEEP else RUNS[kind].title if kind in RUNS else kind
