"""The pruned model of a run's step, as folders that can be loaded, or as one zip file for a download."""

from __future__ import annotations

import os
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import RunError
from ..progress import Cancel, Progress, stop_if
from ..storage.paths import new_folder, refuse_special
from .files import RunFiles, disk_errors
from .queue import look
from .reading import state_of
from .record import PRUNE
from .registry import Registry

if TYPE_CHECKING:
    from ..pruning.context import Context
    from ..pruning.plan import PruningPlan
    from ..pruning.state import State

CHUNK = 4 * 2**20  # bytes between two looks at the cancel flag


def open_run(run_id: str) -> tuple[Context, PruningPlan, State]:
    """Models, data, plan and state of a pruning run by its id; a ``RunError`` before its first step."""
    from ..pruning.context import open_context
    from ..pruning.job import make

    registry = Registry()
    record = look(registry, run_id)
    if record.kind != PRUNE:
        raise RunError(f"Run {record.id} is of kind '{record.kind}': only pruning runs have pruned models.")
    state = state_of(record, registry.folder)
    if state is None:
        raise RunError(f"Run {record.id} has no step yet; it is {record.state}. Wait for its first step.")
    plan = make(record.spec).plan
    return open_context(plan, RunFiles(record.id, registry.folder).results), plan, state


def save_model(run_id: str, out: Path, seed: int | None = None, step: int | None = None) -> dict[str, str]:
    """Write a step's really pruned model, its masked export, the report and the curve; their places.

    By default the last step of the first seed. Loads the run's model and data.
    """
    from ..pruning.outcome import write_outcome

    out = new_folder(out)
    context, plan, state = open_run(run_id)
    if not state.steps:
        raise RunError(f"Run {run_id} has no pruned model yet. Wait for its first step.")
    return write_outcome(context, plan, state, out, seed, step)


def zip_model(
    run_id: str,
    out: Path,
    seed: int | None = None,
    step: int | None = None,
    *,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Path:
    """What ``save_model`` writes, as one zip file that holds a folder of the same name. ``progress`` counts bytes."""
    with disk_errors(out.parent):
        out.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(prefix=".saving-", dir=out.parent) as temporary:
            place = Path(temporary) / out.stem
            save_model(run_id, place, seed, step)
            part = Path(temporary) / "part.zip"
            pack_folder(place, part, progress, cancel)
            refuse_special(out)
            os.replace(part, out)
    return out


def pack_folder(folder: Path, out: Path, progress: Progress | None = None, cancel: Cancel | None = None) -> None:
    """A folder as a zip file without compression: weights hardly shrink."""
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    whole, done = sum(p.stat().st_size for p in files), 0
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for path in files:
            name = (Path(folder.name) / path.relative_to(folder)).as_posix()
            with path.open("rb") as source, archive.open(name, "w", force_zip64=True) as target:
                while chunk := source.read(CHUNK):
                    stop_if(cancel)
                    target.write(chunk)
                    done += len(chunk)
                    if progress is not None:
                        progress(done, whole)
