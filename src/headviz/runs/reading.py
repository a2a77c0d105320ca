"""What readers see of a run: its state, its steps so far, its progress and log; and the table of a sweep."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from ..errors import RunError, UserError
from ..pruning import baselines
from ..pruning.state import State
from ..results import Shown
from .files import RunFiles, runs_home
from .process import BUSY, monotonic, place
from .queue import look, look_at_all
from .record import ACTIVE, BROKEN, CARRIED, PRUNE, QUEUED, SWEEP, RunRecord, broken, of_sweep
from .registry import Registry

QUIET = 10.0  # seconds without a report after which a worker is called unresponsive


_OF_RECORD = (
    "id kind title pid owner version executor device threads parent attempt created started ended archived".split()
)


@dataclass(frozen=True)
class WorkerReport:
    """A worker's last report. None = not known (yet)."""

    phase: str | None = None
    done: int = 0
    total: int = 0  # of the phase; 0 = not known
    rate: float | None = None  # of the phase, per second
    phase_remaining: float | None = None  # seconds
    step_seconds: float | None = None  # mean over this attempt's steps
    remaining: float | None = None  # seconds to the end of the run
    cpu_percent: float | None = None  # 100 = one core
    others_percent: float | None = None  # what other programs use; 100 = the whole machine
    memory: int | None = None  # bytes
    silent: float | None = None  # seconds since the report
    cancelling: bool = False  # asked to stop

    @property
    def responsive(self) -> bool:
        return self.silent is None or self.silent < QUIET

    @property
    def processor(self) -> str:
        """What the run gets of the processor, and what others take where that slows it down; empty if not known."""
        if self.cpu_percent is None:
            return ""
        of_run = f"processor {self.cpu_percent:.0f} % of a core"
        if (self.others_percent or 0.0) < BUSY:
            return of_run
        return f"{of_run}, the machine is busy: other programs take {self.others_percent:.0f} % of it"


@dataclass(frozen=True)
class RunView(Shown):
    """A run as it is now. ``steps`` are those of pruned models, ``baseline`` those of full models.

    In a pruning run each has a ``role``; a pruned one also says which full model it is compared with (``against``)
    and its ``change`` (see ``baselines``).
    """

    record: RunRecord
    state: str
    steps: tuple[dict[str, Any], ...]
    baseline: tuple[dict[str, Any], ...]
    progress: WorkerReport
    log: tuple[str, ...]
    outcome: dict[str, Any]
    children: tuple[RunView, ...] = ()
    position: int | None = None  # in the queue, 1 = next

    @property
    def seconds(self) -> float | None:
        """Duration of the last attempt, so far or in all."""
        record = self.record
        if record.started is None:
            return None
        return max(0.0, (record.ended or time.time()) - record.started)

    def results(self) -> list[Row]:
        """The table of a sweep so far: one row per sparsity and metric."""
        return results(self.children)

    @property
    def count(self) -> tuple[int, int]:
        """Steps so far and in all (0 = not known). Full models count, except in pruning runs."""
        expected = self.record.expected
        if self.record.kind != PRUNE:
            return len(self.steps) + len(self.baseline), expected
        full = 1 + len(self.record.spec.get("seeds") or [0])
        return len(self.steps), max(0, expected - full)

    @property
    def share_done(self) -> float:
        """The share of ``count`` that is done, for a progress bar."""
        done, expected = self.count
        return min(1.0, done / max(1, expected))

    def to_dict(self) -> dict[str, Any]:
        """As ``headviz run show --json`` prints it."""
        record, spec = self.record, self.record.spec
        out: dict[str, Any] = {name: getattr(record, name) for name in _OF_RECORD}
        out |= {name: spec.get(name) for name in ("model", "task", "algorithm", "score", "seeds")}
        out |= {
            "state": self.state,
            "steps": list(self.steps),
            "baseline": list(self.baseline),
            "expected": record.expected or None,
            "count": list(self.count),
            "error": record.error or None,
            "code": record.code or None,
            "seconds": self.seconds,
            "position": self.position,
            "progress": {**self.progress.__dict__, "responsive": self.progress.responsive},
            "spec": spec,
            "outcome": self.outcome or None,
            "log": list(self.log),
        }
        if record.kind == SWEEP:
            out["children"] = [c.to_dict() for c in self.children]
            out["results"] = [r.__dict__ for r in self.results()]
        return out


