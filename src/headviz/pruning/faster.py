"""``headviz.prune_faster``: prune a classifier until it is so many times as fast, at the least loss (Kwon 2022)."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from ..answers.metrics import remark
from ..answers.probabilities import PROBABILITIES
from ..attribution.integration import TOKENS_AT_ONCE, gradients
from ..attribution.walk import Walk
from ..errors import ModelError, OptionError, TaskError
from ..evaluation.dispatch import evaluate, gold_answers
from ..evaluation.paired import paired_change, same_answers
from ..evaluation.plain import batches, class_order, counts_for, encode_data, metrics_for
from ..heads import HeadMask, in_order
from ..models.fast.linear import products
from ..models.feed_forward import neurons, outer_map, require_neurons, smaller
from ..models.network import require_model
from ..models.onnx import Session
from ..models.pruning import require_prunable
from ..progress import Cancel, PhaseProgress, of_phase, stop_if, tracked
from ..results import Result, plain
from ..scores.gradients import moves, summed_loss
from ..storage.store import Store, store_for
from ..storage.writing import replace_file
from ..tasks import sample
from ..tasks.dataset import require_dataset
from ..tasks.sampling import limited
from .algorithms import NOTHING
from .export import FILE, RuntimeTimer, answers, require_in_runtime, write_onnx
from .finetuning import fine_tune
from .latency import Speed, Table, Timer, fewest_heads, kept_table, measured
from .options import (
    AUTO,
    BEST,
    BOTH,
    GOLD,
    HEADS_ONLY,
    IMPORTANCE,
    MEANS,
    ONNX_INT8,
    TARGETS,
    TORCH,
    FasterOptions,
    FinetuneOptions,
    Round,
    rounds,
)
from .reconstruction import rebuild, set_weights, weights_of
from .removal import SOLVERS, require_repairable
from .search import best_subset
from .trainer import Diverged, Teacher, updates_of
from .training_folder import remove_training

if TYPE_CHECKING:
    from ..answers.answer import Answer
    from ..evaluation.plain import Evaluation
    from ..models.classifier import Classifier
    from ..progress import Progress
    from ..tasks import Dataset


# -----------------------------------------------------------------------------------------------
# Which heads and neurons stay, so that the model is so many times as fast, by the time that was measured.
#
# Sizes come from the table of times and the diagonal Fisher information (``allotment``). Within a layer the units
# that go are then rearranged for the layer's block of the Fisher information. The model of this shape is timed, and
# where it misses the target, the budget is corrected and the sizes are chosen again.


CLOSE = 0.02  # of the target: near enough to stop correcting
TOLERANCE = 0.1  # of the target: farther below it, the target counts as out of reach
TURNS, TURN_PAIRS = 6, 15
CHECKED, LEAST_CHECKED = 512, 32  # train examples outside the sample, on which the measures of importance are compared
CLASSES = 50  # with more, their changes are not reported one by one
SOFT = 8.0  # the temperature that softens confident answers, so that all examples weigh about the same
FINEST = 48  # sizes of a layer's neurons to choose from


@dataclass(frozen=True)
class Shape(Result):
    """The heads and neurons that stay."""

    present: HeadMask
    kept: tuple[tuple[int, ...], ...]  # neurons of each layer, as the full model counts them

    def of(self, clf: Classifier) -> Classifier:
        return smaller(clf, self.present, self.kept)

    def to_dict(self) -> dict[str, Any]:
        grid = self.present
        return {"heads": [grid.num_layers, grid.num_heads, grid.hex], "neurons": [list(k) for k in self.kept]}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Shape:
        layers, heads, text = record["heads"]
        return cls(HeadMask.from_hex(text, layers, heads), tuple(tuple(k) for k in record["neurons"]))


@dataclass(frozen=True)
class Choice(Result):
    """What says how much a unit is worth, and what was tried: a row for each shape that differs, in JSON.

    A row has the mean ``distance`` of the answers to train examples from the whole model's, and the share that agrees
    with them: of the cut model, with the removed means in its biases, and repaired.
    """

    importance: str = "labels"
    tried: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Turn(Result):
    """What was measured of one choice of sizes."""

    sizes: tuple[int, ...]  # heads left in each layer, then neurons
    speed: Speed
    choice: Choice = Choice()

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Turn:
        choice = record.get("choice") or {}
        chosen = Choice(choice.get("importance", "labels"), tuple(choice.get("tried", ())))
        return cls(tuple(record["sizes"]), Speed(**record["speed"]), chosen)


@dataclass
class Search:
    """One model's gradients and times; ``find`` serves any number of targets.

    Its turns follow from those before, so a search that is stopped goes on with ``next`` from the turns it has. A
    speed is that against the ``whole`` model, of which ``clf`` may be what earlier rounds left.
    """

    clf: Classifier
    gradients: Gradients
    table: Table
    timer: Timer
    remove: str = BOTH
    seed: int = 0  # breaks ties
    cancel: Cancel | None = None
    whole: Classifier | None = None  # None = clf itself
    choice: Choice = Choice()
    _groups: list[Choices] = field(init=False)
    _shapes: dict[tuple[int, ...], Shape] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        there = neurons(self.clf)
        self._groups = []
        for layer, count in enumerate(self.clf.heads_per_layer):
            sizes = range(fewest_heads(self.clf), count + 1)
            loss = losses((self._heads(layer) ** 2).sum(axis=0), sizes)
            self._groups.append(Choices(tuple(sizes), self.table.of_heads(sizes), loss))
        for layer, count in enumerate(there):
            unit = 8 if count >= 64 else 1
            inner = {min(count, round(count * i / FINEST / unit) * unit) for i in range(FINEST)}
            left = [count] if self.remove == HEADS_ONLY else sorted({*inner, count})
            loss = losses((self._neurons(layer) ** 2).sum(axis=0), left)
            self._groups.append(Choices(tuple(left), self.table.of_neurons(left), loss))

    @property
    def reach(self) -> float:
        """The largest speed by the table: everything removed that may be."""
        return self.table.whole / (self.table.base + sum(float(g.seconds.min()) for g in self._groups))

    def find(self, target: float) -> tuple[Shape, Speed]:
        """The shape whose measured speed is nearest to the target."""
        turns: list[Turn] = []
        while (sizes := self.next(target, turns)) is not None:
            turns.append(self.timed(sizes))
        return self.best(target, turns)

    def next(self, target: float, turns: Sequence[Turn]) -> tuple[int, ...] | None:
        """The sizes to time after these turns; None = enough has been timed."""
        if not turns and target > self.reach * (1 + TOLERANCE):
            raise self._out_of_reach(target, self.reach)
        if len(turns) == TURNS or any(_miss(turn.speed, target) < CLOSE for turn in turns):
            return None
        budget = self.table.whole / target
        for turn in turns:
            budget *= turn.speed.speedup / target
        sizes = allotted(self._groups, budget - self.table.base, self.seed)
        if sizes is None:
            sizes = [g.sizes[int(np.lexsort((g.loss, g.seconds))[0])] for g in self._groups]
        chosen = tuple(int(size) for size in sizes)
        return None if chosen in {turn.sizes for turn in turns} else chosen

    def timed(self, sizes: Sequence[int]) -> Turn:
        """A turn: the model of these sizes against the whole one."""
        stop_if(self.cancel)
        small = self.shape(sizes).of(self.clf)
        speed = measured(self.whole or self.clf, small, self.timer, TURN_PAIRS, cancel=self.cancel)
        return Turn(tuple(sizes), speed, self.choice)

    def best(self, target: float, turns: Sequence[Turn]) -> tuple[Shape, Speed]:
        """Of all turns the one nearest to the target; an ``OptionError`` if it is too slow."""
        best = min(turns, key=lambda turn: _miss(turn.speed, target))
        if best.speed.speedup * (1 + TOLERANCE) < target:
            raise self._out_of_reach(target, best.speed.speedup, "the nearest shape that was found is")
        return self.shape(best.sizes), best.speed

    def shape(self, sizes: Sequence[int]) -> Shape:
        """Of so many units in each group, those that cost least together."""
        key = tuple(sizes)
        if key not in self._shapes:
            self._shapes[key] = self._shape(key)
        return self._shapes[key]

    def _shape(self, sizes: tuple[int, ...]) -> Shape:
        layers = self.clf.num_layers
        off: list[tuple[int, int]] = []
        for layer in range(layers):
            present = self.clf.present.kept_in(layer)
            off += [(layer, present[i]) for i in _gone(self._heads(layer), sizes[layer], self.seed)]
        kept = []
        for layer, size in enumerate(sizes[layers:]):
            gone = set(_gone(self._neurons(layer), size, self.seed))
            kept.append(tuple(i for i in range(self._neurons(layer).shape[1]) if i not in gone))
        return Shape(self.clf.present.without(off), tuple(kept))

    def _heads(self, layer: int) -> np.ndarray:
        return self.gradients.heads[:, layer, list(self.clf.present.kept_in(layer))]

    def _neurons(self, layer: int) -> np.ndarray:
        return self.gradients.neurons[layer].astype(np.float64)

    def _out_of_reach(self, target: float, most: float, nearest: str = "") -> OptionError:
        what = "any head" if self.remove == HEADS_ONLY else "any head or neuron"
        what = nearest or f"without {what} this model is"
        least = math.floor(100 * most) / 100
        return OptionError(
            f"{target:g}× is out of reach: {what} {least:.2f}× as fast here (batch "
            f"{self.table.batch}, {self.table.length} tokens). Ask for less, or for a larger batch or length."
        )


def _gone(gradients: np.ndarray, keep: int, seed: int) -> tuple[int, ...]:
    """Which units go: the lowest, rearranged for the joint loss."""
    fisher = gradients.T @ gradients
    order = in_order(range(len(fisher)), np.diag(fisher), seed)
    return best_subset(fisher, tuple(sorted(order[: len(fisher) - keep])), order)


def _miss(speed: Speed, target: float) -> float:
    return abs(math.log(speed.speedup / target))


GRID = 5000  # steps of time in the budget


@dataclass(frozen=True, eq=False)
class Choices:
    """The sizes that one group may have: the heads, or the neurons, of one layer."""

    sizes: tuple[int, ...]
    seconds: np.ndarray  # of each size
    loss: np.ndarray  # of each size


def losses(fisher: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """Half the Fisher information that goes when only so many of the units stay, the lowest gone first."""
    gone = np.concatenate([[0.0], np.cumsum(np.sort(fisher))])
    return np.array([gone[len(fisher) - size] / 2 for size in sizes])


def allotted(groups: Sequence[Choices], budget: float, seed: int = 0) -> list[int] | None:
    """The size of each group for the least loss within ``budget`` seconds; None where nothing fits.

    Groups are tried in an order drawn from ``seed``: choices that lose the same are drawn, not taken by layer.
    """
    order = np.random.default_rng(seed).permutation(len(groups))
    sizes = _in_turn([groups[i] for i in order], budget)
    return None if sizes is None else [sizes[i] for i in np.argsort(order)]


def _in_turn(groups: Sequence[Choices], budget: float) -> list[int] | None:
    least = np.array([g.seconds.min() for g in groups])
    room = budget - least.sum()
    if room < 0:
        return None
    step = room / GRID if room > 0 else 1.0
    best = np.full(GRID + 1, np.inf)  # by time spent beyond the least
    best[0] = 0.0
    chosen = np.zeros((len(groups), GRID + 1), np.int64)
    for i, group in enumerate(groups):
        after = np.full(GRID + 1, np.inf)
        # rounded up, so that the sum stays within the budget
        for k, extra in enumerate(np.ceil((group.seconds - least[i]) / step - 1e-9).astype(int)):
            if extra > GRID:
                continue
            reached = best[: GRID + 1 - extra] + group.loss[k]
            better = reached < after[extra:]
            after[extra:][better] = reached[better]
            chosen[i, extra:][better] = k
        best = after
    at = int(np.argmin(best))
    out = []
    for i in range(len(groups) - 1, -1, -1):
        k = int(chosen[i, at])
        out.append(groups[i].sizes[k])
        at -= int(np.ceil((groups[i].seconds[k] - least[i]) / step - 1e-9))
    return out[::-1]


@dataclass(frozen=True, eq=False)
class Gradients:
    """Of the loss by the gates of all units, one row per example."""

    heads: np.ndarray  # [n, L, H], 0 for heads that the model does not have
    neurons: tuple[np.ndarray, ...]  # of each layer [n, I]
    to_mean: Gradients | None = None  # where a closed gate leaves a unit's mean, which a bias can stand for
    means: tuple[np.ndarray, ...] = ()  # of the heads that each layer has [h, d], then of its neurons [I, 1]


class _Inputs(TorchFunctionMode):
    """Remembers what certain linear maps are given. The model and other threads are not affected."""

    def __init__(self, weights: Sequence[Tensor]) -> None:
        super().__init__()
        self.place = {id(w): i for i, w in enumerate(weights)}
        self.seen: list[Tensor] = [torch.empty(0)] * len(weights)

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if func is torch.nn.functional.linear and len(args) > 1 and id(args[1]) in self.place:
            self.seen[self.place[id(args[1])]] = args[0]
        return func(*args, **(kwargs or {}))


def gate_gradients(
    clf: Classifier,
    data: Dataset,
    label_order: Sequence[str] | str | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
    loss: str = GOLD,
) -> Gradients:
    """One forward and one backward pass serve all heads and neurons.

    The loss is that of the gold answers, or that of answers which have moved at random: then the squares measure how
    far the model's own answers move, whatever the labels are.
    """
    _, gold = gold_answers(clf, data, label_order)
    assert gold is not None
    encodings = encode_data(clf, data)
    sizes = neurons(clf)
    layers = range(clf.num_layers)
    seen = [_Seen.of(len(data), len(clf.present.kept_in(layer)), clf.head_size) for layer in layers]
    seen += [_Seen.of(len(data), size, 1) for size in sizes]
    weights = [outer_map(clf, layer).weight for layer in range(len(sizes))]
    for index in tracked(list(batches([len(e) for e in encodings], TOKENS_AT_ONCE)), progress, cancel, size=len):
        chosen = [encodings[i] for i in index]
        walk = Walk(clf, chosen, [None] * len(index), None)
        call = clf.call(keep_outputs=True)
        with torch.enable_grad(), products(clf.device), _Inputs(weights) as inputs:
            logits = walk.choose(clf.forward(walk.rows(walk.end.clone().requires_grad_(True)), call))
            lost = summed_loss(clf, logits, gold[index]) if loss == GOLD else _moved(clf, logits, chosen)
            slopes = gradients(lost, [*call.outputs, *inputs.seen])
        # a gate multiplies its value, so the derivative by it is the value times its own derivative
        moved = [o.transpose(1, 2) for o in moves(clf, call.outputs)] + [v.detach()[:, :, :, None] for v in inputs.seen]
        for part, value, slope in zip(seen, moved, slopes, strict=True):
            part.add(index, value, slope.transpose(1, 2) if slope.dim() == 4 else slope[:, :, :, None])
    zero, mean = ([part.by_gates(stands) for part in seen] for stands in (False, True))
    means = tuple(part.mean for part in seen)
    return _gradients(clf, zero, means, _gradients(clf, mean, means))


def _gradients(
    clf: Classifier, units: list[np.ndarray], means: tuple[np.ndarray, ...], to_mean: Gradients | None = None
) -> Gradients:
    heads = np.zeros((len(units[0]), clf.num_layers, clf.num_heads))
    for layer in range(clf.num_layers):
        heads[:, layer, list(clf.present.kept_in(layer))] = units[layer]
    return Gradients(heads, tuple(u.astype(np.float32) for u in units[clf.num_layers :]), to_mean, means)


def _moved(clf: Classifier, logits: Tensor, encodings: Sequence[Any]) -> Tensor:
    """The loss against answers that have moved by noise, which an example's tokens draw."""
    wanted = logits.detach().clone()
    for row, e in zip(wanted, encodings, strict=True):
        noise = np.random.default_rng(zlib.crc32(str(e.ids).encode())).standard_normal(row.shape)
        row += torch.from_numpy(noise).to(row)
    return len(logits) * clf.answer.imitated(logits, wanted, SOFT)


