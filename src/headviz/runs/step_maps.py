"""One example's attention and attribution under the models of a run, step by step (the thesis's Figures 6.2-6.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..attribution.rules import DEFAULT_STEPS
from ..heads import HeadId, HeadMask
from ..progress import Cancel, Progress, tracked
from ..pruning.algorithms import ALGORITHMS
from ..pruning.repair.kinds import NOTHING

if TYPE_CHECKING:
    from ..attribution.maps import Maps
    from ..models.classifier import Classifier
    from ..pruning.context import Context
    from ..pruning.plan import PruningPlan
    from ..pruning.state import State

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
    known = [r.step for r in state.records if r.seed == seed]
    wanted = sorted({0, *(known if steps is None else (s for s in steps if s in known))})
    found, explained = [], target
    first: Maps | None = None
    for step in tracked(wanted, progress, cancel):
        model = _model(context, plan, state, seed, step)
        record = state.record(seed, step) or state.reference
        if model is None:
            found.append(StepMap(step, record.sparsity, NOT_KEPT))
            continue
        clf, mask = model
        of = "predicted" if explained is None else explained
        maps: Maps = conductance(clf, text, pair, target=of, mask=mask, steps=DEFAULT_STEPS, cancel=cancel)
        if first is None:
            first, explained = maps, maps.target_label if target is None else target
        off = HeadMask.from_hex(record.mask, state.num_layers, state.num_heads).off
        there = head not in off
        found.append(
            StepMap(
                step,
                record.sparsity,
                THERE if there else REMOVED,
                maps.attention[head] if there else None,
                maps.attribution[head] if there else None,
                tuple(float(p) for p in maps.probabilities),
                maps.error,
            )
        )
    assert first is not None  # step 0 always has a model
    return StepMaps(head, first.tokens, first.labels, explained or first.target_label, tuple(found), first.notes)


def _model(
    context: Context, plan: PruningPlan, state: State, seed: int, step: int
) -> tuple[Classifier, HeadMask | None] | None:
    """The model of a step, and the mask to put on it."""
    from ..pruning.outcome import model_of

    record = state.record(seed, step)
    if step == 0:
        trained = None if record is None or record.model is None else context.trained(record)
        return (context.clf if trained is None else trained), None
    assert record is not None
    if ALGORITHMS[plan.algorithm].retrains:
        trained = context.trained(record)
        return None if trained is None else (trained, None)
    if plan.repair == NOTHING:
        return context.clf, HeadMask.from_hex(record.mask, state.num_layers, state.num_heads)
    return model_of(context, plan, state, seed, step), None
