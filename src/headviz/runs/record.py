"""The record of a run: what was asked for, and what has become of it."""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import dataclass, field
from typing import Any

from ..errors import OptionError, RunError
from .process import Identity
from .states import QUEUED

LOCAL = "local"  # one process of this machine does the work
DASK = "dask"  # one process of this machine hands the work to a cluster
CARRIED = "carried"  # no process of its own: a sweep's run that its parent works on, or a parent without work
EXECUTORS = (LOCAL, DASK, CARRIED)

SWEEP = "sweep"  # kind of a parent of runs
PRUNE = "prune"  # kind of a pruning run

FAULT = "fault"  # code of an error of headviz itself
OUT_OF_MEMORY = "out-of-memory"

_NAME_LIMIT = 200


def new_id() -> str:
    """Eight hexadecimal digits: short enough to type, and a safe folder name."""
    return secrets.token_hex(4)


@dataclass(frozen=True)
class RunRecord:
    """One row of the registry.

    ``spec`` is the job's own plan as JSON: what, on which weights, with which options and seeds. ``device`` and
    ``threads`` are kept because results are equal bit for bit only where both are.
    """

    id: str
    kind: str
    spec: dict[str, Any]
    title: str = ""
    owner: str = ""
    version: str = ""  # of headviz, when the run was made
    executor: str = LOCAL
    device: str = "cpu"
    threads: int = 1
    expected: int = 0  # steps in all; 0 = not known
    parent: str | None = None
    created: float = 0.0  # seconds since 1970, as all times here

    state: str = QUEUED
    attempt: int = 0  # how often a worker has taken it
    claim: str = ""  # the token of the worker that may write; a late one holds another
    claimed: float = 0.0  # in seconds since boot
    started: float | None = None
    ended: float | None = None
    worker: Identity | None = None
    error: str = ""
    code: str = ""  # of that error
    resumable: bool = True  # False = the run cannot go on, for the reason in ``error``
    archived: bool = False
    order: int = field(default=0, compare=False)  # place in the queue

    def __post_init__(self) -> None:
        if len(self.title) > _NAME_LIMIT:
            raise OptionError(f"A run's title has at most {_NAME_LIMIT} characters; this one has {len(self.title)}.")
        if self.threads < 1:
            raise OptionError(f"A run needs at least one thread, not {self.threads}.")
        if self.executor not in EXECUTORS:
            raise OptionError(f"An executor is one of {', '.join(EXECUTORS)}, not '{self.executor}'.")

    @property
    def pid(self) -> int | None:
        return self.worker.pid if self.worker else None

    @property
    def slot(self) -> str:
        """The queue that the run waits in: its device, or the cluster."""
        return DASK if self.executor == DASK else self.device


def may_change(record: RunRecord, user: str) -> bool:
    """Only the user who started a run may cancel, resume, archive or delete it; others may look."""
    return record.owner == user


def check_owner(record: RunRecord, user: str, action: str) -> None:
    if not may_change(record, user):
        raise RunError(f"Run {record.id} belongs to {record.owner}; only {record.owner} may {action} it.")


def check_id(text: str) -> str:
    """An id or its beginning, as typed by a user; a ``RunError`` if it cannot be one."""
    text = text.strip().lower()
    if not re.fullmatch(r"[0-9a-f]{1,8}", text):
        raise RunError(f"'{text[:40]}' is not a run's id. `headviz run list` shows them.")
    return text


# rows of the registry -------------------------------------------------------------------------

COLUMNS = tuple(
    (
        "id kind spec title owner version executor device threads expected parent created state attempt claim "
        "claimed started ended place pid pid_start error code archived resumable"
    ).split()
)


def to_row(record: RunRecord) -> dict[str, Any]:
    row = {name: getattr(record, name) for name in COLUMNS if hasattr(record, name)}
    who = record.worker
    row |= {"spec": json.dumps(record.spec, ensure_ascii=False), "archived": int(record.archived)}
    row["resumable"] = int(record.resumable)
    return row | {
        "place": who.place if who else None,
        "pid": who.pid if who else None,
        "pid_start": who.start if who else None,
    }


def from_row(row: dict[str, Any]) -> RunRecord:
    found = dict(row)
    place, pid, start = found.pop("place"), found.pop("pid"), found.pop("pid_start")
    return RunRecord(
        **{
            **found,
            "spec": json.loads(found["spec"]),
            "archived": bool(found["archived"]),
            "resumable": bool(found["resumable"]),
            "worker": None if pid is None else Identity(place, pid, start),
        }
    )
