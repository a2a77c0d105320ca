"""A job while it is worked on. One process holds the state and writes it down; any process may do the pieces.

state, _ = restored(job, checkpoints)
for state in run_here(Execution(job, checkpoints, state), Workplace(job, folder)):
    …
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import RunError
from ..progress import Cancel, PhaseProgress, stop_if
from .checkpoints import Checkpoints
from .job import Job, Tools


@dataclass(frozen=True)
class Order:
    """A piece and all that it needs: plain values, which can be sent to another machine."""

    piece: str
    parcel: bytes
    needs: tuple[str, ...]  # files of the run
    sources: Mapping[str, Any]  # digests of the models and data that the earlier pieces worked with

    @classmethod
    def of(cls, job: Job, state: Any, piece: str) -> Order:
        return cls(piece, job.parcel(state, piece), tuple(job.needs(state, piece)), job.sources(state))


class Execution:
    """The state of a job, written down after every piece; a job that was stopped at any moment goes on from there."""

    def __init__(self, job: Job, checkpoints: Checkpoints, state: Any) -> None:
        self.job, self.checkpoints, self.state = job, checkpoints, state

    def ready(self) -> Sequence[str]:
        return self.job.ready(self.state)

    def order(self, piece: str) -> Order:
        return Order.of(self.job, self.state, piece)

    def absorb(self, piece: str, result: bytes) -> None:
        """Add a piece's result to the state and write it down."""
        self.keep(self.job.absorb(self.state, piece, result))

    def keep(self, state: Any) -> None:
        """Write a new state down."""
        self.state = state
        self.checkpoints.save(self.job.pack(state))

    def finish(self, folder: Path) -> dict[str, Any]:
        """The outcome of a job of which nothing is left; ``folder`` holds its results."""
        outcome = self.job.finish(self.state, folder)
        if (kept := self.job.kept_in(folder)) is not None:
            kept.save(self.job.pack(self.state))
        return outcome


def restored(job: Job, checkpoints: Checkpoints) -> tuple[Any, list[str]]:
    """The state in the newest checkpoint, else the beginning; and the names of damaged checkpoints before that one."""
    damaged: list[str] = []
    for path, body in checkpoints.bodies():
        if body is None:
            damaged.append(path.name)
            continue
        try:
            return job.unpack(body), damaged
        except (ValueError, KeyError, TypeError) as error:
            raise RunError(
                f"{path.name} of this run cannot be read by this version of headviz ({error}). Start a new run.",
                code="other-version",
                resumable=False,
            ) from error
    return job.begin(), damaged


class Workplace:
    """Where a process does pieces of a job: in a folder, with models and data that are loaded once."""

    def __init__(self, job: Job, folder: Path, loaded: Any = None) -> None:
        self.job, self.folder = job, folder
        self._loaded: tuple[Any, ...] = () if loaded is None else (loaded,)

    def loaded(self, progress: PhaseProgress | None = None) -> Any:
        """The job's models and data, which a caller may have given."""
        if not self._loaded:
            if progress is not None:
                progress("loading", 0, 0)
            self._loaded = (self.job.load(self.folder),)
        return self._loaded[0]

    def do(self, order: Order, progress: PhaseProgress | None = None, cancel: Cancel | None = None) -> bytes:
        """The result of a piece; a ``RunError`` if models or data are no longer those of the earlier pieces."""
        loaded = self.loaded(progress)
        for name, digest in order.sources.items():
            if self.job.digest(loaded, name) != digest:
                raise RunError(
                    f"The {name} of this run has changed since the run was started, so its results would be a mixture. "
                    "Start a new run.",
                    code="source-changed",
                    resumable=False,
                )
        tools = Tools(progress or (lambda phase, done, total: None), cancel or (lambda: False), self.folder, loaded)
        return self.job.work(order.piece, order.parcel, tools)


def run_here(
    execution: Execution, workplace: Workplace, progress: PhaseProgress | None = None, cancel: Cancel | None = None
) -> Iterator[Any]:
    """Do all pieces that are left, one after the other: yields the state after each, once it is written down."""
    while pieces := execution.ready():
        stop_if(cancel)
        execution.absorb(pieces[0], workplace.do(execution.order(pieces[0]), progress, cancel))
        yield execution.state
