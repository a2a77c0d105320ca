"""Join runs of single seeds, such as those of a sweep, because tickets and tables are about several seeds."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

from ...pruning.plan import PruningPlan
from ...pruning.state import State


def together(states: Sequence[State]) -> list[State]:
    """One state for each group of states that differ in their seeds only, in the order of first appearance.

    Weights, data and steps must be equal, too. A seed that occurs twice counts once. The result is for reading: do
    not continue a run from it.
    """
    groups: dict[str, list[State]] = {}
    for state in states:
        plan = {k: v for k, v in state.plan.items() if k != "seeds"}
        alike = [plan, state.finetune, state.model_digest, state.data_digest, state.sizes]
        groups.setdefault(json.dumps(alike, sort_keys=True), []).append(state)
    return [_joined(group) for group in groups.values()]


def _joined(group: Sequence[State]) -> State:
    first = group[0]
    seeds: list[int] = []
    choices, records, logits = list(first.choices), list(first.records), dict(first.logits)
    seeds += first.plan["seeds"]
    for state in group[1:]:
        new = [s for s in state.plan["seeds"] if s not in seeds]
        seeds += new
        choices += [c for c in state.choices if c.seed in new]
        records += [r for r in state.records if r.seed in new]
        logits |= state.logits
    if len(seeds) == len(first.plan["seeds"]):
        return first
    plan = {**first.plan, "seeds": seeds}
    return dataclasses.replace(
        first,
        plan=plan,
        plan_digest=PruningPlan.from_dict(plan).digest,
        choices=tuple(choices),
        records=tuple(records),
        notes=tuple(dict.fromkeys(n for s in group for n in s.notes)),
        logits=logits,
    )
