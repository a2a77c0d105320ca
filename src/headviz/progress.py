"""How long functions report their progress, and how they are stopped. Imports nothing heavy.

They take ``progress(done, total)`` and ``cancel()``, either of which may be None, and iterate over their work with
``tracked``, which calls both. ``stop_if`` calls ``cancel`` once, where there is nothing to iterate over.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from .errors import Cancelled, OptionError, shown

LONG = 600.0  # seconds; longer work says at its beginning how long it takes
MEASURED = 5.0  # seconds of work that are timed for that estimate

Progress = Callable[[int, int], None]  # (done, total)
PhaseProgress = Callable[[str, int, int], None]  # (phase, done, total)
Cancel = Callable[[], bool]  # True = stop

T = TypeVar("T")


def tracked(
    items: Iterable[T],
    progress: Progress | None = None,
    cancel: Cancel | None = None,
    *,
    size: Callable[[T], int] | None = None,
) -> Iterator[T]:
    """Yield the items. Before each one ``cancel`` is asked; before the first and after each, progress is reported.

    ``size(item)`` says how much of the work an item is; without it, every item counts one.
    Raises ``Cancelled`` as soon as the caller asked to stop.
    """
    require_functions(progress, cancel)
    work = list(items)
    weights = [1 if size is None else size(item) for item in work]
    done, total = 0, sum(weights)
    if progress is not None and work:
        progress(0, total)
    for item, weight in zip(work, weights, strict=True):
        stop_if(cancel)
        yield item
        done += weight
        if progress is not None:
            progress(done, total)


def stop_if(cancel: Cancel | None) -> None:
    """Raise ``Cancelled`` if the caller asked to stop."""
    require_functions(cancel=cancel)
    if cancel is not None and cancel():
        raise Cancelled


def require_functions(progress: object = None, cancel: object = None) -> None:
    """An ``OptionError`` for what cannot be called."""
    for name, function in (("progress", progress), ("cancel", cancel)):
        if function is not None and not callable(function):
            raise OptionError(f"{name} is a function, not {shown(function)}.")


def part(progress: Progress | None, number: int, parts: int) -> Progress | None:
    """The progress of one of several equal parts, as the progress of the whole."""
    if progress is None:
        return None
    require_functions(progress)
    return lambda done, total: progress(number * total + done, parts * total)


def of_phase(progress: PhaseProgress | None, phase: str) -> Progress | None:
    """The progress of one phase of a work that names its phases."""
    if progress is None:
        return None
    require_functions(progress)
    return lambda done, total: progress(phase, done, total)


def after(progress: Progress | None, before: int, total: int) -> Progress | None:
    """The progress of a part that begins when ``before`` of ``total`` is done, counted in the same unit.

    The beginning of a later part is not reported again: it is the end of the part before it.
    """
    if progress is None:
        return None
    require_functions(progress)
    return lambda done, _: progress(before + done, total) if done or not before else None


@contextmanager
def progress_bar(what: str, shorter: str | None = "") -> Iterator[Progress]:
    """A bar on stderr with rate and remaining time, for a ``progress(done, total)`` callback.

    Work of more than ten minutes says so after its first seconds; ``shorter`` says how to make it shorter. None = the
    user was told before.

    >>> import headviz
    >>> clf, data = headviz.load("demo", device="cpu"), headviz.load_task("demo", limit=8)
    >>> with headviz.progress_bar("evaluating") as bar:
    ...     result = headviz.evaluate(clf, data, progress=bar)
    """
    with phase_bar(shorter or "", quiet=what if shorter is None else "") as report:
        yield lambda done, total: report(what, done, total)


@contextmanager
def phase_bar(shorter: str = "", quiet: str = "") -> Iterator[PhaseProgress]:
    """The same for work that names its phases. Each has a bar and a clock of its own: their units differ.

    No line says how long the phase ``quiet`` takes.
    """
    from tqdm import tqdm

    visible = sys.stderr.isatty() or "ipykernel" in sys.modules  # a file would be full of its cursor movements
    noted = False
    with tqdm(file=sys.stderr, leave=False, dynamic_ncols=True, delay=0.5, disable=not visible) as bar:
        current, first, last, begun = "", 0, 0, 0.0

        def report(phase: str, done: int, total: int) -> None:
            nonlocal current, first, last, begun, noted
            if phase != current or done < last:
                current, first, begun = phase, done, time.monotonic()
                bar.reset(total)
                bar.set_description(phase)
            bar.total = total
            bar.update(done - bar.n)
            last, spent = done, time.monotonic() - begun
            if noted or phase == quiet or spent < MEASURED or done == first:
                return
            if line := long_work(phase, spent / (done - first) * (total - done), shorter):
                noted = True
                note_above(f"headviz: note: {line}")

        yield report


def long_work(what: str, seconds: float, shorter: str) -> str:
    """The sentence on work of more than ten minutes; empty for less."""
    if seconds <= LONG:
        return ""
    time_left = f"{seconds / 60:.0f} minutes" if seconds < 2 * 3600 else f"{seconds / 3600:.1f} hours"
    return f"{what} takes about {time_left}. {shorter}".rstrip()


def note_above(line: str) -> None:
    """A line on stderr that a bar stays below."""
    from tqdm import tqdm

    tqdm.write(line, file=sys.stderr)
