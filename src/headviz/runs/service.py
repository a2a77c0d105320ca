"""Start, cancel, resume and wait for runs. Both the command line and the dashboard call these functions."""

from __future__ import annotations

import getpass
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from .. import __version__, plugins
from ..errors import RunError, one_line
from .executors import check
from .files import RunFiles
from .kinds import make_job
from .places import absolute
from .process import monotonic
from .queue import dispatch, look, room
from .record import CARRIED, LOCAL, SWEEP, RunRecord, check_owner, new_id
from .registry import Registry, RegistryBusy
from .states import ACTIVE, CANCEL, ENDED, QUEUED, RESUMABLE, RESUME, IllegalTransition, of_sweep

CANCEL_WAIT = 2.0  # seconds within which a cancel takes effect


def this_user() -> str:
    """The user of this process. A dashboard behind a login passes the name of its own user instead."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"


def new_record(
    kind: str,
    spec: Mapping[str, Any],
    *,
    title: str = "",
    owner: str | None = None,
    executor: str = LOCAL,
    device: str = "cpu",
    threads: int | None = None,
    parent: str | None = None,
) -> RunRecord:
    """A record that is not written yet; a ``UserError`` for a spec that its kind cannot read."""
    spec = {**spec, **absolute(spec), **plugins.used_by({**spec, "kind": kind})}
    if kind != SWEEP:
        make_job(kind, spec)
    return RunRecord(
        id=new_id(),
        kind=kind,
        spec=spec,
        title=one_line(title) or kind,
        owner=this_user() if owner is None else owner,
        version=__version__,
        executor=executor,
        device=device,
        threads=threads or default_threads(),
        parent=parent,
        created=time.time(),
    )


def family(registry: Registry, record: RunRecord) -> list[RunRecord]:
    """The run; for a sweep all its runs, and the sweep itself last."""
    return [*(registry.records(parent=record.id) if record.kind == SWEEP else []), record]


def shown_state(registry: Registry, record: RunRecord) -> str:
    """A run's state; the state of a sweep without a process follows from its runs."""
    if record.kind == SWEEP and record.executor == CARRIED:
        return of_sweep([look(registry, r.id).state for r in registry.records(parent=record.id)])
    return record.state


def default_threads() -> int:
    """``$OMP_NUM_THREADS`` if set, else all cores that this process may use."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def start(
    kind: str,
    spec: Mapping[str, Any],
    *,
    title: str = "",
    owner: str | None = None,
    executor: str = LOCAL,
    device: str = "cpu",
    threads: int | None = None,
) -> RunRecord:
    """Record a run and start it, or let it wait its turn. Without an owner it is the user's of this process.

    >>> from headviz import plugins
    >>> from headviz.runs import service
    >>> plugins.load(["examples/my_run.py"])
    >>> run = service.start("dice", {"rolls": 2}, title="does it work here?")
    >>> service.wait_for(run.id).state
    'done'
    """
    if kind == SWEEP:
        raise RunError("A sweep is many runs, and is started by headviz run sweep.")
    check(executor)
    registry = Registry()
    record = new_record(kind, spec, title=title, owner=owner, executor=executor, device=device, threads=threads)
    room(record.slot)  # refuses a setting that cannot be read, before a run is written down
    registry.add([record])
    RunFiles(record.id, registry.folder).create()
    dispatch(registry)
    return registry.get(record.id)


def cancel(run_id: str, user: str | None = None, *, wait: float = CANCEL_WAIT) -> RunRecord:
    """Ask a run to stop and wait for it a little. Finished steps stay; a sweep stops with all its runs.

    >>> from headviz import plugins
    >>> from headviz.runs import service
    >>> plugins.load(["examples/my_run.py"])
    >>> run = service.start("dice", {"rolls": 500, "seconds": 0.1})
    >>> run = service.cancel(run.id)
    >>> service.wait_for(run.id).state
    'cancelled'
    """
    registry = Registry()
    record = look(registry, run_id)
    check_owner(record, this_user() if user is None else user, "cancel")
    members = [m for m in family(registry, record) if m.state not in ENDED]
    if not members or shown_state(registry, record) in ENDED:
        raise IllegalTransition(f"Run {record.id} is {shown_state(registry, record)}: there is nothing to cancel.")
    # waiting runs first, or the end of a running one would start them
    for member in sorted(members, key=lambda m: m.state in ACTIVE):
        _ask(registry, member, user or this_user())
    until = time.monotonic() + wait
    while any(look(registry, m.id).state in ACTIVE for m in members) and time.monotonic() < until:
        time.sleep(0.05)
    with suppress(RunError):
        dispatch(registry)
    return registry.get(record.id)


def _ask(registry: Registry, record: RunRecord, who: str) -> None:
    if record.state in ACTIVE or record.state == QUEUED:
        RunFiles(record.id, registry.folder).ask_cancel(who)  # works even while the registry is locked
        brief = Registry(registry.folder, wait=1.0)
        with suppress(IllegalTransition, RegistryBusy):  # ended already, or recorded by the next reader
            brief.apply(record.id, CANCEL, words=f"by {who}")


def resume(run_id: str, user: str | None = None) -> RunRecord:
    """Continue a cancelled, failed or lost run from its last step; for a sweep all such runs of it.

    >>> from headviz import plugins
    >>> from headviz.runs import service
    >>> plugins.load(["examples/my_run.py"])
    >>> run = service.cancel(service.start("dice", {"rolls": 20, "seconds": 0.05}).id)
    >>> run = service.wait_for(run.id)
    >>> service.wait_for(service.resume(run.id).id).state
    'done'
    """
    registry = Registry()
    record = look(registry, run_id)
    check_owner(record, this_user() if user is None else user, "resume")
    if record.executor == CARRIED and record.parent:
        raise RunError(f"Run {record.id} belongs to sweep {record.parent}: resume that one.")
    again = [m for m in family(registry, record) if m.state in RESUMABLE]
    if record.kind != SWEEP:
        again = [record]  # the table of states refuses it where it cannot be
    elif not again:
        raise IllegalTransition(f"Sweep {record.id} has no cancelled, failed or lost run to resume.")
    for member in again:
        room(member.slot)
    for member in again:
        _again(registry, member)
    dispatch(registry)
    return registry.get(record.id)


def _again(registry: Registry, record: RunRecord) -> None:
    files = RunFiles(record.id, registry.folder)
    files.create()
    if record.state in RESUMABLE:
        files.cancel_flag.unlink(missing_ok=True)
    registry.apply(record.id, RESUME)


def wait_for(
    run_id: str, *, watch: Callable[[RunRecord], None] | None = None, timeout: float | None = None
) -> RunRecord:
    """Wait until a run has ended. Interrupting the wait does not stop the run.

    >>> from headviz import plugins
    >>> from headviz.runs import service
    >>> plugins.load(["examples/my_run.py"])
    >>> run = service.start("dice", {"rolls": 1})
    >>> service.wait_for(run.id, timeout=60).state
    'done'
    """
    registry = Registry()
    begun = monotonic()
    while True:
        record = look(registry, run_id)
        if watch is not None:
            watch(record)
        state = shown_state(registry, record)
        if state in ENDED:
            return record
        if state == QUEUED or record.kind == SWEEP:
            with suppress(RegistryBusy):
                dispatch(registry)
        if timeout is not None and monotonic() - begun > timeout:
            raise RunError(f"Run {record.id} is still {state} after {timeout:.0f} s; it goes on.")
        time.sleep(0.1)
