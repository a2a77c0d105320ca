"""A bar for any function that takes ``progress``: in a terminal, a notebook's output, a script."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr with rate and remaining time, for a ``progress(done, total)`` callback."""
    from tqdm import tqdm

    with tqdm(desc=what, file=sys.stderr, leave=False, dynamic_ncols=True, delay=0.5) as bar:

        def report(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield report
