"""Whose turn it is: of the long computations of one model one computes, the others wait at their next step.

The most urgent one goes first: a lower rank, then what a page asked for last, then its order on that page. No streamlit
here.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from . import memo

SILENT = 5.0  # seconds after which the others no longer wait for one that does not move
QUICK = 0.01  # seconds; what comes faster was at hand already and says nothing about the rest
RECENT = 64  # steps that the time left is judged by

_moved = threading.Condition()
_running: list[Turn] = []


@dataclass(eq=False)
class Turn:
    """One computation's place in the queue of its model, and its speed."""

    what: str = ""
    lane: Hashable = ""  # the model
    rank: int = 0  # 1 = in the background, 2 = nobody asked for it yet
    asked: tuple[int, int] = (0, 0)  # the page run that asked last, negative, and the place on the page
    waits_for: str = ""  # what goes first
    heard: float = field(default_factory=time.monotonic)
    _since: float = 0.0
    _steps: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=RECENT))

    @property
    def urgency(self) -> tuple[int, int, int]:
        return (self.rank, *self.asked)

    def begin(self) -> None:
        with _moved:
            _running.append(self)
        self._since = time.monotonic()

    def end(self) -> None:
        with _moved:
            _running.remove(self)
            _moved.notify_all()

    def wait(self, wanted: Callable[[], bool]) -> None:
        """Let more urgent ones go first. One that makes something for all (``memo``) does not wait: they need it."""
        begun = self.heard = time.monotonic()
        if memo.making():
            return
        with _moved:
            while wanted() and (first := self._before()):
                self.waits_for = first.what or "another computation"
                _moved.wait(0.1)
                self.heard = time.monotonic()
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
        """What so many more will take at the pace of the last steps that were work; None while that is unknown."""
        steps = list(self._steps)
        spent = sum(s for s, _ in steps)
        return items * spent / sum(n for _, n in steps) if spent > 1 else None