def show(run_id: str, *, log_lines: int = 30) -> RunView:
    """One run, with its steps and the end of its log.

    >>> from headviz import plugins
    >>> from headviz.runs import reading, service
    >>> plugins.load(["examples/my_run.py"])
    >>> run = service.wait_for(service.start("dice", {"rolls": 2}).id)
    >>> result = reading.show(run.id)
    >>> result.state, result.share_done
    ('done', 1.0)
    """
    registry = Registry()
    record = look(registry, run_id)
    children = registry.records(parent=record.id) if record.kind == SWEEP else []
    view = _view(registry, record, log_lines, tuple(_view(registry, look(registry, c.id), 0) for c in children))
    if view.state == BROKEN and not view.children:
        raise RunError(view.record.error)
    return view


def state_of(record: RunRecord, root: Path | None = None) -> State | None:
    """The state of a pruning run so far; None before its first step. Damaged checkpoints are skipped."""
    raw = RunFiles(record.id, root).checkpoints.newest()
    return State.from_bytes(raw) if raw else None


def overview(*, archived: bool | None = False) -> list[RunView]:
    """Every run, newest first, without logs; a sweep's runs are its children. It also starts queued runs.

    >>> from headviz import plugins
    >>> from headviz.runs import reading, service
    >>> plugins.load(["examples/my_run.py"])
    >>> run = service.wait_for(service.start("dice", {"rolls": 1}).id)
    >>> reading.overview()[0].record.id == run.id
    True
    """
    registry = Registry()
    records = look_at_all(registry, archived)
    children: dict[str, list[RunRecord]] = {}
    for record in records:
        if record.parent:
            children.setdefault(record.parent, []).append(record)
    return [
        _view(registry, r, 0, tuple(_view(registry, c, 0) for c in children.get(r.id, [])))
        for r in reversed(records)
        if not r.parent
    ]


def _view(registry: Registry, record: RunRecord, log_lines: int, children: tuple[RunView, ...] = ()) -> RunView:
    try:
        stored = registry.steps(record.id)
        if not all(map(_is_step, stored)):
            raise ValueError("it has no metrics")
    except (ValueError, RecursionError) as error:
        record = broken(record.id, record.owner, record.parent, f"a step: {error}")
    if record.state == BROKEN:
        return RunView(record, BROKEN, (), (), WorkerReport(), (), {})
    files = RunFiles(record.id, registry.folder)
    steps = [s for s in stored if s.get("step") != 0]
    full = [s for s in stored if s.get("step") == 0]
    if record.kind == PRUNE:
        full, steps = baselines.named(record.spec, full, steps)
    state = record.state
    if record.kind == SWEEP and record.executor == CARRIED:
        state = of_sweep([c.state for c in children])
    return RunView(
        record=record,
        state=state,
        steps=tuple(steps),
        baseline=tuple(full),
        progress=read_progress(record, files) if record.state in ACTIVE else WorkerReport(),
        log=tuple(files.log_tail(log_lines)) if log_lines else (),
        outcome=files.read_json(files.outcome) if record.state == "done" else {},
        children=children,
        position=_position(registry, record),
    )


def _is_step(step: Any) -> bool:
    """Whether a step has metrics, and numbers where numbers belong."""
    if not isinstance(step, dict) or not isinstance(step.get("metrics"), dict):
        return False
    numbers = [*step["metrics"].values(), step.get("step"), step.get("sparsity"), step.get("seed")]
    return all(isinstance(number, int | float | None) for number in numbers)


def read_progress(record: RunRecord, files: RunFiles) -> WorkerReport:
    """The worker's last report; reports of earlier attempts do not count."""
    content = files.read_json(files.progress)
    cancelling = files.cancel_flag.exists()
    if content.get("attempt") != record.attempt:
        return WorkerReport(phase="starting", cancelling=cancelling)
    if content.get("place") == place():
        silent = monotonic() - content["beat"]
    else:
        silent = max(0.0, time.time() - content["time"])
    names = [field.name for field in fields(WorkerReport) if field.name not in ("silent", "cancelling")]
    report: dict[str, Any] = {name: content[name] for name in names if content.get(name) is not None}
    return WorkerReport(**report, silent=silent, cancelling=cancelling)


