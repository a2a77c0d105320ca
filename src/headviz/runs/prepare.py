"""From a pruning plan to the spec of a run, checked before a record is written, and how long it may take.

For the time a few examples are scored, trained on and evaluated, and the times are scaled up. The estimate ignores that
pruned models are faster and that other work may share the machine.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, astuple, dataclass, fields, replace
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import Cancelled, require_kind
from ..models.source import Source
from ..options import declared
from ..progress import Cancel, Progress, stop_if, tracked
from ..pruning.algorithms import ALGORITHMS
from ..pruning.options import FinetuneOptions
from ..pruning.plan import PruningPlan
from ..scores.catalogue import SCORES, score_named
from ..tasks import trained_on
from ..tasks.sampling import limited
from .jobs.finetune import make
from .reading import model_and_task
from .service import absolute

if TYPE_CHECKING:
    from ..pruning.context import Context
    from ..tasks import Dataset


@dataclass(frozen=True)
class Amount:
    """How much work a plan is."""

    seeds: int
    steps: int  # per seed
    finetunings: int
    scorings: int
    evaluations: int

    def __add__(self, other: Amount) -> Amount:
        return Amount(*map(add, astuple(self), astuple(other)))


@dataclass(frozen=True)
class Prepared:
    """A checked plan: what ``service.start`` needs, and what to show to the user before the start."""

    plan: PruningPlan
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
    planned = []
    for plan in tracked(plans, progress, cancel):
        require_kind(plan, PruningPlan, "plan = headviz.PruningPlan(model, task, algorithm)")
        places: dict[str, Any] = absolute(vars(plan))
        planned.append(_prepared(replace(plan, **places), contexts, cancel))
    return planned


def _prepared(plan: PruningPlan, contexts: dict[tuple[Any, ...], Context], cancel: Cancel | None) -> Prepared:
    plan.require_there()
    if plan.score:
        score_named(plan.score)
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
        plan=plan,
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
_LOADED = (
    *declared(Source),
    *"base base_revision train_split dev_split train_limit dev_limit prefix languages ablation reference".split(),
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
    return f"{plan.algorithm} by {plan.score}, {model_and_task(plan.model, plan.task)}"[:200]


def device_name(device: object) -> str:
    """The device's name for the queue: ``cuda`` and ``cuda:0`` are the same one."""
    text = str(device)
    return "cuda:0" if text == "cuda" else text


EXAMPLES = 128  # evaluated for the calibration
SCORED = 24  # scored for it
ROUNDS = 2  # of a score that reads all examples together
LOADING = 6.0  # seconds to start a process and load a model, once per run


@dataclass(frozen=True)
class Estimate:
    """Seconds; None where the plan has none of it."""

    scoring: float | None  # one scoring
    finetuning: float | None  # one fine-tuning
    evaluation: float  # one evaluation
    total: float
    calibration: float  # what the measuring took

    def to_dict(self) -> dict[str, Any]:
        return {f"{k}_seconds": v for k, v in asdict(self).items()}


def estimate(prepared: Prepared, threads: int, cancel: Cancel | None = None) -> Estimate:
    """Measure the three kinds of work of a checked plan on this machine, with as many threads as the run will have."""
    begun = time.perf_counter()
    with timed_with(threads):
        evaluation = _evaluation(prepared, cancel)
        scoring = _scoring(prepared, cancel)
        finetuning = _finetuning(prepared, cancel) if prepared.amount.finetunings else None
    return Estimate(
        scoring,
        finetuning,
        evaluation,
        total(prepared.amount, scoring, finetuning, evaluation),
        time.perf_counter() - begun,
    )


_TIMED = threading.Lock()  # the number of threads is the whole process's


@contextmanager
def timed_with(count: int) -> Iterator[None]:
    """Time something with so many threads, and one thing after the other."""
    import torch

    with _TIMED:
        before = torch.get_num_threads()
        torch.set_num_threads(count)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def total(amount: Amount, scoring: float | None, finetuning: float | None, evaluation: float) -> float:
    """Seconds of a whole run on one machine."""
    work = amount.scorings * (scoring or 0.0) + amount.finetunings * (finetuning or 0.0)
    return LOADING + work + amount.evaluations * evaluation


