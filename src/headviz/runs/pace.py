"""The remaining time of a run, estimated from its steps so far."""

from __future__ import annotations


class Pace:
    """Call ``stepped`` after every piece of work; ``remaining`` then falls while a step runs.

    Only steps of pruned models are timed: loading takes another time, and so do full models, which some runs only
    evaluate or find in the cache. Before the first such step nothing is known.
    """

    def __init__(self) -> None:
        self._since = 0.0  # when the running step began
        self._steps: int | None = None
        self._full = 0
        self._left = 0
        self._spent, self._timed = 0.0, 0

    def stepped(self, now: float, steps: int, expected: int, full: int = 0) -> None:
        """``steps`` of ``expected`` are on record, ``full`` of them full models."""
        self._left = max(0, expected - steps)
        if self._steps is None:  # the steps of earlier attempts
            self._steps, self._full, self._since = steps, full, now
            return
        made = (steps - full) - (self._steps - self._full)
        if made > 0:
            self._spent += now - self._since
            self._timed += made
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
        running = max(0.0, self.each - (now - self._since))
        left = running + self.each * (self._left - 1)
        return left or None
