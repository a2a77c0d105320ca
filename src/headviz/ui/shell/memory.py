"""What the dashboard's process takes, what bounds it, and how room is made before a computation that needs much."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import psutil

from ...errors import OptionError
from . import state
from .freed import give_back
from .jobs import BYTES
from .loaders import DATASETS, EVALUATORS, MODELS, put_away

LIMIT = "HEADVIZ_MEMORY"  # GiB that the dashboard may take
GIB = 2**30


def sentence() -> str:
    return (
        f"This dashboard takes {taken() / GIB:.1f} of at most {limit() / GIB:.1f} GiB of memory ({LIMIT} sets that). "
        f"All its visitors together have at most {MODELS} models, {DATASETS} data sets, {EVALUATORS} evaluators "
        f"with 1 GB of states each, and {BYTES // 2**20} MB of results; what was used longest ago goes first."
    )


def taken() -> int:
    return int(psutil.Process().memory_info().rss)


def limit() -> int:
    """Bytes that the process may take: what the user allows, else what the machine or its container has."""
    with suppress(ValueError):
        return int(float(os.environ.get(LIMIT, "")) * GIB)
    known = int(psutil.virtual_memory().total)
    with suppress(OSError, ValueError):
        known = min(known, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return known


def fits(need: int) -> bool:
    """Whether so many more bytes are within the limit."""
    return taken() + need <= limit()


def make_room(need: int, what: str) -> None:
    """Put away what was used least recently until ``need`` more bytes fit; refuse where they never do."""
    gone = []
    if not fits(need):
        give_back()
    while not fits(need) and (away := put_away()):
        gone.append(away)
        give_back()
    if gone:
        state.notify(f"To make room for {what}, {', '.join(gone)} used before went from memory.")
    if not fits(need):
        raise OptionError(
            f"{what[0].upper()}{what[1:]} needs about {need / GIB:.1f} GiB, and {taken() / GIB:.1f} of "
            f"{limit() / GIB:.1f} GiB are taken. Shorten the text, take a smaller model, or set {LIMIT} to more."
        )
