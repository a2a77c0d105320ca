"""``headviz.prune_faster``: prune a classifier until it is so many times as fast, at the least loss (Kwon 2022)."""

from __future__ import annotations

import copy
import dataclasses
import json
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..answers import ANSWERS
from ..answers.metrics import remark
from ..errors import ModelError, NotFinite, TaskError
from ..evaluation.dispatch import evaluate
from ..evaluation.paired import paired_change, same_answers
from ..evaluation.plain import class_order, counts_for, metrics_for
from ..models.feed_forward import neurons, outer_map, require_neurons
from ..models.network import require_model
from ..models.onnx import Session
from ..models.pruning import require_prunable
from ..progress import Cancel, PhaseProgress, after, of_phase
from ..results import Result, plain
from ..storage.store import Store, store_for
from ..storage.writing import replace_file
from ..tasks import sample
from ..tasks.dataset import require_dataset
from ..tasks.sampling import limited
from .algorithms import NOTHING
from .export import FILE, RuntimeTimer, answers, require_in_runtime, write_onnx
from .faster_search import Choice, Search, Shape
from .finetuning import fine_tune, seconds_of
from .latency import Timer, TimeTable, kept_table, measure_speed
from .options import (
    AUTO,
    BEST,
    IMPORTANCE,
    MEANS,
    ONNX_INT8,
    PASSES_OF_UPDATE,
    REFIT,
    TARGETS,
    TORCH,
    TRAINS,
    FasterOptions,
    FinetuneOptions,
    Round,
    rounds,
)
from .reconstruction import rebuild, set_weights, weights_of
from .removal import SOLVERS, require_repairable
from .trainer import Diverged, Teacher, updates_of
from .training_folder import remove_training
from .unit_gradients import Gradients, unit_gradients

if TYPE_CHECKING:
    from ..answers.answer import Answer
    from ..evaluation.plain import Evaluation
    from ..models.classifier import Classifier
    from ..progress import Progress
    from ..tasks import Dataset

HELD_OUT, LEAST_HELD_OUT = 512, 32  # train examples outside the sample, to compare the measures of importance on
CLASSES = 50  # with more, their changes are not reported one by one
CALIBRATION = "neg_calibration_error"


@dataclass(frozen=True)
class Faster(Result):
    """A faster model. ``change`` is that of the task's first measure, after - before, with its paired interval."""

    target: float
    speedup: float
    speedup_low: float
    speedup_high: float
    batch: int
    length: int
    seconds: tuple[float, float]  # of a batch, before and after
    ceiling: float  # times fewer operations for a text of this length: the speed if only these took time
    heads_per_layer: list[int]
    neurons_per_layer: list[int]
    parameters: tuple[int, int]
    error: dict[str, Any] | None  # of the layers' outputs on the sample, before and after the tuning
    metrics: dict[str, float] | None
    baseline: dict[str, float] | None
    change: dict[str, Any] | None
    agreement: float | None  # on dev, with the model before
    one_class: str  # a remark on answers of (nearly) one class; empty without
    importance: str  # what said how much a unit is worth
    repair: str  # of the kept weights
    tried: tuple[dict[str, Any], ...]  # with what was tried beside these two: ``Choice.tried``
    classes: dict[str, dict[str, Any]]  # the change of each class's F1
    calibration: dict[str, Any] | None  # the change of the negative calibration error: below 0 is worse
    rates: tuple[dict[str, Any], ...]  # learning rates, and what a short training with them leaves
    model: Classifier = dataclasses.field(repr=False, compare=False)
    table: TimeTable = dataclasses.field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        record = dataclasses.replace(self, model=None)  # type: ignore[arg-type]
        return {k: v for k, v in Result.to_dict(record).items() if k != "model"} | {"layers_empty": self.layers_empty}

    @property
    def layers_empty(self) -> list[int]:
        """Layers of which nothing but the biases is left."""
        sizes = zip(self.heads_per_layer, self.neurons_per_layer, strict=True)
        return [layer for layer, heads_and_neurons in enumerate(sizes) if heads_and_neurons == (0, 0)]


