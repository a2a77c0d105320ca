"""The table of kinds of run, and the table of executors: places besides this machine where runs are executed.

The jobs of the kinds follow ``engine``. Executors are filled in by plugins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import plugins
from ..engine import Job
from ..errors import RunError
from ..plugins import Executor, RunKind
from .record import CARRIED, LOCAL, PRUNE, SWEEP

_PAGES = "headviz.ui.pages.runs"  # named as text: runs know no page
_ENTRIES = (
    RunKind(PRUNE, "Pruning", "one pruning algorithm on one model and task", "headviz.pruning.job:make"),
    RunKind(
        "finetune",
        "Fine-tuning",
        "fine-tune a base model on a task",
        "headviz.runs.jobs.finetune:make",
        draw=f"{_PAGES}.models:finetuned",
    ),
    RunKind(
        "score",
        "Scores of heads",
        "a head score over a sample, the examples shared out",
        "headviz.runs.jobs.score:make",
        draw=f"{_PAGES}.detail:show_heads",
    ),
    RunKind(
        "ablation",
        "Ablation",
        "switch every head off in turn and measure what it costs",
        "headviz.runs.jobs.ablate:make",
        draw=f"{_PAGES}.detail:show_heads",
    ),
    RunKind(
        "faster",
        "Faster models",
        "heads and neurons off until the model is so many times as fast",
        "headviz.runs.jobs.faster:make",
        draw=f"{_PAGES}.faster:detail",
        side_by_side=True,
    ),
)
RUNS: Mapping[str, RunKind] = plugins.Entries("runs", _ENTRIES)


def make_job(kind: str, spec: dict[str, Any]) -> Job:
    """The job of a run, with the plugins that its spec names; a spec that does not fit is a ``UserError``."""
    options = plugins.without(spec)
    if kind not in RUNS:
        raise RunError(plugins.unknown("kind of run", kind, RUNS))
    return plugins.function(RUNS[kind].make)(options)


def kind_title(kind: str) -> str:
    """What a kind of run is called; a sweep has children instead of a job, and an unknown kind its own name."""
    return "Sweep" if kind == SWEEP else RUNS[kind].title if kind in RUNS else kind


EXECUTORS: Mapping[str, Executor] = plugins.Entries("executors", ())


def executor_named(name: str) -> Executor:
    if name not in EXECUTORS:
        raise RunError(plugins.unknown("executor", name, (LOCAL, *EXECUTORS)))
    return EXECUTORS[name]


def check_executor(name: str) -> None:
    """Refuse an executor that is unknown or cannot be used now."""
    if name not in (LOCAL, CARRIED):
        plugins.function(executor_named(name).check)()