@dataclass(eq=False)
class _Seen:
    """What was seen of a layer's heads, or neurons, example by example: [n, units, size]."""

    products: np.ndarray  # value times slope, summed over the tokens: [n, units]
    slopes: np.ndarray
    total: np.ndarray  # of the values, over all tokens that the loss depends on
    tokens: int = 0

    @classmethod
    def of(cls, n: int, units: int, size: int) -> _Seen:
        return cls(np.zeros((n, units)), np.zeros((n, units, size), np.float32), np.zeros((units, size)))

    def add(self, index: Sequence[int], value: Tensor, slope: Tensor) -> None:
        """Values and slopes of a batch: [B, T, units, size]."""
        read = (slope != 0).flatten(2).any(dim=2)
        self.products[index] = (value * slope).sum(dim=(1, 3)).double().cpu().numpy()
        self.slopes[index] = slope.sum(dim=1).float().cpu().numpy()
        self.total += value[read].double().sum(dim=0).cpu().numpy()
        self.tokens += int(read.sum())

    @property
    def mean(self) -> np.ndarray:
        return self.total / max(self.tokens, 1)

    def by_gates(self, to_mean: bool) -> np.ndarray:
        return self.products - np.einsum("nus,us->nu", self.slopes, self.mean) if to_mean else self.products


