"""Progress of an analysis that is made of several parts. Imports nothing heavy: the dashboard's first page reads it."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], None]


def part(progress: Progress | None, number: int, parts: int) -> Progress | None:
    """The progress of one of several equal parts, as the progress of the whole."""
    if progress is None:
        return None
    return lambda done, total: progress(number * total + done, parts * total)
