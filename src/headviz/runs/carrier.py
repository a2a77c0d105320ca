"""A recorded run as a worker or a cluster's driver carries it: its checkpoints, its steps in the registry, its end.

``outcome_of`` is what the record says of an error that ended it.
"""

from __future__ import annotations

import errno
import time
from typing import Any

from ..engine import Execution, restored
from ..errors import UserError
from ..storage.writing import disk_error
from .files import DiskFull, RunFiles, write_json, writing_run
from .kinds import make_job
from .record import FAULT, FINISH, OUT_OF_MEMORY, RunRecord
from .registry import Registry


class Carrier(Execution):
    """The execution of a recorded run. The checkpoint is written first, then the registry; both hold the same steps."""

    def __init__(self, registry: Registry, record: RunRecord) -> None:
        self.registry, self.record = registry, record
        self.files = RunFiles(record.id, registry.folder)
        job = make_job(record.kind, record.placed_spec)
        self.files.sweep_temporary()
        self.files.results.mkdir(parents=True, exist_ok=True)
        state, damaged = restored(job, self.files.checkpoints)
        super().__init__(job, self.files.checkpoints, state)
        for name in damaged:
            registry.note(record.id, "damaged checkpoint", f"{name}: continued from the one before it")
        self._publish()

    def keep(self, state: Any) -> None:
        with writing_run(self.files.folder):
            super().keep(state)
        self._publish()

    def end(self) -> RunRecord:
        """Write the outcome and record that the run is done."""
        write_json(self.files.outcome, self.finish(self.files.results))
        return self.registry.apply(self.record.id, FINISH, claim=self.record.claim, ended=time.time())

    @property
    def counts(self) -> tuple[int, int, int, float]:
        """The steps so far, those expected in all, the full models among the former, and the work that is done."""
        steps, done = self.job.steps(self.state).values(), self.job.work_done(self.state)
        return len(steps), self.job.expected(self.state), sum(s.get("step") == 0 for s in steps), done

    def _publish(self) -> None:
        self.registry.put_steps(self.record.id, self.record.claim, self.job.steps(self.state))
        if (expected := self.job.expected(self.state)) != self.record.expected:
            self.registry.set_expected(self.record.id, expected)


def outcome_of(error: BaseException) -> dict[str, Any]:
    """What the record says of a run that this error ended: ``error``, ``code`` and ``resumable``."""
    if isinstance(error, UserError):
        return {"error": str(error), "code": error.code, "resumable": error.resumable}
    if is_out_of_memory(error):
        code = OUT_OF_MEMORY
        text = (
            "Out of memory. Let fewer runs work at a time or use a machine with more memory and resume, "
            "or start a new run with a smaller batch or shorter texts."
        )
    elif (message := disk_error(error)) is not None:
        code, text = DiskFull.code, f"{message} Then resume the run."
    else:
        first = (str(error).strip() or "no message").splitlines()[0]
        code, text = FAULT, f"headviz failed here ({type(error).__name__}: {first[:300]}). The log has the details."
    return {"error": text, "code": code, "resumable": True}


def is_out_of_memory(error: BaseException) -> bool:
    """Whether Python, torch or CUDA ran out of memory.

    torch on the processor raises a plain ``RuntimeError``, so only its text tells. CUDA's errors are known by the
    name of their type, because torch may not be loaded here.
    """
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    if type(error).__name__ == "AcceleratorError":
        return "out of memory" in str(error)  # CUDA's own name of this one; "illegal memory access" is a fault
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, RuntimeError) and (
        "can't allocate memory" in str(error) or "not enough memory" in str(error)
    )