def _position(registry: Registry, record: RunRecord) -> int | None:
    if record.state != QUEUED or record.executor == CARRIED:
        return None
    waiting: Sequence[RunRecord] = [
        r
        for r in registry.records(states=[QUEUED])
        if r.slot == record.slot and r.executor != CARRIED and not r.claim  # with a claim it is just starting
    ]
    return next((i for i, r in enumerate(waiting, 1) if r.id == record.id), None)


def is_path(name: str) -> bool:
    """Whether a model name means a folder rather than a hub id."""
    return name.startswith(("/", "~", ".")) or "\\" in name or name.count("/") > 1 or os.path.isdir(name)


OF_ANYTHING = ("model", "results", "final", "best", "output", "out")  # names of folders that do not tell their content


def maker(name: str) -> RunRecord | None:
    """The run that made a model; None for other models."""
    folder = Path(name)
    if folder.is_absolute() and folder.is_relative_to(runs_home()) and folder != runs_home():
        with suppress(UserError):
            return Registry().get(folder.relative_to(runs_home()).parts[0])
    return None


def model_title(name: str) -> str:
    """What a model is called in lists and titles: the title of the run that made it, else its name, or its folder's."""
    if (run := maker(name)) is not None:
        return run.title
    if not is_path(name):
        return name[-60:]
    *above, last = name.rstrip("/\\").replace("\\", "/").split("/")
    telling = [part for part in above if part.strip(".~") and part not in OF_ANYTHING]
    if telling and last in OF_ANYTHING:
        last = telling[-1]
    elif telling and last.startswith("checkpoint-"):
        last = f"{telling[-1]}, {last}"
    return last[-60:]


def model_and_task(model: str, task: str) -> str:
    """A model and the task that a run is about; one that its title names already is not named again."""
    title = model_title(model)
    return title if title == task or not task or f" on {task}" in title else f"{title} on {task}"


@dataclass(frozen=True)
class Row:
    """One line of a sweep's table: a sparsity of one task, algorithm and score, over its seeds."""

    task: str
    algorithm: str
    score: str
    sparsity: float
    metric: str
    mean: float | None
    sd: float | None  # None with fewer than two seeds
    seeds: int
    missing: int  # seeds without this step (yet)
    model: str = baselines.PRUNED  # at 0 % GIVEN or RETRAINED


def results(children: Sequence[RunView]) -> list[Row]:
    """The table of the runs of a sweep so far; a metric that is undefined for a seed counts as missing."""
    rows = []
    for (task, algorithm, score), runs in by_combination(children).items():
        by_step: dict[tuple[float, str], list[float]] = {}
        seeds = sum(len(r.record.spec.get("seeds") or [0]) for r in runs)
        for run in runs:
            for step in (*full_models(run), *run.steps):
                for name, value in step["metrics"].items():
                    values = by_step.setdefault((round(step["sparsity"], 9), name), [])
                    if value is not None and math.isfinite(value):
                        values.append(value)
        full = baselines.against(runs[0].record.spec, runs[0].baseline)
        for (sparsity, name), values in sorted(by_step.items()):
            rows.append(
                Row(
                    task,
                    algorithm,
                    score,
                    sparsity,
                    name,
                    mean(values) if values else None,
                    stdev(values) if len(values) > 1 else None,
                    len(values),
                    max(0, seeds - len(values)),
                    full if sparsity == 0 else baselines.PRUNED,
                )
            )
    return rows


def combination(run: RunView) -> tuple[str, str, str]:
    """Task, algorithm and score of a run: the ``Row`` that it is counted in."""
    task, algorithm, score = (str(run.record.spec.get(n) or run.record.kind) for n in ("task", "algorithm", "score"))
    return task, algorithm, score


def by_combination(children: Sequence[RunView]) -> dict[tuple[str, str, str], list[RunView]]:
    """The runs of a sweep by task, algorithm and score."""
    groups: dict[tuple[str, str, str], list[RunView]] = {}
    for child in children:
        groups.setdefault(combination(child), []).append(child)
    return groups


def full_models(run: RunView) -> list[Mapping[str, Any]]:
    """The full models that a run's steps are compared with, one per seed: retrained ones, else θ* for each."""
    full_role = baselines.against(run.record.spec, run.baseline)
    full = [s for s in baselines.distinct(run.baseline) if baselines.role(s) == full_role]
    return full if full_role == baselines.RETRAINED else full * len(run.record.spec.get("seeds") or [0])
