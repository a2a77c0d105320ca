"""Old runs: archive them, or delete them with all their files."""

from __future__ import annotations

import shutil

from ..errors import RunError
from .files import RunFiles
from .process import kill, wait_gone
from .queue import look
from .record import CARRIED, SWEEP, RunRecord, check_owner
from .registry import Registry
from .service import family, this_user
from .states import ENDED, RESUMABLE


def used(run_id: str) -> int:
    """Bytes that a run keeps on disk, a sweep with all its runs: what deleting it frees."""
    registry = Registry()
    return sum(RunFiles(r.id, registry.folder).size() for r in family(registry, registry.get(run_id)))


def archive(run_id: str, user: str | None = None, *, back: bool = False) -> int:
    """Archive a run and delete the checkpoints of a finished one; steps, log and results stay.

    Returns the bytes freed. ``back`` takes it out of the archive again.
    """
    registry = Registry()
    record = look(registry, run_id)
    check_owner(record, this_user() if user is None else user, "archive")
    members = _ended(registry, record, "archived")
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
    members = _ended(registry, record, "deleted")
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


def _ended(registry: Registry, record: RunRecord, what: str) -> list[RunRecord]:
    members = family(registry, record)
    active = [r for r in members if r.state not in ENDED and not (r.kind == SWEEP and r.executor == CARRIED)]
    if active:
        first = active[0]
        raise RunError(f"Run {first.id} is {first.state} and cannot be {what}. Cancel it first.")
    if record.parent:
        raise RunError(f"Run {record.id} belongs to sweep {record.parent}, which is {what} as a whole.")
    return members
