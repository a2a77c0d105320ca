"""From a pruning plan to the spec of a run. All checks are made here, before a record is written."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import Cancelled, require_kind
from ..progress import Cancel, Progress, stop_if, tracked
from ..pruning.algorithms import ALGORITHMS
from ..pruning.plan import PruningPlan
from .places import absolute

if TYPE_CHECKING:
    from ..pruning.context import Context


@dataclass(frozen=True)
class Amount:
    """How much work a plan is."""

    seeds: int
    steps: int  # per seed
    finetunings: int
    scorings: int
    evaluations: int

    def __add__(self, other: Amount) -> Amount:
        mine, theirs = dataclasses.astuple(self), dataclasses.astuple(other)
        return Amount(*(a + b for a, b in zip(mine, theirs, strict=True)))


@dataclass(frozen=True)
class Prepared:
    """A checked plan: what ``service.start`` needs, and what to show to the user before the start."""

    spec: dict[str, Any]
    title: str
    device: str
    amount: Amount
    sizes: tuple[int, ...]  # heads off after each step
    drawn: tuple[int, ...]  # examples that the heads are scored on, of each seed; empty = the score needs none
    heads: int
    notes: tuple[str, ...]
    context: Context


def prepare(plan: PruningPlan) -> Prepared:
    """Load the models and data of a plan and check it; a ``UserError`` says what cannot work.

    The spec holds the digests of weights and data, and a worker that finds others refuses to continue.

    >>> import headviz
    >>> plan = headviz.PruningPlan("demo", "demo", "mask-search", samples=20, dev_limit=20, device="cpu")
    >>> prepared = headviz.prepare(plan)
    >>> prepared.spec["algorithm"], sorted(prepared.spec["digests"])
    ('mask-search', ['base', 'data', 'model'])
    """
    return prepare_all([plan])[0]


def prepare_all(
    plans: Sequence[PruningPlan], progress: Progress | None = None, cancel: Cancel | None = None
) -> list[Prepared]:
    """The same for several plans; models and data that they share are loaded once."""
    contexts: dict[tuple[Any, ...], Context] = {}
    found = []
    for plan in tracked(plans, progress, cancel):
        require_kind(plan, PruningPlan, "plan = headviz.PruningPlan(model, task, algorithm)")
        here: dict[str, Any] = absolute(vars(plan))
        found.append(_prepared(dataclasses.replace(plan, **here), contexts, cancel))
    return found


def _prepared(plan: PruningPlan, contexts: dict[tuple[Any, ...], Context], cancel: Cancel | None) -> Prepared:
    from ..pruning.check import heads_off, notes_of, scored_on, start
    from ..pruning.context import open_context

    key = (ALGORITHMS[plan.algorithm].retrains, *(getattr(plan, name) for name in _LOADED))
    if key not in contexts:
        contexts[key] = open_context(plan, Path(tempfile.gettempdir()) / "headviz-nothing-is-written-here")
    context = contexts[key]
    stop_if(cancel)  # loading takes its time
    with suppress(Cancelled):  # makes all checks, then is stopped before it evaluates
        start(context, plan, cancel=lambda: True)
    clf = context.clf
    sizes = tuple(heads_off(plan, len(plan.rows(clf)), clf.num_heads))
    digests = {
        "model": context.digest("model", plan),
        "base": context.digest("base", plan) if ALGORITHMS[plan.algorithm].retrains else None,
        "data": context.digest("data", plan),
    }
    return Prepared(
        spec={**plan.to_dict(), "digests": digests},
        title=title_of(plan),
        device=device_name(clf.device),
        amount=amount(plan, len(sizes)),
        sizes=sizes,
        drawn=tuple(map(len, scored_on(context, plan))),
        heads=clf.num_layers * clf.num_heads,
        notes=tuple(dict.fromkeys(notes_of(context, plan))),
        context=context,
    )


# the options of a plan that say what is loaded
_LOADED = tuple(
    (
        "model revision base base_revision task data text_columns label_column train_split dev_split "
        "train_limit dev_limit device prefix languages ablation reference"
    ).split()
)


def amount(plan: PruningPlan, steps: int) -> Amount:
    """Scorings, fine-tunings and evaluations of a plan with so many steps per seed."""
    algorithm, seeds = ALGORITHMS[plan.algorithm], len(plan.seeds)
    full = seeds if algorithm.retrains and plan.retrain_full else 0
    trained = seeds * steps + full if algorithm.retrains else 0
    return Amount(
        seeds=seeds,
        steps=steps,
        finetunings=trained,
        scorings=seeds * (steps if algorithm.rescores else 1),
        evaluations=1 + full + seeds * steps,
    )


def title_of(plan: PruningPlan) -> str:
    """The title of a run in lists."""
    name = Path(plan.model).name or plan.model
    about = name if name == plan.task else f"{name} on {plan.task}"
    return f"{plan.algorithm} by {plan.score}, {about}"[:200]


def device_name(device: object) -> str:
    """The device's name for the queue: ``cuda`` and ``cuda:0`` are the same one."""
    text = str(device)
    return "cuda:0" if text == "cuda" else text
