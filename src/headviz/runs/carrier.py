"""One run while it is worked on: its state, a checkpoint after every piece, its steps in the registry."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from ..engine.job import Job
from ..errors import RunError
from .files import RunFiles, write_json
from .kinds import make_job
from .record import RunRecord
from .registry import Registry
from .states import FINISH


class Carrier:
    """A run in the hands of a worker. The checkpoint is written first, then the registry; both hold the same steps."""

    def __init__(self, registry: Registry, record: RunRecord) -> None:
        self.registry = registry
        self.record = record
        self.files = RunFiles(record.id, registry.folder)
        self.job: Job = make_job(record.kind, record.spec)
        self.files.sweep_temporary()
        self.files.results.mkdir(parents=True, exist_ok=True)
        self.number, raw, damaged = self.files.load_checkpoint()
        for name in damaged:
            registry.note(record.id, "damaged checkpoint", f"{name}: continued from the one before it")
        try:
            self.state: Any = self.job.unpack(raw) if raw else self.job.begin()
        except (ValueError, KeyError, TypeError) as error:
            raise RunError(
                f"The checkpoint of run {record.id} was written by headviz {record.version} and cannot be read by this "
                f"version ({error}). Start a new run.",
                code="other-version",
                resumable=False,
            ) from error
        if damaged:  # numbers of damaged files are not used again
            self.number = max(self.number, *(n for n, _ in self.files.checkpoints()))
        self._publish()

    def ready(self) -> Sequence[str]:
        return self.job.ready(self.state)

    def absorb(self, piece: str, result: bytes) -> None:
        """Add a piece's result to the state and write both down."""
        self.keep(self.job.absorb(self.state, piece, result))

    def keep(self, state: Any) -> None:
        """Write a new state down."""
        self.state = state
        self.number += 1
        self.files.save_checkpoint(self.number, self.job.pack(self.state))
        self._publish()

    def finish(self) -> RunRecord:
        """Write the outcome and record that the run is done."""
        outcome = self.job.finish(self.state, self.files.results)
        write_json(self.files.outcome, outcome)
        return self.registry.apply(self.record.id, FINISH, claim=self.record.claim, ended=time.time())

    @property
    def steps(self) -> int:
        return len(self.job.steps(self.state))

    @property
    def full(self) -> int:
        """How many of the steps are full models."""
        return sum(s.get("step") == 0 for s in self.job.steps(self.state).values())

    @property
    def expected(self) -> int:
        return self.job.expected(self.state)

    def _publish(self) -> None:
        self.registry.put_steps(self.record.id, self.record.claim, self.job.steps(self.state))
        if self.expected != self.record.expected:
            self.registry.set_expected(self.record.id, self.expected)
