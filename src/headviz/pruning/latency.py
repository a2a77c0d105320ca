"""What a model's parts cost in time on this machine: a table of sizes, and the speed of two models in pairs.

All timings are of whole passes of the model, as users run it, over the same random tokens. On one thread of a processor
the thread's own time is counted, so that other work on the machine does not matter; elsewhere the clock's.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .. import __version__
from ..errors import OptionError
from ..heads import HeadMask
from ..models import LENGTH
from ..models.feed_forward import neurons, smaller
from ..models.network import random_batch
from ..progress import Cancel, Progress, tracked
from ..results import Result
from ..storage.store import Store, make_key

if TYPE_CHECKING:
    from ..models.classifier import Classifier

POINTS = 9  # sizes that are timed; between them the table is linear
ROUNDS, SECONDS = (3, 12), 20.0  # least and most rounds of the table, and how long it may take beyond the least
SETTLED = 0.005  # a round that changes the times by less, all in all, is the last
PAIRS, PAIRS_SECONDS = (9, 41), 20.0  # the same for pairs
RESAMPLES = 2000


@dataclass(frozen=True)
class TimeTable(Result):
    """Seconds of one batch: those of all heads and neurons removed, and what a layer's heads and neurons add."""

    batch: int
    length: int
    device: str
    threads: int
    clock: str  # "processor" or "wall"
    whole: float  # the model as it is
    base: float  # the model without any head (or with one a layer, where its family needs it) and any neuron
    head_sizes: tuple[int, ...]
    heads: tuple[float, ...]
    neuron_sizes: tuple[int, ...]
    neurons: tuple[float, ...]

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> TimeTable:
        values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in record.items()}
        return cls(**values)

    def of_heads(self, sizes: Sequence[int]) -> np.ndarray:
        return np.interp(sizes, self.head_sizes, self.heads)

    def of_neurons(self, sizes: Sequence[int]) -> np.ndarray:
        return np.interp(sizes, self.neuron_sizes, self.neurons)


@dataclass(frozen=True)
class Speed(Result):
    """How many times as fast; the ends of a 95 % interval by resampling the pairs."""

    speedup: float
    low: float
    high: float
    before: float  # seconds of a batch, medians
    after: float
    pairs: int


class Timer:
    """Times passes of models over one batch of random tokens."""

    versions: tuple[str, ...] = ()  # of what computes besides PyTorch

    def __init__(self, clf: Classifier, batch: int, length: int | None) -> None:
        longest = clf.max_length
        length = min(LENGTH, longest) if length is None else length
        if not 1 <= length <= longest:
            raise OptionError(f"The length must be between 1 and {longest} tokens for this model, not {length}.")
        self.batch, self.length = batch, length
        self.texts = random_batch(clf, batch, length)
        self.own_time = clf.device.type == "cpu" and torch.get_num_threads() == 1
        self.wait: Callable[[], object] = torch.cuda.synchronize if clf.device.type == "cuda" else lambda: None
        self.where = str(clf.device)

    @property
    def clock(self) -> str:
        return "processor" if self.own_time else "wall"

    def seconds(self, run: Callable[[], object]) -> float:
        """How long a call takes by this timer's clock."""
        clock: Callable[[], float] = time.thread_time if self.own_time else time.perf_counter
        start = clock()
        run()
        return clock() - start

    def __call__(self, clf: Classifier) -> float:
        self.wait()
        return self.seconds(lambda: (clf.outputs_under(self.texts), self.wait()))


def timed_table(
    clf: Classifier, timer: Timer, progress: Progress | None = None, cancel: Cancel | None = None
) -> TimeTable:
    """Time the model with all its layers cut to one size, for several sizes, each in pairs with the whole model."""
    neuron_counts = neurons(clf)
    least = fewest_heads(clf)
    head_sizes = [least, *(size for size in _points(max(clf.heads_per_layer), 1) if size > least)]
    neuron_sizes = _points(max(neuron_counts), 8)
    shapes = [(h, neuron_sizes[-1]) for h in head_sizes] + [(head_sizes[-1], n) for n in neuron_sizes[:-1]]
    shapes.append((least, 0))
    shares: list[list[float]] = []  # of the whole model's time, timed just before: other work slows both
    whole, settled, times = np.inf, False, np.full(len(shapes), np.inf)
    began = time.perf_counter()
    for turn in tracked(range(ROUNDS[1]), progress, cancel):
        if turn >= ROUNDS[0] and (settled or time.perf_counter() - began > SECONDS):
            continue
        row = []
        for h, n in shapes:
            model = uniform(clf, h, n)
            timer(model)  # the first pass after its making finds nothing in the processor's cache
            seconds = timer(clf)
            whole = min(whole, seconds)
            row.append(timer(model) / seconds)
        shares.append(row)
        before, times = times, np.median(shares, axis=0)
        settled = bool(abs(times - before).sum() < SETTLED * times.sum())
    best = times * whole
    heads, fewer_neurons = best[: len(head_sizes)], best[len(head_sizes) :]
    feed = np.append(fewer_neurons[:-1], heads[-1])
    return TimeTable(
        timer.batch,
        timer.length,
        timer.where,
        torch.get_num_threads(),
        timer.clock,
        float(heads[-1]),
        float(fewer_neurons[-1]),
        tuple(head_sizes),
        _per_layer(heads, head_sizes, clf.heads_per_layer),
        tuple(neuron_sizes),
        _per_layer(feed, neuron_sizes, neuron_counts),
    )


