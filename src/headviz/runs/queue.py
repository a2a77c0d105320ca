"""The queue works without a server: whoever starts, ends or looks at a run also starts what is waiting.

A device takes one run at a time, or ``$HEADVIZ_RUNS_AT_ONCE``; the others wait in order. Runs give way to other
programs as far as ``$HEADVIZ_NICENESS`` or the user's choice says.
"""

from __future__ import annotations

import os
import secrets
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from ..errors import OptionError, RunError
from ..storage.strict_disk import private_folder
from ..storage.writing import disk_errors, replace_file
from .files import RunFiles, runs_home
from .kinds import EXECUTORS
from .process import kill, kill_leftovers, memory_kills, place, spawn
from .record import (
    ACTIVE,
    CANCEL,
    CANCELLING,
    CARRIED,
    FAIL,
    OUT_OF_MEMORY,
    QUEUED,
    VANISH,
    IllegalTransition,
    RunRecord,
    follow,
)
from .registry import Registry, Superseded

AT_ONCE = "HEADVIZ_RUNS_AT_ONCE"
DRIVERS_AT_ONCE = 8  # processes that only hand work to a cluster

STALE = 60.0  # seconds after which a reservation that led to no worker is given away
CANCEL_LIMIT = 1.8  # seconds a worker has to end after a cancel; then it is killed
SILENCE = 180.0  # seconds without a report after which a worker on another machine counts as gone


def runs_at_once(slot: str) -> int:
    """How many runs of a slot may run at once."""
    if slot in EXECUTORS:
        return DRIVERS_AT_ONCE
    text = os.environ.get(AT_ONCE, "1").strip()
    if not text.isdecimal() or int(text) < 1:
        raise OptionError(f"{AT_ONCE}='{text}' is not a whole number of at least 1.")
    return int(text)


def check_runs_at_once(slot: str) -> None:
    """Refuse a setting of the machine that cannot be read, before a run is written down."""
    runs_at_once(slot)


def cards(device: str) -> int:
    """How many cards of this machine the runs on a device are spread over."""
    if not device.startswith("cuda"):
        return 1
    import torch

    return max(1, torch.cuda.device_count())


def spread(registry: Registry, records: Sequence[RunRecord]) -> list[RunRecord]:
    """The records; each that takes any card gets the one with the fewest unfinished runs."""
    unfinished = Counter(r.device for r in registry.records(states=[QUEUED, *sorted(ACTIVE)]))
    placed = []
    for record in records:
        if record.takes_any_card:
            names = [f"cuda:{i}" for i in range(cards(record.device))]
            record = replace(record, device=min(names, key=unfinished.__getitem__))
            unfinished[record.device] += 1
        placed.append(record)
    return placed


def dispatch(registry: Registry) -> list[str]:
    """Start workers for waiting runs while there is room; returns the ids of the runs started."""
    reconcile(registry)
    started: list[str] = []
    while True:
        token = secrets.token_hex(8)
        record = registry.take(token, STALE, runs_at_once)
        if record is None:
            return started
        files = RunFiles(record.id, registry.folder)
        try:
            files.create()
            spawn(record.id, token, registry.folder.parent, files.log, record.threads)
        except (OSError, RunError) as error:
            registry.apply(
                record.id,
                FAIL,
                claim=token,
                ended=time.time(),
                error=f"The worker process could not be started: {error}",
            )
            continue
        started.append(record.id)


def reconcile(registry: Registry) -> None:
    """Record workers that are gone, and end those that did not react to a cancel."""
    for record in registry.records(states=sorted(ACTIVE)):
        _reconcile_one(registry, record)


def _reconcile_one(registry: Registry, record: RunRecord) -> RunRecord:
    if record.worker is None or record.state not in ACTIVE:
        return record
    files = RunFiles(record.id, registry.folder)
    age = files.cancel_age()
    carried = record.executor == CARRIED  # its process works on the other runs of the sweep as well
    if age is not None and age > CANCEL_LIMIT and not carried and record.worker.alive():
        kill(record.worker)
    if not is_gone(record, files):
        return record
    kill_leftovers(record.worker)
    cancelled = record.state == CANCELLING or age is not None
    error, code = ("", "") if cancelled else lost_message(files)
    try:
        if cancelled and record.state != CANCELLING:
            registry.apply(record.id, CANCEL, claim=record.claim)
        return registry.apply(record.id, VANISH, claim=record.claim, error=error, code=code, ended=time.time())
    except (IllegalTransition, Superseded):
        return registry.get(record.id)  # meanwhile it ended properly, or was taken again
    except RunError:  # locked or full: return the true state, and record it another time
        return replace(record, state=follow(CANCELLING if cancelled else record.state, VANISH), error=error, code=code)


def is_gone(record: RunRecord, files: RunFiles) -> bool:
    """Whether the worker of an active run has ended. One on another machine is judged by its last report."""
    alive = record.worker.alive() if record.worker else False
    if alive is not None:
        return not alive
    try:
        return time.time() - files.progress.stat().st_mtime > SILENCE
    except OSError:
        return time.time() - (record.started or record.created) > SILENCE


def lost_message(files: RunFiles) -> tuple[str, str]:
    """The error of a run whose worker ended without a message, and the error's code."""
    report = files.read_json(files.progress)
    text, code = "The worker process is gone: it was killed, ran out of memory, or the machine restarted.", ""
    before, after = report.get("memory_kills"), memory_kills()
    if report.get("place") == place() and isinstance(before, int) and after is not None and after > before:
        text, code = "The worker process ran out of memory: the system ended it.", OUT_OF_MEMORY
    if report.get("memory"):
        text += f" It last used {report['memory'] / 2**30:.1f} GB of memory in phase '{report.get('phase', '?')}'."
    return f"{text} Resume continues from its last step.", code


def look(registry: Registry, run_id: str) -> RunRecord:
    """A run as it is now; checks whether its worker is alive."""
    return _reconcile_one(registry, registry.get(run_id))


def look_at_all(registry: Registry, archived: bool | None) -> list[RunRecord]:
    """Every run as it is now; starts what is waiting if there is room."""
    with suppress(RunError):  # a locked registry can still be read
        if any(r.executor != CARRIED for r in registry.records(states=[QUEUED, *sorted(ACTIVE)])):
            dispatch(registry)
    return [_reconcile_one(registry, r) for r in registry.records(archived=archived)]


NICENESS = 10  # the dashboard stays responsive while a run computes
NICENESS_VARIABLE = "HEADVIZ_NICENESS"  # stands above what was chosen
NICENESS_FILE = "niceness"  # in the folder of the runs


def niceness() -> int:
    """``$HEADVIZ_NICENESS``, else what was chosen, else 10."""
    with suppress(OSError, ValueError):
        chosen = os.environ.get(NICENESS_VARIABLE) or (runs_home() / NICENESS_FILE).read_text(encoding="utf-8")
        return min(19, max(-20, int(chosen)))
    return NICENESS


def choose_niceness(value: int) -> None:
    """How far runs that start from now on give way."""
    if not 0 <= value <= 19:
        raise RunError(f"A run's niceness is 0 to 19, not {value}.")
    folder = runs_home()
    with disk_errors(folder):
        private_folder(folder)
        replace_file(folder / NICENESS_FILE, f"{value}\n")
