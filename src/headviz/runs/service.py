"""Start, cancel, resume, archive and delete runs. Both the command line and the dashboard call these functions."""

from __future__ import annotations

import getpass
import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from .. import __version__, plugins
from ..errors import RunError, is_one_of, one_line
from ..models import NAMED
from ..storage.paths import outside_path
from .files import RunFiles
from .kinds import check_executor, make_job
from .process import kill, monotonic, wait_gone
from .queue import check_runs_at_once, dispatch, look, spread
from .record import (
    ACTIVE,
    CANCEL,
    CARRIED,
    ENDED,
    LOCAL,
    QUEUED,
    RESUMABLE,
    RESUME,
    SWEEP,
    IllegalTransition,
    RunRecord,
    check_owner,
    new_id,
    of_sweep,
)
from .registry import Registry, RegistryBusy

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


def members_of(registry: Registry, record: RunRecord) -> list[RunRecord]:
    """The run; for a sweep all its runs, and the sweep itself last."""
    return [*(registry.records(parent=record.id) if record.kind == SWEEP else []), record]


def shown_state(registry: Registry, record: RunRecord) -> str:
    """A run's state; the state of a sweep without a process follows from its runs."""
    if record.kind == SWEEP and record.executor == CARRIED:
        return of_sweep([look(registry, r.id).state for r in registry.records(parent=record.id)])
    return record.state


def default_threads() -> int:
    """``$OMP_NUM_THREADS`` if set, else all cores that this process may use."""
    text = os.environ.get("OMP_NUM_THREADS", "")
    if text.isdecimal() and int(text) > 0:
        return int(text)
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
    check_executor(executor)
    registry = Registry()
    record = new_record(kind, spec, title=title, owner=owner, executor=executor, device=device, threads=threads)
    check_runs_at_once(record.slot)
    registry.add(spread(registry, [record]))
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
    members = [m for m in members_of(registry, record) if m.state not in ENDED]
    if not members or shown_state(registry, record) in ENDED:
        raise IllegalTransition(f"Run {record.id} is {shown_state(registry, record)}: there is nothing to cancel.")
    event_note, impatient_registry = f"by {user or this_user()}", Registry(registry.folder, wait=1.0)
    # waiting runs first, or the end of a running one would start them
    for member in sorted(members, key=lambda m: m.state in ACTIVE):
        RunFiles(member.id, registry.folder).ask_cancel(user or this_user())  # works even while the registry is locked
        with suppress(IllegalTransition, RegistryBusy):  # ended already, or recorded by the next reader
            impatient_registry.apply(member.id, CANCEL, words=event_note)
    until = time.monotonic() + wait
    while any(look(registry, m.id).state in ACTIVE for m in members) and time.monotonic() < until:
        time.sleep(0.05)
    with suppress(RunError):
        dispatch(registry)
    return registry.get(record.id)


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
    members = [m for m in members_of(registry, record) if m.state in RESUMABLE]
    if record.kind != SWEEP:
        members = [record]  # the table of states refuses it where it cannot be
    elif not members:
        raise IllegalTransition(f"Sweep {record.id} has no cancelled, failed or lost run to resume.")
    for member in members:
        check_runs_at_once(member.slot)
    for member in members:
        files = RunFiles(member.id, registry.folder)
        files.create()
        if member.state in RESUMABLE:
            files.cancel_flag.unlink(missing_ok=True)
        registry.apply(member.id, RESUME)
    dispatch(registry)
    return registry.get(record.id)


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


def absolute(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The model, base, data and trainings that lie on this machine. A shipped name stays one, as loading has it."""
    out: dict[str, Any] = {}
    for name in ("model", "base", "data"):
        value = spec.get(name)
        if value is not None and (name == "data" or not is_one_of(value, NAMED)):
            out[name] = _absolute(name, value, folder=name != "data")
    trainings = spec.get("trainings")
    if isinstance(trainings, list | tuple):
        out["trainings"] = [_absolute("training", training, folder=True) for training in trainings]
    return out


def _absolute(name: str, value: Any, folder: bool) -> Any:
    """The absolute path of what lies on this machine; another value as it is."""
    path = outside_path(value, name)
    return str(path.absolute()) if (path.is_dir() if folder else path.exists()) else value


def disk_usage(run_id: str) -> int:
    """Bytes that a run keeps on disk, a sweep with all its runs: what deleting it frees."""
    registry = Registry()
    return sum(RunFiles(r.id, registry.folder).size() for r in members_of(registry, registry.get(run_id)))


def archive(run_id: str, user: str | None = None, *, back: bool = False) -> int:
    """Archive a run and delete the checkpoints of a finished one; steps, log and results stay.

    Returns the bytes freed. ``back`` takes it out of the archive again.
    """
    registry = Registry()
    record = look(registry, run_id)
    check_owner(record, this_user() if user is None else user, "archive")
    members = _ended_members(registry, record, "archived")
    freed = 0
    for member in members:
        if not back and member.state not in RESUMABLE:  # a run that may go on needs its checkpoints
            files = RunFiles(member.id, registry.folder)
            before = files.size()
            for _, path in files.checkpoints.files()[1:]:
                path.unlink(missing_ok=True)
            files.free_reserve()
            files.sweep_temporary()
            freed += before - files.size()
        registry.set_archived(member.id, not back)
    return freed


def delete(run_id: str, user: str | None = None) -> int:
    """Delete a run with its folder: steps, log, checkpoints, models. Returns the bytes freed. Cannot be undone."""
    registry = Registry()
    record = look(registry, run_id)
    check_owner(record, this_user() if user is None else user, "delete")
    members = _ended_members(registry, record, "deleted")
    freed = 0
    for member in members:  # the sweep itself goes last, so that an interrupted deletion can be repeated
        files = RunFiles(member.id, registry.folder)
        if member.worker and not wait_gone(member.worker, 2.0):  # its outcome is recorded, it is about to end
            kill(member.worker)
        size = files.size()
        if files.folder.is_dir() and not files.folder.is_symlink():
            shutil.rmtree(files.folder)
        registry.delete(member.id)
        freed += size
    return freed


def _ended_members(registry: Registry, record: RunRecord, participle: str) -> list[RunRecord]:
    """The run and those of its sweep, if all have ended and may be archived or deleted, as the ``participle`` says."""
    members = members_of(registry, record)
    active = [r for r in members if r.state not in ENDED and not (r.kind == SWEEP and r.executor == CARRIED)]
    if active:
        first = active[0]
        raise RunError(f"Run {first.id} is {first.state} and cannot be {participle}. Cancel it first.")
    if record.parent:
        raise RunError(f"Run {record.id} belongs to sweep {record.parent}, which is {participle} as a whole.")
    return members
