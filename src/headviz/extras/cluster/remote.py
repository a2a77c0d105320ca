"""What a worker of the cluster does: one piece of one run, in a folder of its own, with models that it loads once.

Dask calls these functions with plain values only. A process does one piece at a time, because training uses the
process's random numbers.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from ... import __version__, plugins
from ...engine import Order, Workplace
from ...errors import Cancelled, RunError
from ...runs.kinds import make_job
from ...storage.writing import replace_file

if TYPE_CHECKING:
    from distributed import Worker

TELL = 0.5  # seconds between two reports of progress
TOPIC = "headviz"

Files = dict[str, bytes]  # relative path -> content

_lock = threading.Lock()  # held while a piece is done
_cancelled: set[str] = set()


class Missing(Exception):
    """This worker lacks files that the piece reads; the driver sends them with the next try."""


def facts() -> dict[str, Any]:
    """What must be equal on all machines of a run."""
    return {"version": __version__, "python": platform.python_version()}


async def cancel(token: str) -> None:
    """Set the cancel flag. Runs on the worker's own loop, next to its task."""
    _cancelled.add(token)


def perform(
    token: str,
    run_id: str,
    kind: str,
    spec: Mapping[str, Any],
    threads: int,
    order: Order,
    sent: Files | None,
    plugin_codes: Mapping[str, bytes],
) -> tuple[bytes, Files, str]:
    """Do a piece; returns its result, the files it wrote, and the address of this worker."""
    from distributed import get_worker

    worker = get_worker()
    cancelled = _cancel_check(worker, token)
    while not _lock.acquire(timeout=0.1):
        if cancelled():
            raise Cancelled
    try:
        folder = Path(_temporary().name, run_id)
        folder.mkdir(parents=True, exist_ok=True)
        unpack(folder, sent or {})
        if missing := [n for n in order.needs if not (folder / n).exists()]:
            raise Missing(", ".join(missing))
        before = _listing(folder)
        _set_threads(threads)
        plugins.require(spec.get(plugins.SPEC) or (), plugin_codes)
        workplace = _workplace(kind, json.dumps(spec, sort_keys=True), folder)
        result = workplace.do(order, _reporter(worker, run_id, order.piece), cancelled)
        after = _listing(folder)
        written = {n: (folder / n).read_bytes() for n, stamp in after.items() if before.get(n) != stamp}
        return result, written, str(worker.address)
    finally:
        _lock.release()


@lru_cache(maxsize=2)
def _workplace(kind: str, spec: str, folder: Path) -> Workplace:
    """Models and data stay loaded for the next piece of the run."""
    return Workplace(make_job(kind, json.loads(spec)), folder)


def _cancel_check(worker: Worker, token: str) -> Callable[[], bool]:
    """A function that says whether the driver has cancelled the work or is gone."""
    key = worker.get_current_task()

    def cancelled() -> bool:
        task = worker.state.tasks.get(key)
        return token in _cancelled or task is None or task.state == "cancelled"

    return cancelled


def pack(folder: Path, names: Sequence[str]) -> Files:
    """The content of files and folders, for a worker that lacks them."""
    out: Files = {}
    for name in names:
        place = folder / name
        for path in [place] if place.is_file() else sorted(p for p in place.rglob("*") if p.is_file()):
            out[path.relative_to(folder).as_posix()] = path.read_bytes()
    return out


def folders(files: Files) -> set[str]:
    """Every folder that holds one of these files."""
    return {str(parent) for name in files for parent in PurePosixPath(name).parents}


def unpack(folder: Path, files: Files) -> None:
    """Write files below a folder; a ``RunError`` for a name that would lie outside of it."""
    root = folder.resolve()
    for name, content in files.items():
        path = (root / name).resolve()
        if not path.is_relative_to(root):
            raise RunError(f"A file of a run lies outside its folder: '{name}'.")
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content)


def _listing(folder: Path) -> dict[str, tuple[int, int]]:
    """Time and size of each file, to find those that were written. A training's own checkpoints are left out."""
    return {
        p.relative_to(folder).as_posix(): (p.stat().st_mtime_ns, p.stat().st_size)
        for p in folder.rglob("*")
        if p.is_file() and "training" not in p.relative_to(folder).parts
    }


@cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    """The folder of this process; deleted when it ends."""
    return tempfile.TemporaryDirectory(prefix="headviz-worker-")


def _set_threads(threads: int) -> None:
    """Results are equal bit for bit only at equal thread counts."""
    if "torch" in sys.modules or os.environ.get("OMP_NUM_THREADS") != str(threads):
        import torch

        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)


def _reporter(worker: Worker, run_id: str, piece: str) -> Callable[[str, int, int], None]:
    """A progress function that sends reports to the scheduler, at most every ``TELL`` seconds."""
    last, last_phase = 0.0, ""

    def report(phase: str, done: int, total: int) -> None:
        nonlocal last, last_phase
        now = time.monotonic()
        if phase != last_phase or now - last > TELL:
            last, last_phase = now, phase
            worker.log_event(TOPIC, {"run": run_id, "piece": piece, "phase": phase, "done": done, "total": total})

    return report