def prune_faster(
    clf: Classifier,
    data: Dataset,
    faster: float | Sequence[float] = 2.0,
    *,
    dev: Dataset | None = None,
    batch: int = FasterOptions.batch,
    length: int | None = FasterOptions.length,
    samples: int = FasterOptions.samples,
    remove: str = FasterOptions.remove,
    runtime: str = FasterOptions.runtime,
    repair: str = FasterOptions.repair,
    importance: str = FasterOptions.importance,
    rate: str = FasterOptions.rate,
    retrain: FinetuneOptions | None = FasterOptions.retrain,
    seed: int = FasterOptions.seed,
    label_order: Sequence[str] | str | None = None,
    cache: Store | bool = True,
    progress: PhaseProgress | None = None,
    cancel: Cancel | None = None,
) -> Faster | tuple[Faster, ...]:
    """Remove heads and feed-forward neurons until the model is ``faster`` times as fast on this machine.

    ``data`` are training examples with labels; ``dev`` is what both models are evaluated on. Several targets share the
    measurements and give a tuple. With ``retrain`` they also share their way: the model is cut in rounds, each trained
    on the labels and on what the whole model does, and a part of ``data`` says when a training stops. The other
    arguments are explained at ``FasterOptions``. The caller's model stays as it is. What sizes cost in time is kept in
    the ``cache``, for models of this shape on this machine.

    >>> import headviz
    >>> clf, data = headviz.load("demo", device="cpu"), headviz.load_task("demo", limit=32)
    >>> result = headviz.prune_faster(clf, data, faster=1.2, batch=2, length=8)
    >>> len(result.heads_per_layer), result.model.present == clf.present
    (12, False)
    """
    single = not isinstance(faster, list | tuple)
    targets = [float(speed) for speed in TARGETS.checked([faster] if single else faster)]
    require_model(clf)
    require_dataset(data)
    options = FasterOptions(batch, length, samples, runtime, repair, importance, rate, seed, remove, retrain)
    require_possible(clf, options, data)
    work = FasterSteps(clf, data, options, dev, label_order, progress, cancel, store=store_for(cache))
    way, results = rounds(targets, retrain is not None), dict[float, Faster]()
    for target in targets:
        work.search(remove).next(target, ())  # one out of reach is refused before a model is built
    shapes = {step: work.find(step.speed) for step in way} if retrain is None else {}
    for step in way:
        result = work.result(step, *(shapes.get(step) or work.find(step.speed)))
        if retrain is not None:
            work.begin(result.model)
        if step.is_target:
            results[step.speed] = result
    return results[targets[0]] if single else tuple(results[target] for target in targets)


def require_possible(clf: Classifier, options: FasterOptions, data: Dataset | None = None) -> None:
    """A ``ModelError`` for a model whose parts cannot be removed, or not tuned on such ``data``."""
    clf.check_classes()
    require_prunable(clf)
    require_neurons(clf)
    if options.runtime != TORCH:
        require_in_runtime(clf)
    if options.repair == MEANS and not _has_biases(clf):
        raise ModelError(
            f"{clf.family.title} has no bias behind its heads or its neurons, so '{MEANS}' has nowhere to put the mean "
            f"of the removed ones. Choose repair 'refit' or '{NOTHING}'."
        )
    if options.repair not in (BEST, NOTHING, MEANS):
        require_repairable(clf, options.repair, NOTHING, data)


def _has_biases(clf: Classifier) -> bool:
    """Whether the means of heads and neurons that go have a place."""
    matrices = ((clf.projections(row).output, outer_map(clf, row)) for row in range(clf.num_layers))
    return all(matrix.bias is not None for both in matrices for matrix in both)


VALIDATION, VALIDATION_MOST = 10, 2000  # one train example in so many, and at most so many, says when a training stops
LEAST_VALIDATION = 20
PATIENCE = 2  # epochs at least, and a quarter of them, where the options of the training name none
CHECKPOINT = 200  # updates between two checkpoints of a training, where its options name none
FACTORS = (1.0, 3.0, 10.0)  # of the learning rate that the options name
TRIAL, LEAST_TRIAL = 0.1, 200  # the share of a training that each rate is tried on, and updates at least


