"""``headviz.prune_faster``: a classifier that is so many times as fast, with the least loss (Kwon et al. 2022)."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..errors import TaskError
from ..evaluation.dispatch import evaluate
from ..evaluation.paired import paired
from ..evaluation.plain import class_order
from ..models.feed_forward import neurons, require_neurons
from ..models.network import require_model
from ..models.pruning import require_prunable
from ..progress import Cancel, PhaseProgress, of_phase
from ..results import Result
from ..tasks import sample
from ..tasks.dataset import require_dataset
from .algorithms import NOTHING
from .faster_options import TARGETS, FasterOptions
from .faster_search import Gradients, Search, Shape, gate_gradients
from .finetuning import fine_tune
from .latency import Table, Timer, measured, timed_table
from .options import FinetuneOptions
from .reconstruction import rebuild
from .removal import SOLVERS, require_repairable

if TYPE_CHECKING:
    from ..evaluation.plain import Evaluation
    from ..models.classifier import Classifier
    from ..tasks import Dataset


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
    heads_per_layer: list[int]
    neurons_per_layer: list[int]
    parameters: tuple[int, int]
    error: dict[str, Any] | None  # of the layers' outputs on the sample, before and after the tuning
    metrics: dict[str, float] | None
    baseline: dict[str, float] | None
    change: dict[str, Any] | None
    model: Classifier = dataclasses.field(repr=False, compare=False)
    table: Table = dataclasses.field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        found = dataclasses.replace(self, model=None)  # type: ignore[arg-type]
        return {k: v for k, v in Result.to_dict(found).items() if k != "model"} | {"layers_empty": self.layers_empty}

    @property
    def layers_empty(self) -> list[int]:
        """Layers of which nothing but the biases is left."""
        both = zip(self.heads_per_layer, self.neurons_per_layer, strict=True)
        return [layer for layer, sizes in enumerate(both) if sizes == (0, 0)]


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
    repair: str = FasterOptions.repair,
    retrain: FinetuneOptions | None = FasterOptions.retrain,
    seed: int = FasterOptions.seed,
    label_order: Sequence[str] | str | None = None,
    progress: PhaseProgress | None = None,
    cancel: Cancel | None = None,
) -> Faster | tuple[Faster, ...]:
    """Remove heads and feed-forward neurons until the model is ``faster`` times as fast on this machine.

    ``data`` are training examples with labels; ``dev`` is what both models are evaluated on. Several targets share the
    measurements and give a tuple. The other arguments are explained at ``FasterOptions``. The caller's model stays as
    it is.

    >>> import headviz
    >>> clf, data = headviz.load("demo", device="cpu"), headviz.load_task("demo", limit=32)
    >>> found = headviz.prune_faster(clf, data, faster=1.2, batch=2, length=8)
    >>> len(found.heads_per_layer), found.model.present == clf.present
    (12, False)
    """
    one = not isinstance(faster, list | tuple)
    targets = [float(speed) for speed in TARGETS.checked([faster] if one else faster)]
    require_model(clf)
    require_dataset(data)
    options = FasterOptions(batch, length, samples, repair, seed, remove, retrain)
    require_possible(clf, options)
    work = Work(clf, data, options, dev, label_order, progress, cancel)
    shapes = [work.find(target) for target in targets]  # a target out of reach is said before a model is built
    found = tuple(work.result(target, shape) for target, shape in zip(targets, shapes, strict=True))
    return found[0] if one else found


def require_possible(clf: Classifier, options: FasterOptions) -> None:
    """A ``ModelError`` for a model whose parts cannot be removed, or not tuned."""
    clf.check_classes()
    require_prunable(clf)
    require_neurons(clf)
    if options.repair != NOTHING:
        require_repairable(clf, options.repair)


class Work:
    """The steps of ``prune_faster``. What several targets share is measured once, at first use.

    A ``table`` from before makes the sizes follow from those times, as a run that goes on needs it.
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
        table: Table | None = None,
    ) -> None:
        if table is not None:
            self.table = table
        self.clf, self.data, self.options, self.dev = clf, data, options, dev
        self.label_order, self.progress, self.cancel = label_order, progress, cancel
        self.timer = Timer(clf, options.batch, options.length)
        self._before: Evaluation | None = None
        self._searches: dict[tuple[str, Table], Search] = {}
        if len(data) <= options.samples:
            self.some = data
        else:
            self.some = sample(data, options.samples, options.seed, "none")
        if not len(self.some):
            raise TaskError("There is nothing to measure importance on: the data set has no examples.")

    @property
    def read(self) -> list[Dataset]:
        """The data that it reads."""
        return [self.data] if self.dev is None else [self.data, self.dev]

    @cached_property
    def table(self) -> Table:
        return timed_table(self.clf, self.timer, of_phase(self.progress, "timing"), self.cancel)

    @cached_property
    def gradients(self) -> Gradients:
        told = of_phase(self.progress, "scoring")
        return gate_gradients(self.clf, self.some, self.label_order, told, self.cancel)

    def find(self, target: float) -> Shape:
        """The shape whose measured speed is nearest to the target."""
        return self.search(self.options.remove).find(target)[0]

    def search(self, remove: str) -> Search:
        """The search by the times of the table."""
        key = (remove, self.table)
        if key not in self._searches:
            self._searches[key] = Search(self.clf, self.gradients, self.table, self.timer, remove, self.options.seed)
        self._searches[key].cancel = self.cancel
        return self._searches[key]

    def built(self, shape: Shape) -> tuple[Classifier, dict[str, Any] | None]:
        """The model of a shape, tuned, and trained if asked for; the error of the tuning."""
        small = shape.of(self.clf)
        small = dataclasses.replace(small, model=copy.deepcopy(small.model))  # shares no weights with the caller's
        error = None
        if self.options.repair != NOTHING:
            told = of_phase(self.progress, "tuning")
            error = rebuild(self.clf, small, self.some, SOLVERS[self.options.repair], told, self.cancel)
        if self.options.retrain is not None:
            small = fine_tune(
                small,
                self.data,
                self.options.retrain,
                self.options.seed,
                dev=self.dev,
                label_order=self.label_order,
                progress=of_phase(self.progress, "training"),
                cancel=self.cancel,
            ).classifier
        return small, error

    def result(self, target: float, shape: Shape) -> Faster:
        """Build, time and evaluate the model of a shape."""
        small, error = self.built(shape)
        told = of_phase(self.progress, "measuring speed")
        speed = measured(self.clf, small, self.timer, progress=told, cancel=self.cancel)
        metrics = baseline = change = None
        if self.dev is not None:
            if self._before is None:
                self._before = self._evaluated(self.clf)
            after = self._evaluated(small)
            metrics, baseline = after.metrics, self._before.metrics
            change = self._change(self._before, after)
        return Faster(
            target,
            speed.speedup,
            speed.low,
            speed.high,
            self.timer.batch,
            self.timer.length,
            (speed.before, speed.after),
            small.heads_per_layer,
            neurons(small),
            (self.clf.cost().parameters, small.cost().parameters),
            error,
            metrics,
            baseline,
            change,
            small,
            self.table,
        )

    def _evaluated(self, clf: Classifier) -> Evaluation:
        assert self.dev is not None
        told = of_phase(self.progress, "evaluating")
        order = self.label_order
        return evaluate(clf, self.dev, label_order=order, precision="float32", progress=told, cancel=self.cancel)

    def _change(self, before: Evaluation, after: Evaluation) -> dict[str, Any] | None:
        assert self.dev is not None
        if self.dev.labels is None:
            return None
        order = class_order(self.clf, self.dev, self.label_order)
        first, second = (self.dev.answer.predicted(e.logits, order) for e in (before, after))
        metric = self.dev.task.primary_metric
        found = paired(self.dev.gold, first, second, metric).to_dict()
        return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in found.items()}
