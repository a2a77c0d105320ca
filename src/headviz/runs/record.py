"""The record of a run, what was asked for and what has become of it; and the table of what may follow what.

queued      its record is written, nothing runs yet
running     a worker process works on it
cancelling  asked to stop; the worker has not confirmed yet
cancelled   stopped because somebody asked; finished steps are kept, it can be resumed
failed      stopped by an error, which the record names; it can be resumed once its cause is removed
lost        the worker ended without a message (killed, machine restarted); it can be resumed
done        every step is finished
broken      its record cannot be read; no row of the registry says this
"""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import dataclass, field
from typing import Any

from ..errors import OptionError, RunError, UserError, one_line, shown
from .process import Identity

QUEUED, RUNNING, CANCELLING = "queued", "running", "cancelling"
CANCELLED, FAILED, LOST, DONE, BROKEN = "cancelled", "failed", "lost", "done", "broken"

STATES = (QUEUED, RUNNING, CANCELLING, CANCELLED, FAILED, LOST, DONE, BROKEN)
ACTIVE = frozenset({RUNNING, CANCELLING})  # a process should be there
ENDED = frozenset({CANCELLED, FAILED, LOST, DONE, BROKEN})  # no process may be there
RESUMABLE = frozenset({CANCELLED, FAILED, LOST})

CLAIM = "claim"  # a worker takes the run
CANCEL = "cancel"  # somebody asks it to stop
STOP = "stop"  # the worker has stopped as asked
FINISH = "finish"  # the last step is recorded
FAIL = "fail"  # an error ended it
VANISH = "vanish"  # the worker has ended without an outcome
RESUME = "resume"  # somebody asks to continue from the last step

# (state, event) -> state; other pairs are refused
TRANSITIONS = {
    (QUEUED, CLAIM): RUNNING,
    (QUEUED, CANCEL): CANCELLED,
    (QUEUED, FAIL): FAILED,  # its worker could not even be started
    (RUNNING, CANCEL): CANCELLING,
    (RUNNING, STOP): CANCELLED,  # the worker saw the request before the registry did
    (RUNNING, FINISH): DONE,
    (RUNNING, FAIL): FAILED,
    (RUNNING, VANISH): LOST,
    (CANCELLING, STOP): CANCELLED,
    (CANCELLING, FINISH): DONE,  # the last step ended before the request was seen
    (CANCELLING, FAIL): FAILED,
    (CANCELLING, VANISH): CANCELLED,  # it has ended, as was asked
    (CANCELLED, RESUME): QUEUED,
    (FAILED, RESUME): QUEUED,
    (LOST, RESUME): QUEUED,
}

_WHY_NOT = {
    CLAIM: "is {state}: only a queued run can be taken by a worker",
    CANCEL: "is {state}: there is nothing to cancel",
    RESUME: "is {state}: only a cancelled, failed or lost run can be resumed",
}


class IllegalTransition(RunError):
    """A run cannot do this in its present state."""


def follow(state: str, event: str, name: str = "") -> str:
    """The state after an event, or ``IllegalTransition`` with the reason."""
    after = TRANSITIONS.get((state, event))
    if after is None:
        reason = _WHY_NOT.get(event, "is {state}: '{event}' cannot happen now").format(state=state, event=event)
        raise IllegalTransition(f"Run {name} {reason}." if name else f"The run {reason}.")
    return after


def of_sweep(children: list[str]) -> str:
    """The state that a sweep shows, from the states of its runs."""
    have = set(children)
    if not have:
        return DONE
    if CANCELLING in have:
        return CANCELLING
    if RUNNING in have:
        return RUNNING
    if QUEUED in have:
        return QUEUED if have == {QUEUED} else RUNNING
    for worst in (BROKEN, FAILED, LOST, CANCELLED):
        if worst in have:
            return worst
    return DONE


LOCAL = "local"  # one process of this machine does the work
CARRIED = "carried"  # no process of its own: a sweep's run that its parent works on, or a parent without work

SWEEP = "sweep"  # kind of a parent of runs
PRUNE = "prune"  # kind of a pruning run

