"""Which full model the steps of a pruning run are compared with; page, reports and saved files all ask here.

An algorithm that retrains is compared with the full θ0 that was trained in the same way with the same seed. All other
algorithms, and runs that were told not to train the full model, are compared with θ*, the model as it was given.
Where both exist both are shown by name; they are never averaged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import mean, stdev
from typing import Any

from ..pruning import algorithms
from ..pruning.plan import DRAWN
from ..pruning.roles import GIVEN as GIVEN
from ..pruning.roles import NAMES as NAMES
from ..pruning.roles import PRUNED as PRUNED
from ..pruning.roles import RETRAINED as RETRAINED
from ..pruning.roles import WORDS as WORDS

Step = Mapping[str, Any]  # a step of a run as JSON


def role(step: Step) -> str:
    """What a step's model is: GIVEN (θ*), RETRAINED (the full model, trained again) or PRUNED.

    Step 0 of a run that trains nothing repeats θ* and is called GIVEN.
    """
    if step.get("step") != 0 and not step.get("reference"):
        return PRUNED
    trained = not step.get("reference") and "train" in (step.get("phases") or {})
    return RETRAINED if trained else GIVEN


def against(spec: Mapping[str, Any], baseline: Sequence[Step]) -> str:
    """Which full model the steps of a run with this plan are compared with, known before it has been trained."""
    wanted = retrains(spec) and spec.get("retrain_full", True)
    return RETRAINED if wanted or any(role(s) == RETRAINED for s in baseline) else GIVEN


def retrains(spec: Mapping[str, Any]) -> bool:
    """Whether the run's algorithm trains the pruned networks."""
    return algorithms.retrains(str(spec.get("algorithm")))


def full_of(baseline: Sequence[Step], seed: Any, which: str) -> Step | None:
    """The full model that a step of this seed is compared with; None before it has been measured."""
    same = [s for s in baseline if role(s) == which]
    if which == GIVEN:  # one model for all seeds
        return next((s for s in same if s.get("reference")), same[0] if same else None)
    return next((s for s in same if s.get("seed") == seed), None)


def distinct(baseline: Sequence[Step]) -> list[Step]:
    """The full models, each once: θ* first, then the retrained one of every seed."""
    given = full_of(baseline, None, GIVEN)
    return [*([] if given is None else [given]), *(s for s in baseline if role(s) == RETRAINED)]


def ties(steps: Sequence[Step]) -> bool:
    """Whether heads tied in the score of some step."""
    return any(s.get("tied") for s in steps)


def tie_rule(spec: Mapping[str, Any], steps: Sequence[Step]) -> str:
    """How a run with this plan breaks ties, a sentence with its blank; nothing where none were found."""
    drawn = spec.get("ties") == DRAWN
    rule = "at random from the run's seed" if drawn else "by layer and head, because an older version planned the run"
    return f" Heads that tie are removed {rule}." if ties(steps) else ""


def changes(step: Step, baseline: Sequence[Step], which: str) -> dict[str, dict[str, float | None]]:
    """For each metric the step's value minus the full model's.

    The interval and p come from the step's record, which compares with θ*. Against a retrained model there are none,
    because two trainings differ by chance as well, and only several seeds show by how much.
    """
    if which == GIVEN:
        known = (step.get("deltas") or {}).items()
        return {n: {k: v if d.get("delta") is not None else None for k, v in d.items()} for n, d in known}
    full = full_of(baseline, step.get("seed"), which)
    out = {}
    for name, value in step["metrics"].items():
        before = None if full is None else full["metrics"].get(name)
        known = value is not None and before is not None
        out[name] = {"delta": value - before if known else None, "low": None, "high": None, "p": None}
    return out


def named(
    spec: Mapping[str, Any], baseline: Sequence[Step], steps: Sequence[Step]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Baseline and steps with ``role`` and, for pruned models, ``against`` and ``change``."""
    which = against(spec, baseline)
    return (
        [{**s, "role": role(s)} for s in baseline],
        [{**s, "role": PRUNED, "against": which, "change": changes(s, baseline, which)} for s in steps],
    )


def summary(baseline: Sequence[Step], which: str, metric: str) -> tuple[float, float | None, int] | None:
    """Mean, sd and number over the full models of one kind that have this metric; None without any."""
    chosen = [s for s in distinct(baseline) if role(s) == which]
    values = [v for s in chosen if (v := s["metrics"].get(metric)) is not None and math.isfinite(v)]
    if not values:
        return None
    return mean(values), stdev(values) if len(values) > 1 else None, len(values)
