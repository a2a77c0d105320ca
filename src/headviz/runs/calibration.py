"""How long a plan may take: a few examples are scored, trained on and evaluated, and the times are scaled up.

The estimate ignores that pruned models are faster and that other work may share the machine.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import Cancelled
from ..progress import Cancel, stop_if

if TYPE_CHECKING:
    from ..models.classifier import Classifier
    from ..pruning.options import FinetuneOptions
    from ..pruning.plan import PruningPlan
    from ..tasks import Dataset
    from .prepare import Amount, Prepared

EXAMPLES = 128  # evaluated for the calibration
SCORED = 24  # scored for it
ROUNDS = 2  # of a score that reads all examples together
UPDATES = 6  # trained for it, after two that warm up
TRAIN_LIMIT = 8.0  # seconds of training at most
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
    with _threads(threads):
        plan = _plan_of(prepared)
        evaluation = _evaluation(prepared, plan.label_order, cancel)
        scoring = _scoring(prepared, plan, cancel)
        finetuning = _finetuning(prepared, plan, cancel) if prepared.amount.finetunings else None
    return Estimate(
        scoring,
        finetuning,
        evaluation,
        total(prepared.amount, scoring, finetuning, evaluation),
        time.perf_counter() - begun,
    )


@contextmanager
def _threads(count: int) -> Iterator[None]:
    import torch

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


def _plan_of(prepared: Prepared) -> PruningPlan:
    from ..pruning.job import make

    return make(prepared.spec).plan


def _some(data: Dataset, count: int) -> Dataset:
    """Examples drawn at random: the first ones of a file may all be short."""
    if len(data) <= count:
        return data
    drawn = np.random.default_rng(0).choice(len(data), count, replace=False)
    return data.subset(sorted(int(i) for i in drawn))


def _evaluation(prepared: Prepared, order: Sequence[str] | None, cancel: Cancel | None) -> float:
    from ..evaluation.dispatch import evaluator_of

    context = prepared.context
    part = _some(context.dev, EXAMPLES)

    def measure(data: Dataset) -> None:
        evaluator_of(context.clf, data, label_order=order).evaluate(cancel=cancel)

    measure(_some(part, 8))  # warms up
    begun = time.perf_counter()
    measure(part)
    return (time.perf_counter() - begun) * len(context.dev) / len(part)


def _scoring(prepared: Prepared, plan: PruningPlan, cancel: Cancel | None) -> float:
    from ..pruning.step_scores import keywords
    from ..scores.scoring import score_heads

    context = prepared.context
    whole = context.sample(plan, plan.seeds[0], plan.samples)
    # a score of all examples together takes as long as it has rounds, however many examples there are
    rounds = rounds_of(plan)
    few = plan
    if rounds is not None:
        fewer = {**dict(plan.score_options), rounds[0]: ROUNDS}
        few = replace(plan, score_options=tuple(fewer.items()))

    def seconds(part: Dataset) -> float:
        begun = time.perf_counter()
        score_heads(context.clf, part, **keywords(few, plan.seeds[0], cancel=cancel))
        return time.perf_counter() - begun

    if rounds is not None:
        return seconds(whole) * rounds[1] / ROUNDS

    seconds(_some(whole, 4))  # warms up
    part = _some(whole, SCORED)
    return seconds(part) * len(whole) / len(part)


def rounds_of(plan: PruningPlan) -> tuple[str, int] | None:
    """The option that says how many rounds a score of all examples together takes, and its value; None for others."""
    from ..scores.catalogue import SCORES

    score = SCORES.get(plan.score)
    if score is None or not score.of_whole:
        return None
    given = dict(plan.score_options)
    for field in fields(score.options):
        if field.name in ("steps", "permutations"):
            return field.name, int(given.get(field.name, field.default))
    return None


def _finetuning(prepared: Prepared, plan: PruningPlan, cancel: Cancel | None) -> float:
    from ..pruning.options import FinetuneOptions

    context = prepared.context
    options = plan.finetune or context.recipe or FinetuneOptions()
    seed = plan.seeds[0]
    return _training(context.base(seed), context.train, options, seed, plan.label_order, cancel)


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
    from ..pruning.finetune.trainer import updates_of
    from ..pruning.finetune.training import require_trainable
    from ..tasks import trained_on
    from .jobs.finetune import make
    from .prepare import device_name

    job = make(spec)
    clf, train, dev, options = job.load()
    require_trainable(clf, train, dev, options)
    with _threads(threads):
        part = _some(dev, EXAMPLES)
        begun = time.perf_counter()
        evaluate(clf, part, label_order=job.spec.label_order)
        evaluation = (time.perf_counter() - begun) * len(dev) / len(part)
        training = _training(clf, train, options, job.spec.seed, job.spec.label_order, cancel)
    rounds = 1 + (int(options.epochs) if options.evaluate_epochs or options.early_stopping else 0)
    seconds = LOADING + training + rounds * evaluation
    updates = updates_of(options, len(train))
    return Training(updates, len(train), seconds, device_name(clf.device), trained_on(train, dev))


def _training(
    clf: Classifier,
    train: Dataset,
    options: FinetuneOptions,
    seed: int,
    order: Sequence[str] | None,
    cancel: Cancel | None = None,
) -> float:
    """Seconds of a whole training, from its first updates."""
    from ..pruning.finetune.trainer import updates_of
    from ..pruning.finetune.training import fine_tune

    wanted = updates_of(options, len(train))
    part = _some(train, options.batch * options.accumulation * (UPDATES + 2))
    # neither dev metrics nor a best epoch: only the updates are timed
    plain = replace(options, early_stopping=None, evaluate_epochs=False)
    begun = time.perf_counter()
    times: list[tuple[int, float]] = []

    def note(done: int, _: int) -> None:
        if not times or done > times[-1][0]:
            times.append((done, time.perf_counter()))

    def enough() -> bool:
        if cancel is not None and cancel():
            return True
        last = times[-1][0] if times else 0
        return last >= UPDATES + 2 or (last >= 2 and time.perf_counter() - begun > TRAIN_LIMIT)

    with suppress(Cancelled):
        fine_tune(clf, part, plain, seed, label_order=order, progress=note, cancel=enough)
    stop_if(cancel)
    measured = [t for t in times if t[0] >= 2] or times
    if len(measured) < 2:  # a training of one update: only its whole time is known
        return (time.perf_counter() - begun) * wanted
    (first, start), (last, end) = measured[0], measured[-1]
    return (end - start) / (last - first) * wanted
