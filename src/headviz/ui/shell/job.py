"""One long computation: who wants it, how far it is, and what came of it. No streamlit here."""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from ...errors import UserError
from .background import ending
from .turns import Turn

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
    left: bool = False  # ended because nobody looked; it starts again for whoever asks
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
        self.turn.wait(self._wanted)

    def cancelled(self) -> bool:
        """Whether nobody wants it; called by the computation, which waits here for its turn."""
        self.turn.wait(self._wanted)
        return not self._wanted()

    def _wanted(self) -> bool:
        return bool(self.wanted_by) and not ending.is_set()
