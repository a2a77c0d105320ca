"""The table of a sweep: each sparsity of a task, algorithm and score, over the seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any, Protocol

from . import baselines
from .record import RunRecord


class SweepRun(Protocol):
    """What the table reads of a run (``reading.RunView``)."""

    @property
    def record(self) -> RunRecord: ...

    @property
    def steps(self) -> Sequence[Mapping[str, Any]]: ...

    @property
    def baseline(self) -> Sequence[Mapping[str, Any]]: ...


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


def results(children: Sequence[SweepRun]) -> list[Row]:
    """The table of the runs of a sweep so far; a metric that is undefined for a seed counts as missing."""
    groups: dict[tuple[str, str, str], list[SweepRun]] = {}
    for child in children:
        groups.setdefault(combination(child), []).append(child)
    rows = []
    for (task, algorithm, score), runs in groups.items():
        found: dict[tuple[float, str], list[float]] = {}
        seeds = sum(len(r.record.spec.get("seeds") or [0]) for r in runs)
        for run in runs:
            for step in (*full_models(run), *run.steps):
                for name, value in step["metrics"].items():
                    values = found.setdefault((round(step["sparsity"], 9), name), [])
                    if value is not None and math.isfinite(value):
                        values.append(value)
        full = baselines.against(runs[0].record.spec, runs[0].baseline)
        for (sparsity, name), values in sorted(found.items()):
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


def combination(run: SweepRun) -> tuple[str, str, str]:
    """Task, algorithm and score of a run: the ``Row`` that it is counted in."""
    task, algorithm, score = (str(run.record.spec.get(n) or run.record.kind) for n in ("task", "algorithm", "score"))
    return task, algorithm, score


def full_models(run: SweepRun) -> list[Mapping[str, Any]]:
    """The full models that a run's steps are compared with, one per seed: retrained ones, else θ* for each."""
    which = baselines.against(run.record.spec, run.baseline)
    found = [s for s in baselines.distinct(run.baseline) if baselines.role(s) == which]
    return found if which == baselines.RETRAINED else found * len(run.record.spec.get("seeds") or [0])