def _draw(data: Dataset, count: int) -> Dataset:
    """Examples drawn at random: the first ones of a file may all be short."""
    return data.subset(limited(data, count, 0))


def _evaluation(prepared: Prepared, cancel: Cancel | None) -> float:
    from ..evaluation.dispatch import evaluator_of

    context = prepared.context
    part = _draw(context.dev, EXAMPLES)

    def measure(data: Dataset) -> None:
        evaluator_of(context.clf, data, label_order=prepared.plan.label_order).evaluate(cancel=cancel)

    measure(_draw(part, 8))  # warms up
    begun = time.perf_counter()
    measure(part)
    return (time.perf_counter() - begun) * len(context.dev) / len(part)


def _scoring(prepared: Prepared, cancel: Cancel | None) -> float:
    from ..pruning.step import score_keywords
    from ..scores.scoring import score_heads

    plan, context = prepared.plan, prepared.context
    sample = context.sample(plan, plan.seeds[0], plan.samples)

    def seconds(plan: PruningPlan, data: Dataset) -> float:
        begun = time.perf_counter()
        score_heads(context.clf, data, **score_keywords(plan, plan.seeds[0], cancel=cancel))
        return time.perf_counter() - begun

    # a score of all examples together takes as long as it has rounds, however many examples there are
    if (rounds := rounds_of(plan)) is not None:
        options = {**dict(plan.score_options), rounds[0]: ROUNDS}
        return seconds(replace(plan, score_options=tuple(options.items())), sample) * rounds[1] / ROUNDS

    seconds(plan, _draw(sample, 4))  # warms up
    part = _draw(sample, SCORED)
    return seconds(plan, part) * len(sample) / len(part)


def rounds_of(plan: PruningPlan) -> tuple[str, int] | None:
    """The option that says how many rounds a score of all examples together takes, and its value; None for others."""
    score = SCORES.get(plan.score)
    if score is None or not score.needs_sample:
        return None
    options = dict(plan.score_options)
    for field in fields(score.options):
        if field.name in ("steps", "permutations"):
            return field.name, int(options.get(field.name, field.default))
    return None


def _finetuning(prepared: Prepared, cancel: Cancel | None) -> float:
    from ..pruning.finetuning import seconds_of

    plan, context = prepared.plan, prepared.context
    options = plan.finetune or context.recipe or FinetuneOptions()
    seed = plan.seeds[0]
    return seconds_of(context.base(seed), context.train, options, seed, plan.label_order, cancel)


@dataclass(frozen=True)
class Training:
    """A checked fine-tuning in numbers, with a note on its data or none."""

    updates: int
    examples: int
    seconds: float
    device: str  # as the queue names it
    note: str


def planned_training(spec: Mapping[str, Any], threads: int, cancel: Cancel | None = None) -> Training:
    """What a run of kind 'finetune' takes, from a few updates.

    Loads its model and data; a ``UserError`` says what cannot be trained, before a record is written.
    """
    from ..evaluation.dispatch import evaluate
    from ..pruning.finetuning import require_trainable, seconds_of
    from ..pruning.trainer import updates_of

    job = make(spec)
    clf, train, dev, options = job.load()
    require_trainable(clf, train, dev, options)
    with timed_with(threads):
        part = _draw(dev, EXAMPLES)
        begun = time.perf_counter()
        evaluate(clf, part, label_order=job.spec.label_order)
        evaluation = (time.perf_counter() - begun) * len(dev) / len(part)
        training = seconds_of(clf, train, options, job.spec.seed, job.spec.label_order, cancel)
    rounds = 1 + (int(options.epochs) if options.evaluate_epochs or options.early_stopping else 0)
    seconds = LOADING + training + rounds * evaluation
    updates = updates_of(options, len(train))
    return Training(updates, len(train), seconds, device_name(clf.device), trained_on(train, dev))