FAULT = "fault"  # code of an error of headviz itself
OUT_OF_MEMORY = "out-of-memory"

ID = re.compile(r"[0-9a-f]{8}")
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

    @property
    def pid(self) -> int | None:
        return self.worker.pid if self.worker else None

    @property
    def takes_any_card(self) -> bool:
        """Whether it runs here on a GPU, and its spec leaves open on which."""
        named = self.spec.get("device")
        return self.executor == LOCAL and self.device.startswith("cuda") and named in ("auto", "cuda")

    @property
    def placed_spec(self) -> dict[str, Any]:
        """The spec, with the card that the run was given; the first one is what ``auto`` and ``cuda`` mean."""
        placed = self.takes_any_card and self.device not in ("cuda", "cuda:0")
        return {**self.spec, "device": self.device} if placed else self.spec

    @property
    def slot(self) -> str:
        """The queue that the run waits in: its device, or its executor."""
        return self.executor if self.elsewhere else self.device

    @property
    def elsewhere(self) -> bool:
        """Whether its process hands the work to an executor (``runs.kinds``)."""
        return self.executor not in (LOCAL, CARRIED)


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

COLUMNS = (
    "id kind spec title owner version executor device threads expected parent created state attempt claim "
    "claimed started ended place pid pid_start error code archived resumable"
).split()

_NUMBER, _PERHAPS = int | float, int | float | None
_LATEST = 2e11  # seconds since 1970: the year 8307; Python's dates end at 9999
# columns that are not text -> their types
_KINDS: dict[str, Any] = {
    **dict.fromkeys("order threads expected attempt archived resumable".split(), int),
    **dict.fromkeys("created claimed".split(), _NUMBER),
    **dict.fromkeys("started ended pid".split(), _PERHAPS),
    **dict.fromkeys("parent place pid_start".split(), str | None),
}


def to_row(record: RunRecord) -> dict[str, Any]:
    row = {name: getattr(record, name) for name in COLUMNS if hasattr(record, name)}
    worker = record.worker
    return row | {
        "spec": json.dumps(record.spec, ensure_ascii=False),
        "archived": int(record.archived),
        "resumable": int(record.resumable),
        "place": worker.place if worker else None,
        "pid_start": worker.start if worker else None,
    }


def from_row(row: dict[str, Any]) -> RunRecord:
    """The record in a row of the registry. One that cannot be read is ``broken``, and does not hide the others."""
    try:
        return _read(row)
    except (ValueError, RecursionError, UserError) as error:
        return broken(str(row["id"]), str(row["owner"]), row["parent"], str(error) or type(error).__name__)


def broken(run_id: str, owner: str, parent: str | None, why: str) -> RunRecord:
    error = f"The record of run {run_id} is damaged ({one_line(why)[:200]}). `headviz run delete {run_id}` removes it."
    title = "its record is damaged"
    return RunRecord(run_id, BROKEN, {}, title, owner, parent=parent, state=BROKEN, error=error, resumable=False)


def _read(row: dict[str, Any]) -> RunRecord:
    for name, value in row.items():
        if not isinstance(value, _KINDS.get(name, str)):
            raise ValueError(f"{name} is {shown(value)}")
        if isinstance(value, float) and not abs(value) < _LATEST:
            raise ValueError(f"{name} is {value}")
    if not ID.fullmatch(row["id"]):
        raise ValueError("its id is not one of a run")
    if row["state"] not in STATES or row["state"] == BROKEN:
        raise ValueError(f"state is {shown(row['state'])}")
    spec = json.loads(row["spec"])
    if not isinstance(spec, dict) or not isinstance(spec.get("seeds") or [], list):
        raise ValueError("spec is not a plan")
    values = row | {"spec": spec, "archived": bool(row["archived"]), "resumable": bool(row["resumable"])}
    place, pid, start = values.pop("place"), values.pop("pid"), values.pop("pid_start")
    return RunRecord(**values, worker=None if pid is None else Identity(place, pid, start))
