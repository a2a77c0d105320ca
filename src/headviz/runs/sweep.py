"""Sweeps: tasks × algorithms × scores × seeds, one run for each combination under a common parent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapreplace
from itertools import product
from typing import TYPE_CHECKING, Any

from ..errors import OptionError
from ..progress import Cancel, Progress, tracked
from ..pruning.algorithms import ALGORITHMS
from ..pruning.plan import PruningPlan
from .files import RunFiles
from .kinds import check_executor
from .prepare import estimate, total
from .queue import cards, check_runs_at_once, dispatch, runs_at_once, spread
from .record import CARRIED, LOCAL, SWEEP, RunRecord
from .registry import Registry
from .service import new_record

if TYPE_CHECKING:
    from .prepare import Amount, Prepared

LIMIT = 1000  # runs in a sweep


@dataclass(frozen=True)
class Member:
    """One run of a sweep that is not recorded yet."""

    kind: str
    spec: Mapping[str, Any]
    title: str
    device: str = "cpu"


def expand(
    base: Mapping[str, Any],
    tasks: Sequence[str],
    algorithms: Sequence[str],
    scores: Sequence[str],
    seeds: Sequence[int],
) -> list[PruningPlan]:
    """One plan for each combination. ``{task}`` in ``model``, ``base`` or ``data`` stands for the task's name.

    An algorithm that fixes its own score is run with that one only.
    """
    for name, values in (("task", tasks), ("algorithm", algorithms), ("score", scores), ("seed", seeds)):
        if not values:
            raise OptionError(f"A sweep needs at least one {name}.")
        if len(set(values)) < len(values):
            raise OptionError(f"A sweep takes each {name} once; {', '.join(map(str, values))} repeats one.")
    combinations = [
        (task, algorithm, score, seed)
        for task, algorithm in product(tasks, algorithms)
        for score, seed in product(_scores_of(algorithm, scores), seeds)
    ]
    if len(combinations) > LIMIT:
        raise OptionError(f"This sweep has {len(combinations):,} runs; at most {LIMIT:,} are allowed. Split it.")
    plans = []
    for task, algorithm, score, seed in combinations:
        options = {**base, "task": task, "algorithm": algorithm, "score": score, "seeds": (seed,)}
        for name in ("model", "base", "data"):
            if isinstance(options.get(name), str):
                options[name] = options[name].replace("{task}", task)
        plans.append(PruningPlan.from_options(options))
    return plans


def _scores_of(algorithm: str, scores: Sequence[str]) -> Sequence[str]:
    """The scores for an algorithm: its own where it fixes one, else all that were asked for."""
    entry = ALGORITHMS.get(algorithm)
    return (entry.only_score,) if entry is not None and entry.only_score else scores


@dataclass(frozen=True)
class SweepPlan:
    """What a sweep would do. Seconds are estimates."""

    runs: int
    amount: Amount
    serial_seconds: float  # one run after the other
    seconds: float  # with as many at once as this machine or cluster takes
    at_once: int

    def to_dict(self) -> dict[str, Any]:
        return {
            "runs": self.runs,
            "finetunings": self.amount.finetunings,
            "scorings": self.amount.scorings,
            "evaluations": self.amount.evaluations,
            "serial_seconds": self.serial_seconds,
            "seconds": self.seconds,
            "at_once": self.at_once,
        }


def plan_of(
    prepared: Sequence[Prepared],
    threads: int,
    workers: int | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> SweepPlan:
    """Count the work and, from a short calibration per model and score, estimate its time.

    ``workers``: as many runs at once; by default what this machine allows.
    """
    amount = sum((p.amount for p in prepared[1:]), start=prepared[0].amount)
    at_once = min(len(prepared), workers or runs_at_once(device := prepared[0].device) * cards(device))
    measured: dict[tuple[Any, ...], Any] = {}
    seconds = []
    for p in tracked(prepared, progress, cancel):
        key = (id(p.context), p.spec["score"], bool(p.amount.finetunings), str(p.spec["finetune"]))
        if key not in measured:
            measured[key] = estimate(p, threads, cancel)
        cost = measured[key]
        seconds.append(total(p.amount, cost.scoring, cost.finetuning, cost.evaluation))
    return SweepPlan(len(prepared), amount, sum(seconds), _side_by_side(seconds, at_once), at_once)


def _side_by_side(seconds: Sequence[float], at_once: int) -> float:
    """Seconds until all runs are done, each started in turn as soon as a place is free."""
    ends = [0.0] * at_once  # of the last run in each place, the earliest first
    for s in seconds:
        heapreplace(ends, ends[0] + s)
    return max(ends)


def title_for(tasks: Sequence[str], algorithms: Sequence[str], scores: Sequence[str], seeds: Sequence[int]) -> str:
    """What a sweep is called: which scores it sets against each other, on what."""
    against = " against ".join(scores) if len(scores) <= 3 else f"{scores[0]} against {len(scores) - 1} other scores"
    title = f"{' and '.join(algorithms)}: {against}, {', '.join(tasks[:3])}"
    return title + (f", {len(seeds)} seeds" if len(seeds) > 1 else "")


def start_sweep(
    members: Sequence[Member],
    *,
    title: str,
    spec: Mapping[str, Any] | None = None,
    owner: str | None = None,
    executor: str = LOCAL,
    threads: int | None = None,
) -> RunRecord:
    """Record a parent and its runs, all or none, and start as many as there is room for.

    On this machine each run is a process of its own; for a cluster one process works on all of them.
    """
    registry = Registry()
    shared: dict[str, Any] = {"owner": owner, "threads": threads}
    check_executor(executor)
    if not members:
        raise OptionError("A sweep needs at least one run.")
    of_parent, of_runs = (CARRIED, LOCAL) if executor == LOCAL else (executor, CARRIED)
    parent = new_record(SWEEP, dict(spec or {}), title=title, executor=of_parent, **shared)
    shared |= {"executor": of_runs, "parent": parent.id}
    children = [new_record(m.kind, m.spec, title=m.title, device=m.device, **shared) for m in members]
    for child in children:
        check_runs_at_once(child.slot)
    registry.add([replace(parent, expected=len(children)), *spread(registry, children)])
    for record in (parent, *children):
        RunFiles(record.id, registry.folder).create()
    dispatch(registry)
    return registry.get(parent.id)
