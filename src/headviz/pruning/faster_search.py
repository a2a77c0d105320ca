"""Which heads and neurons stay, so that the model is so many times as fast, by the time that was measured.

Sizes come from the table of times and the diagonal Fisher information (``allotment``). Within a layer the units that go
are then rearranged for the layer's block of the Fisher information. The model of this shape is timed, and where it
misses the target, the budget is corrected and the sizes are chosen anew.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from ..attribution.integration import TOKENS_AT_ONCE, gradients
from ..attribution.walk import Walk
from ..errors import OptionError
from ..evaluation.dispatch import gold_answers
from ..evaluation.plain import batches, encode_data
from ..heads import HeadMask, in_order
from ..models.fast.linear import products
from ..models.feed_forward import neurons, outer_map, smaller
from ..progress import Cancel, stop_if, tracked
from ..results import Result
from ..scores.gradients import moves, summed_loss
from .faster_options import BOTH, HEADS_ONLY
from .latency import Speed, Table, Timer, measured
from .search import best_subset

if TYPE_CHECKING:
    from ..models.classifier import Classifier
    from ..progress import Progress
    from ..tasks import Dataset

CLOSE = 0.02  # of the target: near enough to stop correcting
TOLERANCE = 0.1  # of the target: farther below it, the target counts as out of reach
TURNS, TURN_PAIRS = 6, 15
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
    def from_dict(cls, given: dict[str, Any]) -> Shape:
        layers, heads, text = given["heads"]
        return cls(HeadMask.from_hex(text, layers, heads), tuple(tuple(k) for k in given["neurons"]))


@dataclass(frozen=True)
class Turn(Result):
    """What was measured of one choice of sizes."""

    sizes: tuple[int, ...]  # heads left in each layer, then neurons
    speed: Speed

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Turn:
        return cls(tuple(given["sizes"]), Speed(**given["speed"]))


@dataclass
class Search:
    """One model's gradients and times; ``find`` serves any number of targets.

    Its turns follow from those before, so a search that is stopped goes on with ``next`` from the turns it has.
    """

    clf: Classifier
    gradients: Gradients
    table: Table
    timer: Timer
    remove: str = BOTH
    seed: int = 0  # breaks ties
    cancel: Cancel | None = None
    _groups: list[Choices] = field(init=False)
    _shapes: dict[tuple[int, ...], Shape] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        there = neurons(self.clf)
        self._groups = []
        for layer, count in enumerate(self.clf.heads_per_layer):
            sizes = range(count + 1)
            loss = losses((self._heads(layer) ** 2).sum(axis=0), sizes)
            self._groups.append(Choices(tuple(sizes), self.table.of_heads(sizes), loss))
        for layer, count in enumerate(there):
            unit = 8 if count >= 64 else 1
            inner = {round(count * i / FINEST / unit) * unit for i in range(FINEST)}
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
            sizes = [g.sizes[int(np.argmin(g.seconds))] for g in self._groups]
        found = tuple(int(size) for size in sizes)
        return None if found in {turn.sizes for turn in turns} else found

    def timed(self, sizes: Sequence[int]) -> Turn:
        """A turn: the model of these sizes beside the whole one."""
        stop_if(self.cancel)
        small = self.shape(sizes).of(self.clf)
        return Turn(tuple(sizes), measured(self.clf, small, self.timer, TURN_PAIRS, cancel=self.cancel))

    def best(self, target: float, turns: Sequence[Turn]) -> tuple[Shape, Speed]:
        """Of all turns the one nearest to the target; an ``OptionError`` if it is too slow."""
        found = min(turns, key=lambda turn: _miss(turn.speed, target))
        if found.speed.speedup * (1 + TOLERANCE) < target:
            raise self._out_of_reach(target, found.speed.speedup, "the nearest shape that was found is")
        return self.shape(found.sizes), found.speed

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

    Groups are tried in an order drawn from ``seed``: where several choices lose the same, none goes by place.
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
    """One row per example."""

    heads: np.ndarray  # [n, L, H], 0 for heads that the model does not have
    neurons: tuple[np.ndarray, ...]  # of each layer [n, I]


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
) -> Gradients:
    """One forward and one backward pass serve all heads and neurons."""
    _, gold = gold_answers(clf, data, label_order)
    assert gold is not None
    encodings = encode_data(clf, data)
    sizes = neurons(clf)
    heads = np.zeros((len(data), clf.num_layers, clf.num_heads))
    found = tuple(np.zeros((len(data), size), np.float32) for size in sizes)
    weights = [outer_map(clf, layer).weight for layer in range(len(sizes))]
    groups = list(batches([len(e) for e in encodings], TOKENS_AT_ONCE))
    for index in tracked(groups, progress, cancel, size=len):
        walk = Walk(clf, [encodings[i] for i in index], [None] * len(index), None)
        call = clf.call(keep_outputs=True)
        with torch.enable_grad(), products(clf.device), _Inputs(weights) as inputs:
            logits = walk.choose(clf.forward(walk.rows(walk.end.clone().requires_grad_(True)), call))
            every = [*call.outputs, *inputs.seen]
            slopes = gradients(summed_loss(clf, logits, gold[index]), every)
        # a gate multiplies its value, so the derivative by it is the value times its own derivative
        moved = [*moves(clf, call.outputs), *(value.detach() for value in inputs.seen)]
        parts = [(value * slope).cpu() for value, slope in zip(moved, slopes, strict=True)]
        for layer in range(clf.num_layers):
            kept = list(clf.present.kept_in(layer))
            heads[np.ix_(index, [layer], kept)] = parts[layer].sum(dim=(2, 3)).double().numpy()[:, None]
            found[layer][index] = parts[clf.num_layers + layer].sum(dim=1).float().numpy()
    return Gradients(heads, found)