def kept_table(
    clf: Classifier,
    timer: Timer,
    store: Store | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> TimeTable:
    """The same; taken from the store if a model of this shape was timed on this machine before."""
    if store is None:
        return timed_table(clf, timer, progress, cancel)
    sizes = {k: v for k, v in clf.config.to_dict().items() if isinstance(v, int | float | str) and k != "_name_or_path"}
    key = make_key(
        "times",
        model=type(clf.model).__name__,
        sizes=sizes,
        heads=clf.heads_per_layer,
        neurons=neurons(clf),
        numbers=str(clf.dtype),
        batch=[timer.batch, timer.length],
        clock=timer.clock,
        threads=torch.get_num_threads(),
        device=torch.cuda.get_device_name(clf.device) if clf.device.type == "cuda" else timer.where,
        machine=[platform.node(), platform.machine(), torch.backends.cpu.get_cpu_capability()],
        versions=[__version__, torch.__version__, *timer.versions],
    )
    if (entry := store.get(key)) is not None:
        return TimeTable.from_dict(json.loads(entry.words["table"]))
    table = timed_table(clf, timer, progress, cancel)
    store.put(key, {}, {"table": table.to_json()})
    return table


def fewest_heads(clf: Classifier) -> int:
    """How many heads a layer must keep."""
    return 1 if clf.family.why_not_empty else 0


def uniform(clf: Classifier, heads: int, size: int) -> Classifier:
    """The model with at most so many heads and neurons in each layer."""
    off = [(layer, h) for layer in range(clf.num_layers) for h in clf.present.kept_in(layer)[heads:]]
    mask = HeadMask.full(clf.num_layers, clf.num_heads).without(off)
    return smaller(clf, mask, [range(min(size, n)) for n in neurons(clf)])


def _points(largest: int, multiple: int) -> list[int]:
    """Some sizes from 0 to the largest, rounded to a multiple where that is large."""
    unit = multiple if largest >= 8 * multiple else 1
    inner = {round(largest * i / (POINTS - 1) / unit) * unit for i in range(1, POINTS - 1)}
    return sorted({0, *inner, largest})


def _per_layer(seconds: np.ndarray, sizes: Sequence[int], counts: Sequence[int]) -> tuple[float, ...]:
    """What one layer of each size adds: the increase over all layers that still grow, shared out; never falling.

    ``counts`` are the heads, or neurons, of each layer of the model.
    """
    out = [0.0]
    for i in range(1, len(sizes)):
        growing = sum(max(0, min(n, sizes[i]) - sizes[i - 1]) / (sizes[i] - sizes[i - 1]) for n in counts)
        out.append(out[-1] + max(0.0, float(seconds[i] - seconds[i - 1])) / max(growing, 1e-9))
    return tuple(out)


def measure_speed(
    before: Classifier,
    after: Classifier,
    timer: Timer,
    max_pairs: int = PAIRS[1],
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Speed:
    """How many times as fast the second model is."""
    return in_pairs(lambda: timer(before), lambda: timer(after), max_pairs, progress, cancel)


def in_pairs(
    before: Callable[[], float],
    after: Callable[[], float],
    max_pairs: int = PAIRS[1],
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Speed:
    """Two ways in turn, each a call that gives its seconds, the order changing from pair to pair; the median ratio.

    What else the machine does slows both passes of a pair. The ratio of the medians scatters three times as much.
    """
    pairs: list[tuple[float, float]] = []
    for way in (before, after):
        way()
    began = time.perf_counter()
    for pair in tracked(range(max_pairs), progress, cancel):
        if pair >= PAIRS[0] and time.perf_counter() - began > PAIRS_SECONDS:
            continue
        if pair % 2:
            second, first = after(), before()
        else:
            first, second = before(), after()
        pairs.append((first, second))
    seconds: Any = np.array(pairs)
    ratio, low, high = median_of_pairs(seconds[:, 0] / seconds[:, 1])
    first, second = np.median(seconds, axis=0)
    return Speed(ratio, low, high, float(first), float(second), len(seconds))


def median_of_pairs(ratios: np.ndarray) -> tuple[float, float, float]:
    """The median and the ends of its interval, by resampling. A pair hardly resembles the one before it
    (``bench/coverage.md``), because both its passes meet the same other work.
    """
    drawn = np.random.default_rng(0).integers(0, len(ratios), (RESAMPLES, len(ratios)))
    low, high = np.quantile(np.median(ratios[drawn], axis=1), [0.025, 0.975])
    return float(np.median(ratios)), float(low), float(high)
