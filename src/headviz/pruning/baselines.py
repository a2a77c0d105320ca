"""Which full model the steps of a pruning run are compared with, and what they show. Page, reports and files ask here.

An algorithm that retrains is compared with the full θ0 that was trained in the same way with the same seed. All other
algorithms, and runs that do not train the full model, are compared with θ*, the model before pruning.
Where both exist both are shown by name; they are never averaged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import mean, stdev
from typing import Any

from .. import plugins
from ..answers.metrics import continued, metric_title, remark
from ..display import numbers
from ..display.sentences import no_better
from ..evaluation.verdict import MARGIN, TOO_FEW, at_most, clear_from, excluded, within
from ..plugins import Section
from ..tasks import points_in
from . import algorithms
from .plan import DRAWN

GIVEN, RETRAINED, PRUNED = "given", "retrained", "pruned"
NAMES = {GIVEN: "unpruned model", RETRAINED: "full θ0, retrained the same way", PRUNED: "pruned"}
WORDS = {GIVEN: "the unpruned model", RETRAINED: "the full θ0 retrained the same way"}  # in a sentence


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
    trains_full = retrains(spec) and spec.get("retrain_full", True)
    return RETRAINED if trains_full or any(role(s) == RETRAINED for s in baseline) else GIVEN


def retrains(spec: Mapping[str, Any]) -> bool:
    """Whether the run's algorithm trains the pruned networks."""
    return algorithms.retrains(str(spec.get("algorithm")))


def full_of(baseline: Sequence[Step], seed: Any, full_role: str) -> Step | None:
    """The full model that a step of this seed is compared with; None before it has been measured."""
    models = [s for s in baseline if role(s) == full_role]
    if full_role == GIVEN:  # one model for all seeds
        return next((s for s in models if s.get("reference")), models[0] if models else None)
    return next((s for s in models if s.get("seed") == seed), None)


def distinct(baseline: Sequence[Step]) -> list[Step]:
    """The full models, each once: θ* first, then the retrained one of every seed."""
    full = full_of(baseline, None, GIVEN)
    return [*([] if full is None else [full]), *(s for s in baseline if role(s) == RETRAINED)]


def ties(steps: Sequence[Step]) -> bool:
    """Whether heads tied in the score of some step."""
    return any(s.get("tied") for s in steps)


def tie_rule(spec: Mapping[str, Any], steps: Sequence[Step]) -> str:
    """How a run with this plan breaks ties, a sentence with its blank; nothing where none were found."""
    drawn = spec.get("ties") == DRAWN
    rule = "at random from the run's seed" if drawn else "by layer and head, because an older version planned the run"
    return f" Heads that tie are removed {rule}." if ties(steps) else ""


def changes(step: Step, baseline: Sequence[Step], full_role: str) -> dict[str, dict[str, float | None]]:
    """For each metric the step's value minus the full model's.

    The interval and p come from the step's record, which compares with θ*. Against a retrained model there are none,
    because two trainings differ by chance as well, and only several seeds show by how much.
    """
    if full_role == GIVEN:
        deltas = (step.get("deltas") or {}).items()
        return {n: {k: v if d.get("delta") is not None else None for k, v in d.items()} for n, d in deltas}
    full = full_of(baseline, step.get("seed"), full_role)
    out = {}
    for name, value in step["metrics"].items():
        before = None if full is None else full["metrics"].get(name)
        delta = None if value is None or before is None else value - before
        out[name] = {"delta": delta, "low": None, "high": None, "p": None}
    return out


def change_of(step: Step, metric: str) -> Mapping[str, float | None]:
    """A step's change of a metric against its full model; empty where there is none."""
    return (step.get("change") or {}).get(metric) or {}


