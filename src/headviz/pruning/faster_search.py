"""Which heads and neurons stay, so that the model is so many times as fast, by the time that was measured (Kwon 2022).

Sizes come from the table of times and the diagonal Fisher information (``allot``). Within a layer the units that go
are then rearranged for the layer's block of the Fisher information. The model of this shape is timed, and where it
misses the target, the budget is corrected and the sizes are chosen again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import OptionError
from ..heads import HeadMask, in_order
from ..models.feed_forward import neurons, smaller
from ..progress import Cancel, stop_if
from ..results import Result
from .latency import PAIRS, Speed, Timer, TimeTable, fewest_heads, measure_speed
from .options import BOTH, HEADS_ONLY, REFIT
from .search import best_subset

if TYPE_CHECKING:
    from ..models.classifier import Classifier
    from .unit_gradients import Gradients

CLOSE = 0.02  # of the target: near enough to stop correcting
TOLERANCE = 0.1  # of the target: farther below it, the target counts as out of reach
TURNS, TURN_PAIRS = 6, 15
FINEST = 48  # sizes of a layer's neurons to choose from


@dataclass(frozen=True)
class Shape(Result):
    """The heads and neurons that stay."""

    present: HeadMask
    neurons: tuple[tuple[int, ...], ...]  # neurons of each layer, as the full model counts them

    def cut(self, clf: Classifier) -> Classifier:
        return smaller(clf, self.present, self.neurons)

    def to_dict(self) -> dict[str, Any]:
        grid = self.present
        return {"heads": [grid.num_layers, grid.num_heads, grid.hex], "neurons": [list(k) for k in self.neurons]}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Shape:
        layers, heads, text = record["heads"]
        return cls(HeadMask.from_hex(text, layers, heads), tuple(tuple(k) for k in record["neurons"]))


@dataclass(frozen=True)
class Choice(Result):
    """What says how much a unit is worth, the repair, and what was tried: a row for each shape that differs, in JSON.

    A row has the mean ``distance`` of the answers to train examples from the whole model's, and the share that agrees
    with them: of the cut model, with the removed means in its biases, and repaired.
    """

    importance: str = "labels"
    tried: tuple[dict[str, Any], ...] = ()
    repair: str = REFIT


@dataclass(frozen=True)
class Turn(Result):
    """What was measured of one choice of sizes."""

    sizes: tuple[int, ...]  # heads left in each layer, then neurons
    speed: Speed
    choice: Choice = Choice()

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Turn:
        choice = record.get("choice") or {}
        tried, repair = tuple(choice.get("tried", ())), choice.get("repair", REFIT)
        chosen = Choice(choice.get("importance", "labels"), tried, repair)
        return cls(tuple(record["sizes"]), Speed(**record["speed"]), chosen)


@dataclass
class Search:
    """One model's gradients and times; ``find`` serves any number of targets.

    Its turns follow from those before, so a search that is stopped goes on with ``next`` from the turns it has. A
    speed is that against the ``whole`` model, of which ``clf`` may be what earlier rounds left.
    """

    clf: Classifier
    gradients: Gradients
    table: TimeTable
    timer: Timer
    remove: str = BOTH
    seed: int = 0  # breaks ties
    cancel: Cancel | None = None
    whole: Classifier | None = None  # None = clf itself
    choice: Choice = Choice()
    _groups: list[SizeGroup] = field(init=False)
    _shapes: dict[tuple[int, ...], Shape] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._groups = []
        for layer, count in enumerate(self.clf.heads_per_layer):
            sizes = range(fewest_heads(self.clf), count + 1)
            loss = losses((self._heads(layer) ** 2).sum(axis=0), sizes)
            self._groups.append(SizeGroup(tuple(sizes), self.table.of_heads(sizes), loss))
        for layer, count in enumerate(neurons(self.clf)):
            unit = 8 if count >= 64 else 1
            inner = {min(count, round(count * i / FINEST / unit) * unit) for i in range(FINEST)}
            counts = [count] if self.remove == HEADS_ONLY else sorted({*inner, count})
            loss = losses((self._neurons(layer) ** 2).sum(axis=0), counts)
            self._groups.append(SizeGroup(tuple(counts), self.table.of_neurons(counts), loss))

    @property
    def reach(self) -> float:
        """The largest speed by the table: everything removed that may be."""
        return self.table.whole / (self.table.base + sum(float(g.seconds.min()) for g in self._groups))

    def find(self, target: float) -> tuple[Shape, Speed]:
        """The shape whose measured speed is nearest to the target."""
        turns: list[Turn] = []
        while (sizes := self.next(target, turns)) is not None:
            turns.append(self.timed(sizes, target))
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
        sizes = allot(self._groups, budget - self.table.base, self.seed)
        if sizes is None:
            sizes = [g.sizes[int(np.lexsort((g.loss, g.seconds))[0])] for g in self._groups]
        chosen = tuple(int(size) for size in sizes)
        return None if chosen in {turn.sizes for turn in turns} else chosen

    def timed(self, sizes: Sequence[int], target: float) -> Turn:
        """A turn: the model of these sizes against the whole one. What seems near enough is timed in more pairs: of
        several turns the first to seem so by chance would be taken."""
        small = self.shape(sizes).cut(self.clf)
        for pairs in (TURN_PAIRS, PAIRS[1]):
            stop_if(self.cancel)
            speed = measure_speed(self.whole or self.clf, small, self.timer, pairs, cancel=self.cancel)
            if _miss(speed, target) >= CLOSE:
                break
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
            gradients = self._neurons(layer)
            gone = set(_gone(gradients, size, self.seed))
            kept.append(tuple(i for i in range(gradients.shape[1]) if i not in gone))
        return Shape(self.clf.present.without(off), tuple(kept))

    def _heads(self, layer: int) -> np.ndarray:
        return self.gradients.heads[:, layer, list(self.clf.present.kept_in(layer))]

    def _neurons(self, layer: int) -> np.ndarray:
        return self.gradients.neurons[layer].astype(np.float64)

    def _out_of_reach(self, target: float, speed: float, nearest: str = "") -> OptionError:
        units = "any head" if self.remove == HEADS_ONLY else "any head or neuron"
        fastest = nearest or f"without {units} this model is"
        rounded = math.floor(100 * speed) / 100
        return OptionError(
            f"{target:g}× is out of reach: {fastest} {rounded:.2f}× as fast here (batch "
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
class SizeGroup:
    """The sizes that one group may have: the heads, or the neurons, of one layer."""

    sizes: tuple[int, ...]
    seconds: np.ndarray  # of each size
    loss: np.ndarray  # of each size


def losses(fisher: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """Half the Fisher information that goes when only so many of the units stay, the lowest gone first."""
    gone = np.concatenate([[0.0], np.cumsum(np.sort(fisher))])
    return np.array([gone[len(fisher) - size] / 2 for size in sizes])


def allot(groups: Sequence[SizeGroup], budget: float, seed: int = 0) -> list[int] | None:
    """The size of each group for the least loss within ``budget`` seconds; None where nothing fits.

    Groups are tried in an order drawn from ``seed``: choices that lose the same are drawn, not taken by layer.
    """
    order = np.random.default_rng(seed).permutation(len(groups))
    sizes = _in_turn([groups[i] for i in order], budget)
    return None if sizes is None else [sizes[i] for i in np.argsort(order)]


def _in_turn(groups: Sequence[SizeGroup], budget: float) -> list[int] | None:
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
    sizes = []
    for i in range(len(groups) - 1, -1, -1):
        k = int(chosen[i, at])
        sizes.append(groups[i].sizes[k])
        at -= int(np.ceil((groups[i].seconds[k] - least[i]) / step - 1e-9))
    return sizes[::-1]