def absorb(full: Classifier, small: Classifier, shape: Shape, means: Sequence[np.ndarray]) -> None:
    """Add what the removed units give on average to the biases behind them (edited in place)."""
    layers = full.num_layers
    for layer in range(layers):
        heads = np.isin(full.present.kept_in(layer), shape.present.kept_in(layer))
        inner = np.isin(np.arange(len(means[layers + layer])), shape.kept[layer])
        for stay, mean, of in (
            (heads, means[layer], lambda clf, at=layer: clf.projections(at).output),
            (inner, means[layers + layer], lambda clf, at=layer: outer_map(clf, at)),
        ):
            whole, own = of(full), of(small)
            if own.bias is not None and mean.size:
                weights = weights_of(own)
                weights[-1] += (mean * ~stay[:, None]).ravel() @ weights_of(whole)[:-1]
                set_weights(own, weights)


# -----------------------------------------------------------------------------------------------


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
    tried: tuple[dict[str, Any], ...]  # with what was tried beside it: ``Choice.tried``
    classes: dict[str, dict[str, Any]]  # the change of each class's F1
    calibration: dict[str, Any] | None  # the change of the negative calibration error: below 0 is worse
    rates: tuple[dict[str, Any], ...]  # learning rates and the loss that a short training leaves
    model: Classifier = dataclasses.field(repr=False, compare=False)
    table: Table = dataclasses.field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        record = dataclasses.replace(self, model=None)  # type: ignore[arg-type]
        return {k: v for k, v in Result.to_dict(record).items() if k != "model"} | {"layers_empty": self.layers_empty}

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
    one = not isinstance(faster, list | tuple)
    targets = [float(speed) for speed in TARGETS.checked([faster] if one else faster)]
    require_model(clf)
    require_dataset(data)
    options = FasterOptions(batch, length, samples, runtime, repair, importance, rate, seed, remove, retrain)
    require_possible(clf, options, data)
    work = Work(clf, data, options, dev, label_order, progress, cancel, store=store_for(cache))
    way, results = rounds(targets, retrain is not None), dict[float, Faster]()
    for target in targets:
        work.search(remove).next(target, ())  # one out of reach is refused before a model is built
    shapes = {step: work.find(step.speed) for step in way} if retrain is None else {}
    for step in way:
        result = work.result(step, *(shapes.get(step) or work.find(step.speed)))
        if retrain is not None:
            work.begin(result.model)
        if step.asked:
            results[step.speed] = result
    every = tuple(results[target] for target in targets)
    return every[0] if one else every