class FasterSteps:
    """The steps of ``prune_faster``. What several targets share is measured once, at first use.

    A ``table`` from before makes the sizes follow from those times, as a run that goes on needs it. With ``begin`` the
    model of an earlier round is cut further. Trainings keep their checkpoints in a ``folder``, if there is one.
    """

    def __init__(
        self,
        clf: Classifier,
        data: Dataset,
        options: FasterOptions,
        dev: Dataset | None = None,
        label_order: Sequence[str] | str | None = None,
        progress: PhaseProgress | None = None,
        cancel: Cancel | None = None,
        table: TimeTable | None = None,
        store: Store | None = None,
        folder: Path | None = None,
    ) -> None:
        if table is not None:
            self.table = table
        self.store, self.folder = store, folder
        self.clf, self.data, self.options = clf, data, options
        self.dev = None if dev is None else clf.answer.judged(dev)
        self.label_order, self.progress, self.cancel = label_order, progress, cancel
        if options.runtime == TORCH:
            self.timer = Timer(clf, options.batch, options.length)
        else:
            self.timer = RuntimeTimer(clf, options.batch, options.length, options.runtime == ONNX_INT8)
        self.start = clf  # what is cut
        self._searches: dict[tuple[str, str, TimeTable], Search] = {}
        self._gradients: dict[str, Gradients] = {}
        self._whole: dict[str, Evaluation] = {}  # the whole model's answers, by the digest of the data
        if len(data) <= options.samples:
            self.sample = data
        else:
            self.sample = sample(data, options.samples, options.seed, "none")
        if not len(self.sample):
            raise TaskError("There is nothing to measure importance on: the data set has no examples.")

    @property
    def datasets(self) -> list[Dataset]:
        """The data that it reads."""
        return [self.data] if self.dev is None else [self.data, self.dev]

    @cached_property
    def table(self) -> TimeTable:
        return kept_table(self.clf, self.timer, self.store, of_phase(self.progress, "timing"), self.cancel)

    def begin(self, start: Classifier | None) -> None:
        """Cut this model from now on; None = the whole one."""
        start = self.clf if start is None else start
        if start.digest != self.start.digest:
            self.start = start
            self._gradients.clear()
            self._searches.clear()

    def gradients(self, importance: str) -> Gradients:
        loss, to_mean = IMPORTANCE[importance]
        if loss not in self._gradients:
            progress = of_phase(self.progress, "scoring")
            self._gradients[loss] = unit_gradients(
                self.start, self.sample, self.label_order, progress, self.cancel, loss
            )
        measured = self._gradients[loss]
        return measured.to_mean if to_mean and measured.to_mean is not None else measured

    def find(self, target: float) -> tuple[Shape, Choice]:
        """The shape whose measured speed is nearest to the target, and what chose it."""
        choice = self.choose(target, self.options.remove)
        return self.search(self.options.remove, choice).find(target)[0], choice

    def search(self, remove: str, choice: Choice | None = None) -> Search:
        """The search by the times of the table."""
        choice = choice or Choice()
        key = (remove, choice.importance, self.table)
        if key not in self._searches:
            gradients, seed = self.gradients(choice.importance), self.options.seed
            self._searches[key] = Search(self.start, gradients, self.table, self.timer, remove, seed, whole=self.clf)
        search = self._searches[key]
        search.cancel, search.choice = self.cancel, choice
        return search

    def choose(self, target: float, remove: str) -> Choice:
        """Of several ways to say what a unit is worth, and of several repairs, those that keep the answers to other
        train examples nearest. Shapes are those of the table of times."""
        importance, repair = self.options.importance, self.options.repair
        if BEST not in (importance, repair):
            return Choice(importance, repair=repair)
        rows = dict[Shape, dict[str, Any]]()
        for name in IMPORTANCE if importance == BEST else (importance,):
            search = self.search(remove, Choice(name))
            sizes = search.next(target, ())
            assert sizes is not None
            if (shape := search.shape(sizes)) in rows:
                continue
            tried = {r: self._near_whole(self._repaired(shape, r)[0], self.held_out) for r in self._repairs}
            rows[shape] = {"importance": name, **tried}
        pairs = [(row, r) for row in rows.values() for r in (self._repairs if repair == BEST else (repair,))]
        best, repair = min(pairs, key=lambda pair: pair[0][pair[1]]["distance"])
        return Choice(best["importance"], tuple(rows.values()), repair)

    @cached_property
    def _repairs(self) -> tuple[str, ...]:
        """Those that are tried: of the best, all that this model can have."""
        named = self.options.repair
        if named != BEST:
            return tuple(dict.fromkeys((NOTHING, MEANS, named)))
        repairs = [NOTHING, *([MEANS] if _has_biases(self.clf) else [])]
        with suppress(ModelError):  # not every family can be solved again
            require_repairable(self.clf, REFIT, NOTHING, self.sample)
            repairs.append(REFIT)
        return tuple(repairs)

    def _near_whole(self, small: Classifier, data: Dataset) -> dict[str, Any]:
        """How far its answers to train examples are from the whole model's, and how many agree."""
        before, after = self._whole_answers(data), self._answers(small, data)
        distance = after.answer.imitated(torch.tensor(after.logits), torch.tensor(before.logits), 1.0)
        return {"distance": float(distance), "agreement": _agreement(before, after)}

    def _whole_answers(self, data: Dataset, progress: Progress | None = None) -> Evaluation:
        """Those of the whole model."""
        if data.digest not in self._whole:
            self._whole[data.digest] = self._answers(self.clf, data, progress)
        return self._whole[data.digest]

    def _answers(self, clf: Classifier, data: Dataset, progress: Progress | None = None) -> Evaluation:
        order = self.label_order
        return evaluate(clf, data, label_order=order, precision="float32", progress=progress, cancel=self.cancel)

    @cached_property
    def held_out(self) -> Dataset:
        """Train examples apart from the sample; the sample where there are too few others."""
        sampled = {(e.text, e.pair) for e in self.sample}
        others = self.data.subset([i for i, e in enumerate(self.data) if (e.text, e.pair) not in sampled])
        if len(others) < LEAST_HELD_OUT:
            return self.sample
        return others if len(others) <= HELD_OUT else sample(others, HELD_OUT, self.options.seed, "none")

    def _repaired(self, shape: Shape, repair: str) -> tuple[Classifier, dict[str, Any] | None]:
        """The model of a shape, and the error of its repair."""
        small = shape.cut(self.start)
        small = dataclasses.replace(small, model=copy.deepcopy(small.model))  # shares no weights with the caller's
        if repair == MEANS:
            absorb(self.start, small, shape, self.gradients("labels").means)
        if repair in (NOTHING, MEANS):
            return small, None
        progress = of_phase(self.progress, "tuning")
        # the target is the whole model, not what the round before has left
        return small, rebuild(self.clf, small, self.sample, SOLVERS[repair], progress, self.cancel)

    def built(
        self, shape: Shape, repair: str, step: Round | None = None, name: str = ""
    ) -> tuple[Classifier, dict[str, Any] | None, tuple[dict[str, Any], ...]]:
        """The model of a shape, tuned, and trained if asked for; the error of the tuning, and the learning rates that
        were tried."""
        small, error = self._repaired(shape, repair)
        options, (validation, train), rates = self.options.retrain, self._validation_split, tuple[dict[str, Any], ...]()
        if options is None:
            return small, error, rates
        if step is not None:
            options = dataclasses.replace(options, epochs=options.epochs * step.epochs)
        options = dataclasses.replace(options, checkpoint_steps=options.checkpoint_steps or CHECKPOINT)
        progress = of_phase(self.progress, TRAINS)
        if self.options.rate == AUTO and validation is not None:
            short = _trial(options, len(train))
            tried = len(FACTORS) * updates_of(short, len(train))
            total = tried + updates_of(options, len(train))  # trials and training have one clock
            rates = self._rates(small, short, validation, train, name, total)
            progress = after(progress, tried, total)
            if converged := [row for row in rates if row["distance"] is not None]:
                options = dataclasses.replace(options, learning_rate=min(converged, key=itemgetter("distance"))["rate"])
        if validation is not None and options.early_stopping is None:
            options = dataclasses.replace(options, early_stopping=max(PATIENCE, round(options.epochs / 4)))
        place = self.folder / f"training-{name}" if self.folder is not None and name else None
        trained = self._trained(small, train, options, progress, validation, place)
        if validation is not None:  # a training that leads farther from the whole model is not taken
            trained = min((trained, small), key=lambda model: self._near_whole(model, validation)["distance"])
            rates = tuple(
                row | {"taken": trained is not small and row["rate"] == options.learning_rate} for row in rates
            )
        return trained, error, rates

    def forget_training(self, name: str) -> None:
        """Remove the checkpoints and tried rates of a round whose model is saved: a run that stops before that trains
        nothing anew."""
        if self.folder is not None:
            remove_training(self.folder / f"training-{name}")
            self._tried_rates(name).unlink(missing_ok=True)

    def training_seconds(self, way: Sequence[Round]) -> float:
        """How long the trainings of these rounds take at most, from a few updates of the whole model."""
        if not way:
            return 0.0
        options, (validation, train) = self.options.retrain, self._validation_split
        assert options is not None
        tries = len(FACTORS) if self.options.rate == AUTO and validation is not None else 0
        of_whole = seconds_of(self.clf, train, options, self.options.seed, self.label_order, self.cancel)
        seconds = 0.0
        for step in way:
            of_round = dataclasses.replace(options, epochs=options.epochs * step.epochs)
            tried = tries * updates_of(_trial(of_round, len(train)), len(train)) / updates_of(of_round, len(train))
            seconds += of_whole * step.work / PASSES_OF_UPDATE * (1 + tried)
        return seconds

    def _trained(
        self,
        small: Classifier,
        data: Dataset,
        options: FinetuneOptions,
        progress: Progress | None,
        validation: Dataset | None = None,
        place: Path | None = None,
    ) -> Classifier:
        """Trained on labels and on what the whole model does, until a part of train gets no better."""
        return fine_tune(
            small,
            data,
            options,
            self.options.seed,
            dev=validation,
            label_order=self.label_order,
            teacher=Teacher(self.clf),
            folder=place,
            progress=progress,
            cancel=self.cancel,
        ).classifier

    def _rates(
        self, small: Classifier, short: FinetuneOptions, validation: Dataset, data: Dataset, name: str, total: int
    ) -> tuple[dict[str, Any], ...]:
        """How far from the whole model's answers a short training with each learning rate leaves those to examples
        that are not trained on; None where the training diverged. What a stopped run has tried is not tried again.
        The trials are the first of ``total`` updates."""
        updates = updates_of(short, len(data))
        path = self._tried_rates(name) if self.folder is not None and name else None
        rows = json.loads(path.read_text()) if path is not None and path.exists() else []
        for factor in FACTORS[len(rows) :]:
            rate = short.learning_rate * factor
            progress = after(of_phase(self.progress, TRAINS), len(rows) * updates, total)
            try:
                trained = self._trained(small, data, dataclasses.replace(short, learning_rate=rate), progress)
                rows.append({"rate": rate, **self._near_whole(trained, validation)})
            except (Diverged, NotFinite):
                rows.append({"rate": rate, "distance": None, "agreement": None})
            if path is not None:
                replace_file(path, json.dumps(rows))
        return tuple(rows)

    def _tried_rates(self, name: str) -> Path:
        assert self.folder is not None
        return self.folder / f"rates-{name}.json"

    @cached_property
    def _validation_split(self) -> tuple[Dataset | None, Dataset]:
        """The train examples that say when a training stops, and those that are trained on, none of them equal."""
        count = min(len(self.data) // VALIDATION, VALIDATION_MOST)
        if count < LEAST_VALIDATION:
            return None, self.data
        chosen = limited(self.data, count, self.options.seed)
        texts = list(zip(self.data.texts, self.data.pairs or self.data.texts, strict=True))
        validation = {texts[i] for i in chosen}
        train = [i for i, text in enumerate(texts) if text not in validation]
        return (self.data.subset(chosen), self.data.subset(train)) if train else (None, self.data)

    def result(self, step: Round, shape: Shape, choice: Choice, name: str = "") -> Faster:
        """Build, time and evaluate the model of a shape; ``name`` is that of its training's folder."""
        small, error, rates = self.built(shape, choice.repair, step, name)
        progress = of_phase(self.progress, "measuring speed")
        speed = measure_speed(self.clf, small, self.timer, progress=progress, cancel=self.cancel)
        costs = [clf.cost(length=self.timer.length) for clf in (self.clf, small)]
        metrics = baseline = change = agreement = calibration = None
        one_class, classes = "", dict[str, Any]()
        if self.dev is not None:
            progress = of_phase(self.progress, "evaluating")
            before = self._whole_answers(self.dev, progress)
            if self.options.runtime == ONNX_INT8:
                after = self._in_int8(before, small, self.dev, progress)
            else:
                after = self._answers(small, self.dev, progress)
            metrics, baseline = after.metrics, before.metrics
            change, calibration, classes = self._changes(before, after, self.dev)
            agreement = _agreement(before, after)
            one_class = remark(after.predicted, after.constant.get("accuracy"), metrics.get("accuracy"))
        return Faster(
            target=step.speed,
            speedup=speed.speedup,
            speedup_low=speed.low,
            speedup_high=speed.high,
            batch=self.timer.batch,
            length=self.timer.length,
            seconds=(speed.before, speed.after),
            ceiling=costs[0].flops / costs[1].flops,
            heads_per_layer=small.heads_per_layer,
            neurons_per_layer=neurons(small),
            parameters=(costs[0].parameters, costs[1].parameters),
            error=error,
            metrics=metrics,
            baseline=baseline,
            change=change,
            agreement=agreement,
            one_class=one_class,
            importance=choice.importance,
            repair=choice.repair,
            tried=choice.tried,
            classes=classes,
            calibration=calibration,
            rates=rates,
            model=small,
            table=self.table,
        )

    def _in_int8(self, before: Evaluation, small: Classifier, dev: Dataset, progress: Progress | None) -> Evaluation:
        """The answers of the int8 file, which is what was timed."""
        with tempfile.TemporaryDirectory(prefix="headviz-int8-") as place:
            session = Session(small, write_onnx(small, Path(place) / FILE, "int8"), torch.get_num_threads())
            (logits,), order = answers(small, dev, [session.outputs], self.label_order, progress, self.cancel)
        return dataclasses.replace(
            before,
            logits=logits,
            metrics=metrics_for(dev, logits, order),
            predicted=counts_for(small, dev, logits, order),
        )

    def _changes(
        self, before: Evaluation, after: Evaluation, dev: Dataset
    ) -> tuple[dict[str, Any] | None, dict[str, Any] | None, dict[str, dict[str, Any]]]:
        """Of the task's first measure; where the answer is one class, of the calibration error and each class's F1."""
        if dev.labels is None:
            return None, None, {}
        order, gold, names = class_order(self.clf, dev, self.label_order), dev.gold, dev.label_names

        def change(answer: Answer, metric: str) -> dict[str, Any]:
            first, second = (answer.predicted(e.logits, order) for e in (before, after))
            return plain(paired_change(answer.answers(gold, first, names), second, metric).to_dict())

        first = change(dev.answer, dev.task.primary_metric)
        if not dev.answer.measures("f1_0"):
            return first, None, {}
        classes = {name: change(dev.answer, f"f1_{i}") for i, name in enumerate(names)} if len(names) <= CLASSES else {}
        # where an answer is one class, models give its probability as well
        calibrated = next(a for job in dev.answer.reads if (a := ANSWERS[job]).measures(CALIBRATION))
        return first, change(calibrated, CALIBRATION), classes


def absorb(full: Classifier, small: Classifier, shape: Shape, means: Sequence[np.ndarray]) -> None:
    """Add what the removed units give on average to the biases behind them (edited in place)."""
    for layer in range(full.num_layers):
        of_heads, of_neurons = means[layer], means[full.num_layers + layer]
        heads_stay = np.isin(full.present.kept_in(layer), shape.present.kept_in(layer))
        neurons_stay = np.isin(np.arange(len(of_neurons)), shape.neurons[layer])
        for stay, mean, whole, cut in (
            (heads_stay, of_heads, full.projections(layer).output, small.projections(layer).output),
            (neurons_stay, of_neurons, outer_map(full, layer), outer_map(small, layer)),
        ):
            if cut.bias is not None and mean.size:
                weights = weights_of(cut)
                weights[-1] += (mean * ~stay[:, None]).ravel() @ weights_of(whole)[:-1]
                set_weights(cut, weights)


def _trial(options: FinetuneOptions, examples: int) -> FinetuneOptions:
    """The short training that a learning rate is tried on."""
    share = min(1.0, max(TRIAL, LEAST_TRIAL / updates_of(options, examples)))
    return dataclasses.replace(options, epochs=options.epochs * share, early_stopping=None)


def _agreement(before: Evaluation, after: Evaluation) -> float | None:
    """The share of examples with the same answer; None where answers are numbers."""
    same = same_answers(before.predictions, after.predictions)
    return None if same is None else float(same.mean())
