"""Long computations without streamlit: their threads, whose turn it is, how far each is, and values made once for all.

Of the long computations of one model one computes, the others wait at their next step. The most urgent one goes
first: ranks 0 and 1 before rank 2, then one that has nothing to show yet before the rest of one that has, then a lower
rank, then what a page asked for last, then its order on that page. One of rank 1 whose first part is shown gets slices
of time among those that show one, too, so that it grows.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from ...errors import UserError

PATIENCE = 1.5  # seconds that all of them have to stop

ending = threading.Event()  # set when the process ends; long work looks at it
_threads: list[threading.Thread] = []
_starting = threading.Lock()


def in_background(work: Callable[[], object], name: str) -> None:
    """Call it in a thread of its own."""
    thread = threading.Thread(target=work, name=name, daemon=True)
    with _starting:
        _threads[:] = [*(t for t in _threads if t.is_alive()), thread]
        thread.start()


@atexit.register
def _stop_all() -> None:
    ending.set()
    until = time.monotonic() + PATIENCE
    for thread in list(_threads):
        thread.join(max(0.0, until - time.monotonic()))
    if any(thread.is_alive() for thread in _threads) and _in_server():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)  # a server's status, without the end of Python's threads


def _in_server() -> bool:
    from streamlit import runtime

    return runtime.exists()


# ---- freed memory


def give_back() -> None:
    """Return what is free to the system, where the C library can (glibc); else do nothing."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)


# ---- values that all sessions share

V = TypeVar("V")
_here = threading.local()


def making() -> bool:
    """Whether this thread makes a value that others may wait for."""
    return getattr(_here, "depth", 0) > 0


class Memo(Generic[V]):
    """The ``most`` newest values by key. If two threads ask for one key, the value is made once."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[Hashable, V] = OrderedDict()
        self._locks: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def __contains__(self, key: Hashable) -> bool:
        with self._lock:
            return key in self._values

    def peek(self, key: Hashable) -> V | None:
        """The value if it has been made; this counts as a use."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
            making = self._locks.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                if key in self._values:
                    return self._values[key]
            _here.depth = getattr(_here, "depth", 0) + 1
            try:
                value = make()
            finally:
                _here.depth -= 1
            with self._lock:
                self._values[key] = value
                self._locks.pop(key, None)
                while len(self._values) > self._most:
                    self._values.popitem(last=False)
            return value

    def drop(self, keep: int) -> int:
        """Drop all but the ``keep`` values used last; returns how many were dropped."""
        with self._lock:
            dropped = max(0, len(self._values) - keep)
            for _ in range(dropped):
                self._values.popitem(last=False)
        return dropped


# ---- whose turn it is

SILENT = 5.0  # seconds after which the others no longer wait for one that does not move
QUICK = 0.01  # seconds; what comes faster was at hand already and says nothing about the rest
PAUSE, SLICE = 1.5, 0.5  # seconds after which a rank of 1 goes first among those that show a part, and for how long
RECENT = 64  # steps that the time left is judged by

_moved = threading.Condition()
_running: list[Turn] = []


@dataclass(eq=False)
class Turn:
    """One computation's place in the queue of its model, and its speed."""

    label: str = ""
    lane: Hashable = ""  # the model
    rank: int = 0  # 1 = in the background, 2 = nobody asked for it yet
    shows: bool = False  # a part of its result is there
    requested: tuple[int, int] = (0, 0)  # by which page run last, negative, and at which place of the page
    waits_for: str = ""  # the label of the computation that goes first
    heard: float = field(default_factory=time.monotonic)
    first_until: float = 0.0  # the end of its slice
    _since: float = 0.0
    _steps: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=RECENT))

    @property
    def urgency(self) -> tuple[int, ...]:
        in_slice = time.monotonic() < self.first_until
        return (self.rank > 1, self.shows, not in_slice, self.rank, *self.requested)

    def begin(self) -> None:
        with _moved:
            _running.append(self)
        self._since = time.monotonic()

    def end(self) -> None:
        with _moved:
            _running.remove(self)
            _moved.notify_all()

    def wait(self, wanted: Callable[[], bool]) -> None:
        """Let more urgent ones go first. One that makes a value for all (``Memo``) does not wait: they need it."""
        begun = self.heard = time.monotonic()
        if making():
            return
        with _moved:
            while wanted() and (first := self._before()):
                self.waits_for = first.label or "another computation"
                _moved.wait(0.1)
                self.heard = time.monotonic()
                if self.rank == 1 and self.shows and self.heard - begun > PAUSE:
                    self.first_until = self.heard + SLICE
            self.waits_for = ""
        self._since += time.monotonic() - begun

    def _before(self) -> Turn | None:
        now = time.monotonic()
        others = [t for t in _running if t is not self and t.lane == self.lane and t.urgency < self.urgency]
        return min((t for t in others if now - t.heard < SILENT), key=lambda t: t.urgency, default=None)

    def step(self, items: int) -> None:
        """So many more are done; waiting is not counted."""
        now = time.monotonic()
        if items > 0 and now - self._since > QUICK:
            self._steps.append((now - self._since, items))
        self._since = now

    def seconds_for(self, items: int) -> float | None:
        """How long so many more take at the pace of the last steps that were work; None while that is unknown."""
        steps = list(self._steps)
        spent = sum(seconds for seconds, _ in steps)
        return items * spent / sum(count for _, count in steps) if spent > 1 else None


# ---- one computation

T = TypeVar("T")

KEPT = "kept"  # stands among those who want a job that goes on when nobody looks


@dataclass
class Job(Generic[T]):
    """One computation: running, done, failed or stopped."""

    key: Hashable
    done: int = 0
    total: int = 0
    result: T | None = None
    partial: Any = None  # what a progressive computation has so far
    error: UserError | str = ""
    stopped: bool = False
    began: float = field(default_factory=time.monotonic)
    finished: threading.Event = field(default_factory=threading.Event)
    wanted_by: set[str] = field(default_factory=set)
    pages: dict[str, str] = field(default_factory=dict)  # session -> the page that asked
    turn: Turn = field(default_factory=Turn)
    abandoned: bool = False  # ended because nobody looked; the next request starts it again
    stopped_by: set[str] = field(default_factory=set)  # sessions that pressed Stop; redrawing does not undo that

    @property
    def running(self) -> bool:
        return not self.finished.is_set()

    @property
    def share(self) -> float:
        return min(1.0, self.done / self.total) if self.total else 0.0

    @property
    def remaining(self) -> float | None:
        """Seconds left for what is not done yet; None while that is unknown."""
        return self.turn.seconds_for(self.total - self.done)

    def progress(self, done: int, total: int) -> None:
        self.turn.step(done - self.done if total == self.total else 0)
        self.done, self.total = done, total
        self.turn.wait(lambda: self.wanted)

    def cancelled(self) -> bool:
        """Whether nobody wants it; called by the computation, which waits here for its turn."""
        self.turn.wait(lambda: self.wanted)
        return not self.wanted

    @property
    def wanted(self) -> bool:
        """Whether anybody waits for it."""
        return bool(self.wanted_by) and not ending.is_set()