def require_possible(clf: Classifier, options: FasterOptions, data: Dataset | None = None) -> None:
    """A ``ModelError`` for a model whose parts cannot be removed, or not tuned on such ``data``."""
    clf.check_classes()
    require_prunable(clf)
    require_neurons(clf)
    if options.runtime != TORCH:
        require_in_runtime(clf)
    rows = range(clf.num_layers if options.repair == MEANS else 0)
    if any(one.bias is None for row in rows for one in (clf.projections(row).output, outer_map(clf, row))):
        raise ModelError(
            f"{clf.family.title} has no bias behind its heads or its neurons, so '{MEANS}' has nowhere to put the mean "
            f"of the removed ones. Choose repair 'refit' or '{NOTHING}'."
        )
    if options.repair not in (NOTHING, MEANS):
        require_repairable(clf, options.repair, NOTHING)
        if data is not None and not clf.in_stages(encode_data(clf, data.subset(range(1)))):
            raise ModelError(
                f"Repair '{options.repair}' follows one text through the layers, and '{clf.name}' computes each text "
                f"of a pair by itself. Choose repair '{NOTHING}' or '{MEANS}'."
            )


WATCHED, WATCHED_MOST = 10, 2000  # one train example in so many, and at most so many, says when a training stops
LEAST_WATCHED = 20
PATIENCE = 2  # epochs, where the options of the training name none
FACTORS = (1.0, 3.0, 10.0)  # of the learning rate that the options name
TRIAL, LEAST_TRIAL = 0.1, 200  # the share of a training that each rate is tried on, and updates at least


