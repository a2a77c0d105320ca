"""The second thread of a worker: it reports progress every second and makes sure that a cancel takes effect.

Work looks at the cancel flag between chunks. If a chunk takes too long, this thread ends the process: every finished
step is on disk already, so nothing is lost.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from types import FrameType
from typing import Any

import psutil

from ..errors import RunError
from .files import RunFiles, write_json
from .process import EXIT_DONE, EXIT_SUPERSEDED, kill_children, memory_kills, monotonic, place, used_by_others
from .record import STOP, VANISH, IllegalTransition, RunRecord
from .registry import Registry, Superseded


class Pace:
    """Call ``stepped`` after every piece of work; ``remaining`` then falls while a step runs.

    Only steps of pruned models are timed: loading takes another time, and so do full models, which some runs only
    evaluate or find in the cache. Before the first such step nothing is known.
    """

    def __init__(self) -> None:
        self._since = 0.0  # when the running step began
        self._steps: float | None = None
        self._full = 0
        self._left = 0.0
        self._spent, self._timed = 0.0, 0.0

    def stepped(self, now: float, steps: float, expected: int, full: int = 0) -> None:
        """``steps`` of ``expected`` are on record, ``full`` of them full models; a part of a step is a fraction."""
        self._left = max(0.0, expected - steps)
        if self._steps is None:  # the steps of earlier attempts
            self._steps, self._full, self._since = steps, full, now
            return
        new = (steps - full) - (self._steps - self._full)
        if new > 0:
            self._spent += now - self._since
            self._timed += new
        if steps > self._steps:
            self._since = now
        self._steps, self._full = steps, full

    @property
    def each(self) -> float | None:
        """Seconds that a step took, on average; None before the first."""
        return self._spent / self._timed if self._timed else None

    def remaining(self, now: float) -> float | None:
        """Seconds to the end. None where not known: before the first step, and in a last one that takes longer."""
        if self.each is None or not self._left:
            return None
        this_step = min(1.0, self._left)
        of_this_step = max(0.0, self.each * this_step - (now - self._since))
        return of_this_step + self.each * (self._left - this_step) or None


LOOK = 0.15  # seconds between two looks at the cancel flag
BEAT = 1.0  # seconds between two heartbeats
GRACE = 1.2  # seconds that work gets to stop by itself
FENCE = 5.0  # seconds between two checks that no other worker has taken the run


class Heartbeat(threading.Thread):
    """Started before the work and stopped after it."""

    def __init__(self, registry: Registry, record: RunRecord, files: RunFiles) -> None:
        super().__init__(name="heartbeat", daemon=True)
        self.registry, self.record, self.files = registry, record, files
        self.steps, self.expected = 0, record.expected
        self.pace = Pace()
        self._phase: tuple[str, int, int] = ("starting", 0, 0)
        self._phase_begun = time.monotonic()
        self._stopped = threading.Event()
        self._cancel_seen: float | None = None
        self._signal: int | None = None
        self._memory_kills = memory_kills()
        self.before_end: Callable[[], object] = lambda: None

    # called by the work -----------------------------------------------------------------------

    def progress(self, phase: str, done: int, total: int) -> None:
        if phase != self._phase[0] or done < self._phase[1]:
            self._phase_begun = time.monotonic()
        self._phase = (phase, done, total)

    def stepped(self, steps: int, expected: int, full: int, work_done: float) -> None:
        """``steps`` of ``expected`` are on record, ``full`` of them full models."""
        self.pace.stepped(time.monotonic(), work_done, expected, full)
        self.steps, self.expected = steps, expected

    def cancelled(self) -> bool:
        """Whether the work must stop; it asks between chunks."""
        return self._signal is not None or self.files.cancel_flag.exists()

    @property
    def ending(self) -> str:
        """The event to record for an interruption: STOP if somebody asked for it, VANISH if the system did it."""
        return STOP if self.files.cancel_flag.exists() else VANISH

    @property
    def reason(self) -> str:
        if self.ending == STOP:
            return ""
        return "The system ended the worker. Resume continues from its last step."

    def watch_signals(self) -> None:
        """End in order on SIGTERM and SIGINT; ignore a closed terminal."""

        def note(number: int, frame: FrameType | None) -> None:
            self._signal = number

        signal.signal(signal.SIGTERM, note)
        signal.signal(signal.SIGINT, note)
        if hasattr(signal, "SIGHUP"):
            signal.signal(signal.SIGHUP, signal.SIG_IGN)

    # the thread itself ------------------------------------------------------------------------

    def stop(self) -> None:
        self._stopped.set()
        self.join(timeout=5)

    def run(self) -> None:
        next_beat, next_fence = 0.0, time.monotonic() + FENCE
        while not self._stopped.wait(LOOK):
            now = time.monotonic()
            if self.cancelled():
                self._cancel_seen = self._cancel_seen or now
                if now - self._cancel_seen > GRACE:
                    self._end_now()
            if now >= next_beat:
                next_beat = now + BEAT
                self._beat()
            if now >= next_fence:
                next_fence = now + FENCE
                with suppress(RunError):  # locked or full: checked again later
                    if not self.registry.holds(self.record.id, self.record.claim):
                        os._exit(EXIT_SUPERSEDED)

    def _beat(self) -> None:
        with suppress(RunError, OSError):  # a full disk stops the beat, not the work; the pid still shows that we run
            write_json(self.files.progress, self._report(), durable=False)

    def _report(self) -> dict[str, Any]:
        phase, done, total = self._phase
        spent = time.monotonic() - self._phase_begun
        rate = done / spent if done and spent > 0.05 else None
        cpu, memory = _usage()
        return {
            "beat": monotonic(),
            "place": place(),
            "time": time.time(),
            "attempt": self.record.attempt,
            "phase": phase,
            "done": done,
            "total": total,
            "rate": rate,
            "phase_remaining": (total - done) / rate if rate and total else None,
            "steps": self.steps,
            "expected": self.expected,
            "step_seconds": self.pace.each,
            "remaining": self.pace.remaining(time.monotonic()),
            "cpu_percent": cpu,
            "others_percent": used_by_others(cpu),
            "memory": memory,
            "memory_kills": self._memory_kills,  # when this worker began
        }

    def _end_now(self) -> None:
        """End the process, because the work did not look at the flag in time."""
        impatient_registry = Registry(self.registry.folder, wait=0.3)
        with suppress(RunError, Superseded, IllegalTransition):  # locked: whoever looks next records it
            impatient_registry.apply(
                self.record.id, self.ending, claim=self.record.claim, error=self.reason, ended=time.time()
            )
        kill_children(os.getpid())
        with suppress(Exception):  # otherwise the next run starts when somebody next looks at the registry
            self.before_end()
        os._exit(EXIT_DONE)


def _usage() -> tuple[float, int]:
    """Processor per cent since the last call (100 = one core) and bytes of memory, children included."""
    memory, worker = 0, _this_process()
    with suppress(psutil.Error):
        for process in [worker, *worker.children(recursive=True)]:
            with suppress(psutil.Error):
                memory += process.memory_info().rss
    return worker.cpu_percent(), memory


@cache
def _this_process() -> Any:
    """One object, because it remembers the time of the last call."""
    return psutil.Process()
