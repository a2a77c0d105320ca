"""Run a job in this process, piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..progress import Cancel, PhaseProgress, stop_if
from .job import Job, Tools


def tools_here(folder: Path, progress: PhaseProgress | None = None, cancel: Cancel | None = None) -> Tools:
    """The tools of a caller who may want no progress and never cancel."""
    return Tools(progress or (lambda phase, done, total: None), cancel or (lambda: False), folder)


def run_here(job: Job, state: Any, tools: Tools, keep: Callable[[Any], None]) -> Iterator[Any]:
    """Do all pieces that are left, one after the other: yields the state after each, once ``keep`` has written it.

    Stopped or killed at any moment, the job goes on from the state that was kept last, to the same result. A caller
    ends the job with ``job.finish``.
    """
    while pieces := job.ready(state):
        stop_if(tools.cancel)
        result = job.work(pieces[0], job.parcel(state, pieces[0]), tools)
        state = job.absorb(state, pieces[0], result)
        keep(state)
        yield state
