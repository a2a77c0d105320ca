"""The files of a finished run: the pruned model, its masked export, a report and the curve."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import plugins
from ..errors import RunError
from ..models.pruning import prune
from ..models.saving import Measured
from ..statistics.intervals import mean_and_sd
from ..storage.tables import to_csv
from ..storage.writing import replace_file
from .algorithms import ALGORITHMS, NOTHING
from .baselines import NAMES, RETRAINED, SECTIONS, role
from .plan import PruningPlan
from .removal import repaired
from .state import State, StepRecord

if TYPE_CHECKING:
    from ..models.classifier import Classifier
    from .context import Context

_OF_STATE = "plan finetune versions model_digest base_digest data_digest labels reference choices notes".split()
PRUNED, MASKED, REPORT, CURVE = "pruned", "masked", "report.json", "curve.csv"


def model_of(context: Context, plan: PruningPlan, state: State, seed: int, step: int) -> Classifier:
    """The pruned model of a step: the trained one, or θ* without its masked heads, repaired as in the run."""
    record = state.record(seed, step)
    if record is None or step == 0:
        if seed not in plan.seeds:
            raise RunError(f"This run has no seed {seed}. Its seeds: {', '.join(map(str, plan.seeds))}.")
        raise RunError(f"Seed {seed} has no step {step}. Steps so far: {_steps(state, seed)}.")
    if ALGORITHMS[plan.algorithm].retrains:
        trained = context.trained(record)
        if trained is None:
            raise RunError(
                f"The model of seed {seed}, step {step} is not kept. Keep all of them "
                f"(--keep-models all, keep_models='all'), or take the last step ({_steps(state, seed)[-1]})."
            )
        return trained
    if plan.repair == NOTHING:
        return prune(context.clf, state.mask(record))
    data = context.sample(plan, seed, plan.repair_samples)
    return repaired(context.clf, state.mask(record), data, plan.repair, context.memory).classifier


def write_outcome(
    context: Context,
    plan: PruningPlan,
    state: State,
    folder: str | Path | None = None,
    seed: int | None = None,
    step: int | None = None,
) -> dict[str, str]:
    """Write the pruned model, the masked export, the report and the curve into a new folder; returns their places.

    The default is the last step of the plan's first seed, because choosing by the dev metric would favour luck.
    """
    place = Path(folder) if folder is not None else context.folder / "outcome"
    seed = plan.seeds[0] if seed is None else seed
    step = max(_steps(state, seed), default=0) if step is None else step
    clf = model_of(context, plan, state, seed, step)
    clf.save(place / PRUNED, measured=for_card(context, plan, state.record(seed, step)))
    clf.export_masked(place / MASKED)
    report = {**summary(state), "saved": {"seed": seed, "step": step, "digest": clf.digest}}
    replace_file(place / REPORT, json.dumps(report, indent=2, allow_nan=False) + "\n")
    header, rows = curve(state)
    replace_file(place / CURVE, to_csv(header, rows))
    return {name: str(place / name) for name in (PRUNED, MASKED, REPORT, CURVE)}


def for_card(context: Context, plan: PruningPlan, record: StepRecord | None) -> Measured:
    """What the card of a step's model says: its metrics on dev, and the change of the first against the full model."""
    if record is None:
        return Measured()
    change = None
    for metric, delta in record.deltas.items():
        if metric == context.dev.task.metrics[0]:
            ends = {end: math.nan if (value := delta[end]) is None else value for end in ("low", "high")}
            change = {"metric": metric, "difference": delta["delta"], **ends, "n": len(context.dev)}
    metrics = {name: value for name, value in record.metrics.items() if value is not None}
    return Measured(plan.task, metrics, change)


def summary(state: State) -> dict[str, Any]:
    """A run as JSON for reports: plan, steps, means over seeds, shares of time, and what sections say."""
    record = state.to_dict()
    summary: dict[str, Any] = {name: record[name] for name in _OF_STATE}
    summary |= {
        "grid": [state.num_layers, state.num_heads],
        "full": [s for s in record["records"] if s["step"] == 0],
        "steps": [s for s in record["records"] if s["step"] > 0],
        "by_sparsity": by_sparsity(state),
        "seconds": seconds(state),
    }
    for section in SECTIONS.values():
        summary |= plugins.function(section.summary)(state)
    return summary


def by_sparsity(state: State) -> list[dict[str, Any]]:
    """Mean, sd and range of every metric over the seeds that have reached a step; full models are step 0."""
    entries = []
    for step in range(len(state.sizes) + 1):
        records = [r for r in state.records if r.step == step]
        if not records:
            continue
        entry: dict[str, Any] = {"step": step, "sparsity": records[0].sparsity, "seeds": len(records), "metrics": {}}
        for name in records[0].metrics:
            values = [v for r in records if (v := r.metrics[name]) is not None]
            if values:
                mean, sd = mean_and_sd(values)
                entry["metrics"][name] = {"mean": mean, "sd": sd, "low": min(values), "high": max(values)}
        entries.append(entry)
    return entries


def seconds(state: State) -> dict[str, Any]:
    """Seconds by phase over all steps, and their shares of the whole."""
    by_phase: dict[str, float] = {}
    # without training, step 0 only repeats the reference's figures
    measured = [r for r in state.records if r.step > 0 or "train" in r.seconds]
    for record in (state.reference, *measured):
        for phase, value in record.seconds.items():
            by_phase[phase] = by_phase.get(phase, 0.0) + value
    total = sum(by_phase.values())
    shares = {phase: value / total if total else 0.0 for phase, value in by_phase.items()}
    return {"by_phase": by_phase, "total": total, "shares": shares}


def curve(state: State) -> tuple[tuple[str, ...], list[Sequence[Any]]]:
    """Header and rows of the pruning curve, one row per seed and step, with the model's name.

    If full models were trained too, θ* comes first, without seed and step.
    """
    names = tuple(state.reference.metrics)
    header = ("model", "seed", "step", "heads off", "sparsity", "mask", *names)
    header += tuple(f"{n} {end}" for n in names for end in ("low", "high"))
    header += ("agreement", "parameters", "flops", "seconds")
    rows = [_row(r, names) for r in state.records]
    if any(_role(r) == RETRAINED for r in state.records):
        reference = _row(state.reference, names)
        rows.insert(0, (reference[0], None, None, *reference[3:]))
    return header, rows


def _role(record: StepRecord) -> str:
    return role({"step": record.step, "phases": record.seconds})


def _row(r: StepRecord, names: tuple[str, ...]) -> Sequence[Any]:
    ends = [end for n in names for end in r.intervals.get(n, (None, None))]
    values = [r.metrics[n] for n in names]
    total = sum(r.seconds.values())
    # 0x, because a spreadsheet would read some masks as numbers
    return (
        NAMES[_role(r)],
        r.seed,
        r.step,
        r.heads_off,
        r.sparsity,
        f"0x{r.mask}",
        *values,
        *ends,
        r.agreement,
        r.parameters,
        r.flops,
        total,
    )


def _steps(state: State, seed: int) -> list[int]:
    return [r.step for r in state.steps if r.seed == seed]