def named(
    spec: Mapping[str, Any], baseline: Sequence[Step], steps: Sequence[Step]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Baseline and steps with ``role`` and, for pruned models, ``against`` and ``change``."""
    full_role = against(spec, baseline)
    return (
        [{**s, "role": role(s)} for s in baseline],
        [{**s, "role": PRUNED, "against": full_role, "change": changes(s, baseline, full_role)} for s in steps],
    )


def summary(baseline: Sequence[Step], full_role: str, metric: str) -> tuple[float, float | None, int] | None:
    """Mean, sd and number over the full models of one kind that have this metric; None without any."""
    models = [s for s in distinct(baseline) if role(s) == full_role]
    values = [v for s in models if (v := s["metrics"].get(metric)) is not None and math.isfinite(v)]
    if not values:
        return None
    return mean(values), stdev(values) if len(values) > 1 else None, len(values)


def can_go(steps: Sequence[Step], metric: str, margin: float) -> float | None:
    """The largest share up to which every step excludes a loss beyond the margin; None if the first does not."""
    free = None
    for share, low in _lows(_by_share(steps), metric).items():
        if not within(low, margin / points_in(metric)):
            break
        free = share
    return free


def _by_share(steps: Sequence[Step]) -> dict[float, list[Step]]:
    groups: dict[float, list[Step]] = {}
    for s in steps:
        groups.setdefault(round(s["sparsity"], 9), []).append(s)
    return groups


def _lows(by_share: Mapping[float, Sequence[Step]], metric: str) -> dict[float, float | None]:
    """The lower end of the change at each share; None where it is not known for every seed."""
    lows: dict[float, float | None] = {}
    for share, group in sorted(by_share.items()):
        measured = [low for s in group if (low := change_of(s, metric).get("low")) is not None]
        lows[share] = min(measured) if len(measured) == len(group) else None
    return lows


def finding(steps: Sequence[Step], metric: str, margin: float = MARGIN) -> str:
    """The sentences of a run's steps; ``margin`` is in points."""
    by_share = _by_share(steps)
    last_share, last = max(by_share.items())
    first = one_class(steps)
    if any(s.get("against") == RETRAINED for s in last):
        return first + _retrained(last_share, last, metric)
    scale, called = points_in(metric), metric_title(metric)
    change = points_of(last, metric)
    end = f"{called} is {_mean(last, metric)} at {100 * last_share:.0f} %{change and f' ({change} points)'}"
    pairs = [(s["metrics"].get(metric), (s.get("constant") or {}).get(metric)) for s in last]
    if all(value is not None and constant is not None for value, constant in pairs):
        value, constant = (mean(column) for column in zip(*pairs, strict=True))
        end += no_better(metric, value, constant)
    end += "."
    changes = {share: [change_of(s, metric) for s in group] for share, group in sorted(by_share.items())}
    lost = clear_from([(share, [(c.get("low"), c.get("high")) for c in group]) for share, group in changes.items()])
    lows, free = _lows(by_share, metric), can_go(steps, metric, margin)
    if all(low is None for low in lows.values()):
        measured = any(change_of(s, metric).get("delta") is not None for s in steps)
        return first + end[:-1] + (f"; {TOO_FEW}." if measured else ".")
    if free is None:
        share, low = next(iter(lows.items()))
        sentence = f"At the first step, {100 * share:.0f} %, {excluded(low, scale, margin)}"
    else:
        low_of_free: Any = lows[free]
        sentence = f"Up to {100 * free:.0f} % of the heads can go {at_most(low_of_free, scale)} (margin {margin:g})"
    if lost is not None:
        sentence += (
            f". A loss is {lost[1]}{', at first within that margin' if free is not None and lost[0] <= free else ''}"
        )
    return f"{first}{sentence}. {end[0].upper()}{end[1:]}"


def one_class(steps: Sequence[Step]) -> str:
    """From which share of heads removed on (nearly) all answers are of one class; a sentence with its blank."""
    for s in sorted(steps, key=lambda s: s.get("sparsity") or 0.0):
        accuracies = (s.get("constant") or {}).get("accuracy"), s.get("metrics", {}).get("accuracy")
        if sentence := remark(s.get("predicted"), *accuracies):
            return f"With {100 * s['sparsity']:.0f} % of the heads removed, {continued(sentence)} "
    return ""


def points_of(group: Sequence[Step], metric: str) -> str:
    """The mean change of some steps in points; empty where none is known."""
    deltas = [d for s in group if (d := change_of(s, metric).get("delta")) is not None]
    return numbers.points(mean(deltas), points_in(metric)) if deltas else ""


def _retrained(share: float, group: Sequence[Step], metric: str) -> str:
    """Retrained networks against the full one, retrained the same way, seed by seed; no interval is known for that."""
    sentence = (
        f"With {100 * share:.0f} % of the heads removed and retrained, {metric_title(metric)} is {_mean(group, metric)}"
    )
    scale = points_in(metric)
    pairs = [(s["metrics"][metric] - d, d) for s in group if (d := change_of(s, metric).get("delta")) is not None]
    if not pairs:
        return f"{sentence}; the full θ0 retrained the same way is not measured yet."
    deltas = [d for _, d in pairs]
    full = numbers.metric(mean(value for value, _ in pairs), scale)
    change = numbers.points(mean(deltas), scale)
    if len(deltas) == 1:
        return f"{sentence}; the full θ0 retrained the same way reaches {full} ({change} points, one seed)."
    spread = f"{change} ± {numbers.points(stdev(deltas), scale).lstrip('+')} points over {len(deltas)} seeds"
    return f"{sentence}; the full θ0 retrained the same way reaches {full} ({spread})."


def _mean(group: Sequence[Step], metric: str) -> str:
    values = [s["metrics"][metric] for s in group if s["metrics"].get(metric) is not None]
    return numbers.metric(mean(values), points_in(metric)) if values else "undefined"


SECTIONS: Mapping[str, Section] = plugins.Entries("sections", ())
