"""The models of a run's steps: as folders that can be loaded, as one zip file, and their maps of one example."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..attribution.rules import DEFAULT_STEPS
from ..errors import RunError
from ..heads import HeadId, HeadMask
from ..progress import Cancel, Progress, stop_if, tracked
from ..pruning.algorithms import ALGORITHMS, NOTHING
from ..pruning.job import make
from ..storage.paths import new_folder, refuse_special
from .files import RunFiles, writing_run
from .queue import look
from .reading import state_of
from .record import PRUNE
from .registry import Registry

if TYPE_CHECKING:
    from ..attribution.maps import Maps
    from ..models.classifier import Classifier
    from ..pruning.context import Context
    from ..pruning.plan import PruningPlan
    from ..pruning.state import State

CHUNK = 4 * 2**20  # bytes between two looks at the cancel flag


def open_run(run_id: str) -> tuple[Context, PruningPlan, State]:
    """Models, data, plan and state of a pruning run by its id; a ``RunError`` before its first step."""
    from ..pruning.context import open_context

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
    with writing_run(out.parent):
        out.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(prefix=".saving-", dir=out.parent) as temporary:
            place = Path(temporary) / out.stem
            save_model(run_id, place, seed, step)
            archive = Path(temporary) / "part.zip"
            pack_folder(place, archive, progress, cancel)
            refuse_special(out)
            os.replace(archive, out)
    return out


def pack_folder(folder: Path, out: Path, progress: Progress | None, cancel: Cancel | None) -> None:
    """A folder as a zip file without compression: weights hardly shrink."""
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    total, done = sum(p.stat().st_size for p in files), 0
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for path in files:
            name = (Path(folder.name) / path.relative_to(folder)).as_posix()
            with path.open("rb") as source, archive.open(name, "w", force_zip64=True) as target:
                while chunk := source.read(CHUNK):
                    stop_if(cancel)
                    target.write(chunk)
                    done += len(chunk)
                    if progress is not None:
                        progress(done, total)


THERE, REMOVED, NOT_KEPT = "there", "removed", "not kept"


@dataclass(frozen=True, eq=False)
class StepMap:
    """One head on one text after one step. The maps are None if the head was removed or the model was not kept."""

    step: int  # 0 = the model with every head
    sparsity: float
    state: str  # THERE, REMOVED, or NOT_KEPT: the step trained a model that is no longer on disk
    attention: np.ndarray | None = None  # float32 [T, T], rows = queries
    attribution: np.ndarray | None = None  # of the class that is explained at every step
    probabilities: tuple[float, ...] = ()
    error: float = float("nan")  # of the integration, relative, over all heads


@dataclass(frozen=True, eq=False)
class StepMaps:
    """One head at every step of a run. ``target`` is the class that is explained at all of them."""

    head: HeadId
    tokens: tuple[str, ...]
    labels: tuple[str, ...]
    target: str
    steps: tuple[StepMap, ...]
    notes: tuple[str, ...] = ()

    @property
    def nbytes(self) -> int:
        """What the maps take in memory."""
        return sum(m.nbytes for s in self.steps for m in (s.attention, s.attribution) if m is not None)


def step_maps(
    context: Context,
    plan: PruningPlan,
    state: State,
    head: HeadId,
    text: str,
    pair: str | None = None,
    *,
    seed: int | None = None,
    steps: Sequence[int] | None = None,
    target: str | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> StepMaps:
    """The maps of ``head`` for one text at the given steps (all); step 0 is the model with every head.

    The same class is explained at every step, so that the maps can be compared: ``target``, by default the class that
    the model predicts before anything is removed. Attributions are conductance at the library's default steps and
    are cached, so a second head of the same text takes no time. The run may still be going on.
    """
    from ..attribution.conductance import conductance

    seed = plan.seeds[0] if seed is None else seed
    recorded = [r.step for r in state.records if r.seed == seed]
    chosen = sorted({0, *(recorded if steps is None else (s for s in steps if s in recorded))})
    maps_of_steps, explained = [], target
    first: Maps | None = None
    for step in tracked(chosen, progress, cancel):
        model = _model(context, plan, state, seed, step)
        record = state.record(seed, step) or state.reference
        if model is None:
            maps_of_steps.append(StepMap(step, record.sparsity, NOT_KEPT))
            continue
        clf, mask = model
        label = "predicted" if explained is None else explained
        maps: Maps = conductance(clf, text, pair, target=label, mask=mask, steps=DEFAULT_STEPS, cancel=cancel)
        if first is None:
            first, explained = maps, maps.target_label if target is None else target
        present = head not in state.mask(record).off
        maps_of_steps.append(
            StepMap(
                step,
                record.sparsity,
                THERE if present else REMOVED,
                maps.attention[head] if present else None,
                maps.attribution[head] if present else None,
                tuple(float(p) for p in maps.probabilities),
                maps.error,
            )
        )
    assert first is not None  # step 0 always has a model
    return StepMaps(
        head, first.tokens, first.labels, explained or first.target_label, tuple(maps_of_steps), first.notes
    )


def _model(
    context: Context, plan: PruningPlan, state: State, seed: int, step: int
) -> tuple[Classifier, HeadMask | None] | None:
    """The model of a step, and the mask to put on it."""
    from ..pruning.outcome import model_of

    record = state.record(seed, step)
    if step == 0:
        trained = None if record is None else context.trained(record)
        return (context.clf if trained is None else trained), None
    assert record is not None
    if ALGORITHMS[plan.algorithm].retrains:
        trained = context.trained(record)
        return None if trained is None else (trained, None)
    if plan.repair == NOTHING:
        return context.clf, state.mask(record)
    return model_of(context, plan, state, seed, step), None
