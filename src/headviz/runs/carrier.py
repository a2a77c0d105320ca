"""A run in the hands of a worker or of a cluster's driver: its checkpoints, and its steps in the registry."""

from __future__ import annotations

import time
from typing import Any

from ..engine.execution import Execution, restored
from .files import RunFiles, disk_errors, write_json
from .kinds import make_job
from .record import RunRecord
from .registry import Registry
from .states import FINISH


class Carrier(Execution):
    """The execution of a recorded run. The checkpoint is written first, then the registry; both hold the same steps."""

    def __init__(self, registry: Registry, record: RunRecord) -> None:
        self.registry, self.record = registry, record
        self.files = RunFiles(record.id, registry.folder)
        job = make_job(record.kind, record.spec)
        self.files.sweep_temporary()
        self.files.results.mkdir(parents=True, exist_ok=True)
        state, damaged = restored(job, self.files.checkpoints)
        super().__init__(job, self.files.checkpoints, state)
        for name in damaged:
            registry.note(record.id, "damaged checkpoint", f"{name}: continued from the one before it")
        self._publish()

    def keep(self, state: Any) -> None:
        with disk_errors(self.files.folder):
            super().keep(state)
        self._publish()

    def end(self) -> RunRecord:
        """Write the outcome and record that the run is done."""
        write_json(self.files.outcome, self.finish(self.files.results))
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
