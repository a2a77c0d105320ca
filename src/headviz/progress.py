"""Progress of long work: ``progress(done, total)`` callbacks, and a bar that is one. Imports nothing heavy."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int, int], None]


def part(progress: Progress | None, number: int, parts: int) -> Progress | None:
    """The progress of one of several equal parts, as the progress of the whole."""
    if progress is None:
        return None
    return lambda done, total: progress(number * total + done, parts * total)


@contextmanager
def progress_bar(what: str) -> Iterator[Progress]:
    """A bar on stderr with rate and remaining time, for a ``progress(done, total)`` callback."""
    from tqdm import tqdm

    with tqdm(desc=what, file=sys.stderr, leave=False, dynamic_ncols=True, delay=0.5) as bar:

        def report(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield report
