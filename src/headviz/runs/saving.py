"""The pruned model of a run's step, as folders that others can load."""

from __future__ import annotations

from pathlib import Path

from ..errors import RunError
from .files import RunFiles
from .queue import look
from .registry import Registry


def save_model(
    run_id: str, out: Path, seed: int | None = None, step: int | None = None, registry: Registry | None = None
) -> dict[str, str]:
    """Write a step's really pruned model, its masked export, the report and the curve; their places.

    By default the last step of the first seed. Loads the run's model and data.
    """
    from ..pruning.context import open_context
    from ..pruning.outcome import write_outcome
    from .jobs.pruning import make, state_of

    registry = registry or Registry()
    record = look(registry, run_id)
    if record.kind != "prune":
        raise RunError(f"Run {record.id} is of kind '{record.kind}': only pruning runs leave pruned models.")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RunError(f"'{out}' exists and is not an empty folder. Choose another name or remove it first.")
    state = state_of(record, registry.folder)
    if state is None or not state.steps:
        raise RunError(f"Run {record.id} has no step yet; it is {record.state}.")
    plan = make(record.spec).plan
    context = open_context(plan, RunFiles(record.id, registry.folder).results)
    return write_outcome(context, plan, state, out, seed, step)
