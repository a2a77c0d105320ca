"""Helpers for tests that start real worker processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from headviz.runs.process import kill
from headviz.runs.queue import look
from headviz.runs.reading import RunView, show
from headviz.runs.record import ACTIVE, CARRIED, DONE, ENDED, RunRecord
from headviz.runs.registry import Registry


def until(true: Callable[[], object], seconds: float = 90.0, what: str = "it") -> float:
    """Wait until something holds; how long that took."""
    begun = time.monotonic()
    while not true():
        assert time.monotonic() - begun < seconds, f"{what} did not come within {seconds} s"
        time.sleep(0.02)
    return time.monotonic() - begun


def end_workers(registry: Registry) -> None:
    """Runs outlive what started them; those of a test shall not outlive the tests."""
    if not registry.path.exists():
        return
    for record in registry.records(states=["queued"]):
        if record.executor != CARRIED:
            registry.apply(record.id, "cancel")
    for record in registry.records(states=sorted(ACTIVE)):
        if record.worker:
            kill(record.worker)


def ended(run_id: str, seconds: float = 60.0) -> RunRecord:
    until(lambda: look(Registry(), run_id).state in ENDED, seconds, "the end of the run")
    return look(Registry(), run_id)


def done(run_id: str, seconds: float = 60.0) -> RunRecord:
    """The run at its end, which must be a good one; otherwise its error is what the test prints."""
    record = ended(run_id, seconds)
    assert (record.state, record.error) == (DONE, "")
    return record


def running_steps(run_id: str, steps: int = 1, seconds: float = 90.0) -> RunView:
    """Wait until a run has so many steps on record."""
    until(lambda: len(Registry().steps(run_id)) >= steps, seconds, f"step {steps}")
    return show(run_id)


def essence(run_id: str) -> list[dict]:
    """A run's steps without what differs from run to run: the times."""
    return [{k: v for k, v in s.items() if k not in ("seconds", "phases")} for s in Registry().steps(run_id)]


def log_of(run_id: str) -> str:
    return (Registry().folder / run_id / "log.txt").read_text()


def folder_of(run_id: str) -> Path:
    return Registry().folder / run_id