class Work:
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
        table: Table | None = None,
        store: Store | None = None,
        folder: Path | None = None,
    ) -> None:
        if table is not None:
            self.table = table
        self.store, self.folder = store, folder
        self.clf, self.data, self.options, self.dev = clf, data, options, dev
        self.label_order, self.progress, self.cancel = label_order, progress, cancel
        if options.runtime == TORCH:
            self.timer = Timer(clf, options.batch, options.length)
        else:
            self.timer = RuntimeTimer(clf, options.batch, options.length, options.runtime == ONNX_INT8)
        self.start = clf  # what is cut
        self._before: Evaluation | None = None
        self._searches: dict[tuple[str, str, Table], Search] = {}
        self._gradients: dict[str, Gradients] = {}
        self._whole: dict[str, Evaluation] = {}  # the whole model's answers, by the digest of the data
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
            step_progress = of_phase(self.progress, "scoring")
            self._gradients[loss] = gate_gradients(
                self.start, self.some, self.label_order, step_progress, self.cancel, loss
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
        """Of several ways to say what a unit is worth, the one whose shape keeps the answers to other train examples
        nearest, once it is repaired. Shapes are those of the table of times."""
        if self.options.importance != BEST:
            return Choice(self.options.importance)
        rows = dict[Shape, dict[str, Any]]()
        for name in IMPORTANCE:
            search = self.search(remove, Choice(name))
            sizes = search.next(target, ())
            assert sizes is not None
            if (shape := search.shape(sizes)) in rows:
                continue
            repairs = dict.fromkeys((NOTHING, MEANS, self.options.repair))
            kept = {repair: self._near_whole(self._repaired(shape, repair)[0], self.checked) for repair in repairs}
            rows[shape] = {"importance": name, **kept}
        best = min(rows.values(), key=lambda row: row[self.options.repair]["distance"])
        return Choice(best["importance"], tuple(rows.values()))

    def _near_whole(self, small: Classifier, data: Dataset) -> dict[str, Any]:
        """How far its answers to train examples are from the whole model's, and how many agree."""
        if data.digest not in self._whole:
            self._whole[data.digest] = self._answers(self.clf, data)
        wanted, own = self._whole[data.digest], self._answers(small, data)
        distance = own.answer.imitated(torch.tensor(own.logits), torch.tensor(wanted.logits), 1.0)
        return {"distance": float(distance), "agreement": _agreement(wanted, own)}

    def _answers(self, clf: Classifier, data: Dataset) -> Evaluation:
        return evaluate(clf, data, label_order=self.label_order, precision="float32", cancel=self.cancel)

    @cached_property
    def checked(self) -> Dataset:
        """Train examples apart from the sample; the sample where there are too few others."""
        taken = {(e.text, e.pair) for e in self.some}
        rest = self.data.subset([i for i, e in enumerate(self.data) if (e.text, e.pair) not in taken])
        if len(rest) < LEAST_CHECKED:
            return self.some
        return rest if len(rest) <= CHECKED else sample(rest, CHECKED, self.options.seed, "none")

    def _repaired(self, shape: Shape, repair: str) -> tuple[Classifier, dict[str, Any] | None]:
        """The model of a shape, and the error of its repair."""
        small = shape.of(self.start)
        small = dataclasses.replace(small, model=copy.deepcopy(small.model))  # shares no weights with the caller's
        if repair == MEANS:
            absorb(self.start, small, shape, self.gradients("labels").means)
        if repair in (NOTHING, MEANS):
            return small, None
        step_progress = of_phase(self.progress, "tuning")
        # the target is the whole model, not what the round before has left
        return small, rebuild(self.clf, small, self.some, SOLVERS[repair], step_progress, self.cancel)

    def built(
        self, shape: Shape, step: Round | None = None, name: str = ""
    ) -> tuple[Classifier, dict[str, Any] | None, tuple[dict[str, Any], ...]]:
        """The model of a shape, tuned, and trained if asked for; the error of the tuning, and the learning rates that
        were tried."""
        small, error = self._repaired(shape, self.options.repair)
        options, (watched, rest), rates = self.options.retrain, self._watched, tuple[dict[str, Any], ...]()
        if options is None:
            return small, error, rates
        if step is not None:
            options = dataclasses.replace(options, epochs=options.epochs * step.epochs)
        if self.options.rate == AUTO and watched is not None:
            rates = self._rates(small, options, watched, rest, name)
            if held := [row for row in rates if row["distance"] is not None]:
                options = dataclasses.replace(options, learning_rate=min(held, key=itemgetter("distance"))["rate"])
        if watched is not None and options.early_stopping is None:
            options = dataclasses.replace(options, early_stopping=PATIENCE)
        place = self.folder / f"training-{name}" if self.folder is not None and name else None
        trained = self._trained(small, rest, options, watched, place)
        if watched is not None:  # a training that leads farther from the whole model is not taken
            trained = min((trained, small), key=lambda one: self._near_whole(one, watched)["distance"])
            rates = tuple(
                row | {"taken": trained is not small and row["rate"] == options.learning_rate} for row in rates
            )
        if place is not None:
            remove_training(place)
            self._tried_rates(name).unlink(missing_ok=True)
        return trained, error, rates

    def _trained(
        self,
        small: Classifier,
        data: Dataset,
        options: FinetuneOptions,
        watched: Dataset | None = None,
        place: Path | None = None,
    ) -> Classifier:
        """Trained on labels and on what the whole model does, until a part of train gets no better."""
        return fine_tune(
            small,
            data,
            options,
            self.options.seed,
            dev=watched,
            label_order=self.label_order,
            teacher=Teacher(self.clf),
            folder=place,
            progress=of_phase(self.progress, "training"),
            cancel=self.cancel,
        ).classifier

    def _rates(
        self, small: Classifier, options: FinetuneOptions, watched: Dataset, data: Dataset, name: str
    ) -> tuple[dict[str, Any], ...]:
        """How far from the whole model's answers a short training with each learning rate leaves those to examples
        that are not trained on; None where the training diverged. What a stopped run has tried is not tried again."""
        whole = updates_of(options, len(data))
        share = min(1.0, max(TRIAL, LEAST_TRIAL / whole))
        short = dataclasses.replace(options, epochs=options.epochs * share, early_stopping=None)
        kept = self._tried_rates(name) if self.folder is not None and name else None
        rows = json.loads(kept.read_text()) if kept is not None and kept.exists() else []
        for rate in [options.learning_rate * factor for factor in FACTORS[len(rows) :]]:
            try:
                trained = self._trained(small, data, dataclasses.replace(short, learning_rate=rate))
                rows.append({"rate": rate, **self._near_whole(trained, watched)})
            except Diverged:
                rows.append({"rate": rate, "distance": None, "agreement": None})
            if kept is not None:
                replace_file(kept, json.dumps(rows))
        return tuple(rows)

    def _tried_rates(self, name: str) -> Path:
        assert self.folder is not None
        return self.folder / f"rates-{name}.json"

    @cached_property
    def _watched(self) -> tuple[Dataset | None, Dataset]:
        """The train examples that say when a training stops, and those that are trained on, none of them equal."""
        count = min(len(self.data) // WATCHED, WATCHED_MOST)
        if count < LEAST_WATCHED:
            return None, self.data
        chosen = limited(self.data, count, self.options.seed)
        texts = list(zip(self.data.texts, self.data.pairs or self.data.texts, strict=True))
        seen = {texts[i] for i in chosen}
        rest = [i for i, text in enumerate(texts) if text not in seen]
        return (self.data.subset(chosen), self.data.subset(rest)) if rest else (None, self.data)

    def result(self, step: Round, shape: Shape, choice: Choice, name: str = "") -> Faster:
        """Build, time and evaluate the model of a shape; ``name`` is that of its training's folder."""
        small, error, rates = self.built(shape, step, name)
        step_progress = of_phase(self.progress, "measuring speed")
        speed = measured(self.clf, small, self.timer, progress=step_progress, cancel=self.cancel)
        costs = [clf.cost(length=self.timer.length) for clf in (self.clf, small)]
        metrics = baseline = change = agreement = calibration = None
        one_class, classes = "", dict[str, Any]()
        if self.dev is not None:
            if self._before is None:
                self._before = self._evaluated(self.clf)
            after = self._in_int8(self._before, small) if self.options.runtime == ONNX_INT8 else self._evaluated(small)
            metrics, baseline = after.metrics, self._before.metrics
            change, calibration, classes = self._changes(self._before, after)
            agreement = _agreement(self._before, after)
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
            tried=choice.tried,
            classes=classes,
            calibration=calibration,
            rates=rates,
            model=small,
            table=self.table,
        )

    def _evaluated(self, clf: Classifier) -> Evaluation:
        assert self.dev is not None
        step_progress = of_phase(self.progress, "evaluating")
        order = self.label_order
        return evaluate(
            clf, self.dev, label_order=order, precision="float32", progress=step_progress, cancel=self.cancel
        )

    def _in_int8(self, before: Evaluation, small: Classifier) -> Evaluation:
        """The answers of the int8 file, which is what was timed."""
        assert self.dev is not None
        with tempfile.TemporaryDirectory(prefix="headviz-int8-") as place:
            session = Session(small, write_onnx(small, Path(place) / FILE, "int8"), torch.get_num_threads())
            (logits,), order = answers(
                small, self.dev, [session.outputs], self.label_order, of_phase(self.progress, "evaluating"), self.cancel
            )
        return dataclasses.replace(
            before,
            logits=logits,
            metrics=metrics_for(self.dev, logits, order),
            predicted=counts_for(small, self.dev, logits, order),
        )

    def _changes(
        self, before: Evaluation, after: Evaluation
    ) -> tuple[dict[str, Any] | None, dict[str, Any] | None, dict[str, dict[str, Any]]]:
        """Of the task's first measure; where the answer is one class, of the calibration error and each class's F1."""
        assert self.dev is not None
        if self.dev.labels is None:
            return None, None, {}
        order, gold = class_order(self.clf, self.dev, self.label_order), self.dev.gold

        def change(answer: Answer, metric: str) -> dict[str, Any]:
            first, second = (answer.predicted(e.logits, order) for e in (before, after))
            return plain(paired_change(answer.answers(gold, first, names), second, metric).to_dict())

        own, names = self.dev.answer, self.dev.label_names
        first = change(own, self.dev.task.primary_metric)
        if not own.measures("f1_0"):
            return first, None, {}
        classes = {name: change(own, f"f1_{i}") for i, name in enumerate(names)} if len(names) <= CLASSES else {}
        return first, change(PROBABILITIES, "neg_calibration_error"), classes


def _agreement(before: Evaluation, after: Evaluation) -> float | None:
    """The share of examples with the same answer; None where answers are numbers."""
    same = same_answers(before.predictions, after.predictions)
    return None if same is None else float(same.mean())
