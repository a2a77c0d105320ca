"""One masked-versus-full comparison: metric deltas with their uncertainty, flips, confusion, slices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import TaskError, is_one_of, unknown_choice
from ..results import Result
from ..statistics.intervals import (
    EXCHANGED,
    accuracy_intervals,
    added,
    consistent,
    freedom,
    second_and_carried,
    student,
)
from ..statistics.resampling import SWAPS, p_value
from ..statistics.significance import LEVEL, Flips, Interval, mcnemar, wilson
from .metrics import OWN, constant, points_in, why_undefined

# -----------------------------------------------------------------------------------------------
# Metrics that are functions of sums over units: F1 of several kinds, shares and means. Intervals and the swap test.
#
# A unit (an example, a text, a question) has a row of parts; the metric is a function of the sum of the rows. A unit
# is resampled as a whole, whatever is counted in it: the words of one text are not independent. A difference is
# masked - full.
#
# Shapes: n units, K parts, R resamples.


AT_ONCE = 2**22  # values held at once
FUNCTION_SWAPS = 999  # of the test of a metric that is recomputed for each
ADDED = 100  # examples of which the effect of another one's answer is measured there

Floats = NDArray[np.float64]
OfSums = Callable[[NDArray], Floats]  # a metric: sums [..., K] -> [...]


def f1(hits: NDArray, gold: NDArray, predicted: NDArray) -> Floats:
    """F1 from counts; NaN where nothing is asked for and nothing predicted."""
    total = np.asarray(gold + predicted, dtype=float)
    return np.divide(2.0 * hits, total, out=np.full(total.shape, np.nan), where=total > 0)


def mean_of_units(total: NDArray) -> Floats:
    """A metric of which each unit has the value and the weight."""
    return total[..., 0] / total[..., 1]


def sums_interval(of: OfSums, full: NDArray, masked: NDArray, spoiled: NDArray, level: float) -> Interval:
    """Ends of the difference: the delete-one jackknife, with some units more that changed.

    ``spoiled`` has the full model's parts with each unit's answers taken from elsewhere. Without such added changes the
    interval would collapse where few answers change, which is where pruning decides. Student's t is for as many units
    as the difference hangs on. NaN where a side is undefined, with fewer than 3 units, and where no exchange of answers
    would change the metric, so that nothing shows how far it can move.
    """
    n = len(full)
    total, masked_total = full.sum(axis=0), masked.sum(axis=0)
    before = of(total)
    difference = of(masked_total) - before
    if n < 3 or np.isnan(difference):
        return Interval(np.nan, np.nan)
    without_each = of(masked_total - masked) - of(total - full)  # [n]
    residuals = np.nan_to_num(without_each - difference)
    effect = np.nan_to_num(of(total - full + spoiled) - before)  # of a unit that changes
    second, carried = second_and_carried(residuals)
    if not effect.any():
        return Interval(np.nan, np.nan)
    half = student(freedom(carried), level) * np.sqrt(second + EXCHANGED * added(level) * float((effect**2).mean()))
    return Interval(max(-1.0, float(difference) - half), min(1.0, float(difference) + half))


def sums_swap_p(of: OfSums, full: NDArray, masked: NDArray, seed: int) -> float:
    """The paired swap test: what each unit answers under the mask changes places with the full model's at random."""
    differs = np.flatnonzero((full != masked).any(axis=1))
    observed = float(of(masked.sum(axis=0)) - of(full.sum(axis=0)))
    if np.isnan(observed):
        return float("nan")
    if not len(differs):
        return 1.0
    change = (masked - full)[differs].astype(float)
    rng, draws, step = np.random.default_rng(seed), [], max(1, AT_ONCE // len(differs))
    for start in range(0, SWAPS, step):
        swapped = rng.random((min(step, SWAPS - start), len(differs))) < 0.5
        moved = swapped.astype(float) @ change  # [R, K]
        draws.append(of(masked.sum(axis=0) - moved) - of(full.sum(axis=0) + moved))
    return p_value(np.concatenate(draws), observed)


# -----------------------------------------------------------------------------------------------


Ends = tuple[float | None, float | None]
RESAMPLES = 2000
Weighted = Callable[[NDArray, NDArray, NDArray], Floats]  # gold, predicted, draws of each unit [R, n] -> [R]


@dataclass(frozen=True)
class Delta(Result):
    """How one metric changed. ``delta`` is masked - full: negative means that it got worse."""

    metric: str
    n: int
    full: float
    masked: float
    interval_low: float  # of the delta
    interval_high: float
    p_value: float
    name: str = ""  # the slice's, where it is one
    undefined: str = ""  # why there is no change to give, in words
    constant: float | None = None  # what the best constant answer reaches on these examples

    @property
    def delta(self) -> float:
        return self.masked - self.full

    @property
    def scale(self) -> float:
        """Points in one unit of the metric."""
        return points_in(self.metric)

    def extra(self) -> dict[str, Any]:
        return {"delta": self.delta}


@dataclass(frozen=True, eq=False)
class Comparison(Result):
    """Everything that is shown about one mask. ``deltas`` starts with the task's primary metric."""

    deltas: tuple[Delta, ...]
    flips: Flips | None  # None without classes
    confusion_full: NDArray[np.int64] | None  # [gold, predicted]
    confusion_masked: NDArray[np.int64] | None
    slices: tuple[Delta, ...]  # of the primary metric, by the data's slices
    precision: str = "float32"  # what the layers computed in

    @property
    def primary(self) -> Delta:
        return self.deltas[0]


@dataclass(frozen=True, eq=False)
class Drawn:
    """One measure of a model on draws of the same examples: what orders of heads are graded by."""

    of: Callable[[NDArray], NDArray[np.float64]]  # answers -> [R] the measure in each draw
    constant: NDArray[np.float64]  # [R] what the best answer that does not depend on the input reaches
    lacking: str  # what is said of a model that is no better


@dataclass(frozen=True, eq=False)
class Answers(ABC):
    """Gold answers and the full model's predictions on the same units: what every mask is compared with.

    A unit is what is resampled and paired: an example, a question, a query. A subclass per job says how a metric is
    measured on units, and which interval and test belong to its change.
    """

    gold: NDArray
    full: NDArray

    slow_test: ClassVar[bool] = False  # the test of one change takes seconds

    def __post_init__(self) -> None:
        if len(self.gold) != len(self.full):
            raise ValueError(f"{len(self.gold)} labels, but {len(self.full)} predictions")
        if len(self.gold) == 0:
            raise TaskError("There is no example to compare on. Raise the limit, or choose another split.")

    @property
    def units(self) -> int:
        """How many there are."""
        return len(self.gold)

    def pick(self, index: NDArray) -> Self:
        """Some of the examples."""
        return replace(self, gold=self.gold[index], full=self.full[index])

    def against(self, full: NDArray) -> Self:
        """The same units, with other predictions to compare with."""
        return replace(self, full=full)

    @abstractmethod
    def measure(self, predicted: NDArray, metric: str) -> float:
        """A metric of some predictions of the same units."""

    @abstractmethod
    def interval(self, predicted: NDArray, metric: str, seed: int = 0) -> Ends:
        """95 % interval of one metric; not for differences: those are paired, see ``deltas``."""

    @abstractmethod
    def uncertainty(self, masked: NDArray, metric: str, seed: int | None, level: float) -> tuple[Any, Any, float]:
        """Both ends of the interval of the change, and its p value; without a seed the test is left out."""

    def as_rows(self, predicted: NDArray) -> tuple[NDArray, NDArray]:
        """Gold answers and predictions as a user's own function reads them: a row for each unit."""
        return self.gold, predicted

    def function(self, metric: str) -> FunctionMetric | None:
        """The metric where it is a user's own function; else None."""
        return FunctionMetric(of_drawn(OWN[metric]), self, self.as_rows) if metric in OWN else None

    def read_by(self, metric: str, predicted: NDArray) -> NDArray:
        """What a metric reads of the predictions: all of them as a rule."""
        return predicted

    def spoiled(self) -> NDArray:
        """The full model's predictions with each example's from another: what a change may look like."""
        return np.roll(self.full, 1, axis=0)

    def each(self, predicted: NDArray, metric: str) -> NDArray[np.float64] | None:
        """[units] the parts of a metric that is a mean over the units; None for other metrics."""
        return None

    @abstractmethod
    def resampled(self, counts: NDArray, predicted: NDArray, metric: str) -> NDArray[np.float64]:
        """[R] the metric where each unit is drawn so often: counts [R, units]."""

    def agreement(self, predicted: NDArray) -> float | None:
        """How far some predictions are those of the full model: the share that is equal."""
        return float(np.mean(predicted == self.full))

    def constant(self, metric: str) -> float | None:
        """What the best constant answer reaches in a metric; None where it has no value."""
        return constant(metric, self.gold)

    def remark(self, predicted: NDArray, names: Sequence[str]) -> str:
        """The sentence that comes first where (nearly) all answers are the same; empty where they are not."""
        return ""

    def moved(self, masked: NDArray) -> tuple[int, int]:
        """How many units got worse, and how many better, by ``quality``."""
        before, after = self.quality(self.full), self.quality(masked)
        return int((after < before).sum()), int((after > before).sum())

    def quality(self, predicted: NDArray) -> NDArray:
        """[units] how good each unit's answer is; only its order counts."""
        return predicted == self.gold

    def changes(self, masked: NDArray) -> tuple[Flips | None, NDArray[np.int64] | None, NDArray[np.int64] | None]:
        """Which answers flipped, and the confusion before and after; None where answers are no classes."""
        return None, None, None

    def sliced(self, masked: NDArray, slices: Sequence[str] | None) -> Iterator[tuple[str, Self, NDArray]]:
        """Parts that are compared by themselves: name, answers and masked predictions."""
        labels = np.asarray(() if slices is None else slices)
        for name in dict.fromkeys(slices or ()):
            index = np.flatnonzero(labels == name)
            yield name, self.pick(index), masked[index]

    def deltas(
        self,
        masked: Sequence[NDArray],
        metric: str,
        seed: int = 0,
        level: float = LEVEL,
        name: str = "",
        tested: bool = True,
    ) -> list[Delta]:
        """One ``Delta`` per set of masked predictions; the whole of an ablation table at once.

        ``tested=False`` leaves out the swap test (p is NaN): of a correlation it takes seconds.
        """
        full = self.measure(self.full, metric)
        return [self._delta(m, metric, full, seed if tested else None, level, name) for m in masked]

    def _delta(self, masked: NDArray, metric: str, full: float, seed: int | None, level: float, name: str) -> Delta:
        value, low, high, p = self.measure(masked, metric), float("nan"), float("nan"), float("nan")
        if not np.isnan(value - full):
            low, high, p = self.uncertainty(masked, metric, seed, level)
        low, high = map(float, consistent(low, high, p, level))
        reason_full, reason_masked = (
            why_undefined(metric, self.read_by(metric, predicted), self.gold) for predicted in (self.full, masked)
        )
        undefined = reason_full or ""
        if reason_full != reason_masked:
            undefined = f"of the full model, {reason_full}" if reason_full else f"under the mask, {reason_masked}"
        return Delta(metric, self.units, full, value, low, high, p, name, undefined)

    def compare(
        self,
        masked: NDArray,
        metrics: Sequence[str],
        slices: Sequence[str] | None = None,
        seed: int = 0,
        level: float = LEVEL,
        tested: bool = True,
    ) -> Comparison:
        """The whole comparison of one mask. ``metrics`` are the task's, the primary one first.

        ``tested`` as in ``deltas``.
        """
        measured = [self.deltas([masked], metric, seed, level, tested=tested)[0] for metric in metrics]
        deltas = tuple(replace(d, constant=self.constant(d.metric)) for d in measured)
        of_slices: list[Delta] = []
        for name, answers, predicted in self.sliced(masked, slices):
            (delta,) = answers.deltas([predicted], metrics[0], seed, level, name)
            of_slices.append(replace(delta, constant=answers.constant(metrics[0])))
        return Comparison(deltas, *self.changes(masked), tuple(of_slices))


@dataclass(frozen=True, eq=False)
class FunctionMetric:
    """A metric that is any function of gold answers and predictions: it is computed for every paired resample and, for
    the test, for every exchange of answers with the full model's."""

    of: Weighted
    answers: Answers
    rows: Callable[[NDArray], tuple[NDArray, NDArray]]  # gold answers and predictions, a row for each unit

    def measure(self, predicted: NDArray) -> float:
        return self._value(*self.rows(predicted))

    def _value(self, gold: NDArray, predicted: NDArray) -> float:
        return float(self.of(gold, predicted, np.ones((1, len(gold)), dtype=np.int64))[0])

    def change(self, masked: NDArray) -> float:
        return self.measure(masked) - self.measure(self.answers.full)

    def interval(self, predicted: NDArray, seed: int = 0) -> Ends:
        return percentiles(self.resampled(self._draws(seed), predicted))

    def resampled(self, counts: NDArray, predicted: NDArray) -> Floats:
        gold, rows = self.rows(predicted)
        step = max(1, AT_ONCE // max(1, len(gold)))
        return np.concatenate([self.of(gold, rows, counts[at : at + step]) for at in range(0, len(counts), step)])

    def uncertainty(
        self, masked: NDArray, seed: int | None, level: float, among: NDArray | None = None
    ) -> tuple[Any, Any, float]:
        """As of ``Answers``; ``among`` are the units that the difference hangs on, all of them as a rule. The larger
        side of the resamples counts on both, and Student's t for as many units as changed."""
        change, draws = self.change(masked), self._draws(seed or 0)
        gains = self.resampled(draws, masked) - self.resampled(draws, self.answers.full)
        gains = gains[np.isfinite(gains)]
        low, high = np.quantile(gains, [(1 - level) / 2, (1 + level) / 2]) if len(gains) else (np.nan, np.nan)
        added_half = NormalDist().inv_cdf((1 + level) / 2) * np.sqrt(self.added_variance(level, among))
        half = np.hypot(self.student_factor(level, masked, among) * np.maximum(change - low, high - change), added_half)
        return change - half, change + half, float("nan") if seed is None else self._swap_p(masked, seed)

    def student_factor(self, level: float, masked: NDArray, among: NDArray | None = None) -> float:
        """Student's t over the normal quantile, for as many of the units as changed; 1 where none did."""
        (_, after), (_, before) = map(self.rows, (masked, self.answers.full))
        differs = ((after != before) & (after == after)).reshape(len(after), -1).any(axis=1)
        changed = int(differs[slice(None) if among is None else among].sum())
        return student(max(2, changed), level) / NormalDist().inv_cdf((1 + level) / 2) if changed else 1.0

    def added_variance(self, level: float, among: NDArray | None = None) -> float:
        """The variance that a few more units with another one's answers would add: without them an interval would
        collapse where few answers change."""
        (gold, full), (_, spoiled) = map(self.rows, (self.answers.full, self.answers.spoiled()))
        before, effects = self._value(gold, full), []
        units = np.arange(len(gold)) if among is None else among
        for i in np.random.default_rng(0).choice(units, min(len(units), ADDED), replace=False):
            changed = full.copy()
            changed[i] = spoiled[i]
            effects.append(self._value(gold, changed) - before)
        return EXCHANGED * added(level) * float(np.nanmean(np.square(effects)))

    def _draws(self, seed: int) -> NDArray[np.int64]:
        """[R, n] how often each unit is drawn."""
        n = self.answers.units
        drawn = np.random.default_rng(seed).integers(0, n, size=(RESAMPLES, n)) + n * np.arange(RESAMPLES)[:, None]
        return np.bincount(drawn.ravel(), minlength=RESAMPLES * n).reshape(RESAMPLES, n)

    def _swap_p(self, masked: NDArray, seed: int) -> float:
        (gold, after), (_, before) = map(self.rows, (masked, self.answers.full))
        observed, rng, draws = self.change(masked), np.random.default_rng(seed), []
        if np.array_equal(after, before, equal_nan=True):
            return 1.0
        for _ in range(FUNCTION_SWAPS):
            swap = rng.random((len(gold), *[1] * (after.ndim - 1))) < 0.5
            swapped_after, swapped_before = np.where(swap, before, after), np.where(swap, after, before)
            draws.append(self._value(gold, swapped_after) - self._value(gold, swapped_before))
        return p_value(np.array(draws), observed)


def of_drawn(of: Callable[[NDArray, NDArray], float]) -> Weighted:
    """A function of gold answers and predictions, called with the rows that are drawn."""

    def metric(gold: NDArray, predicted: NDArray, counts: NDArray) -> Floats:
        index = (np.repeat(np.arange(len(gold)), drawn) for drawn in counts.astype(np.int64))
        return np.array([of(gold[i], predicted[i]) for i in index], dtype=float)

    return metric


@dataclass(frozen=True, eq=False)
class SumAnswers(Answers):
    """Answers whose metrics are functions of sums over the units."""

    metrics: ClassVar[Mapping[str, Callable[[NDArray], NDArray]]]  # of sums [..., K] -> [...]

    def parts(self, predicted: NDArray, metric: str) -> NDArray:
        """[units, K] what is summed: as a rule each unit's own value, and 1."""
        each = np.asarray(self.each(predicted, metric))
        return np.stack([each, np.ones_like(each)], axis=1)

    def measure(self, predicted: NDArray, metric: str) -> float:
        if (function := self.function(metric)) is not None:
            return function.measure(predicted)
        return float(self._of(metric)(self.parts(predicted, metric).sum(axis=0)))

    def interval(self, predicted: NDArray, metric: str, seed: int = 0) -> Ends:
        if (function := self.function(metric)) is not None:
            return function.interval(predicted, seed)
        if (each := self.each(predicted, metric)) is not None and np.isin(each, (0, 1)).all():
            return wilson(int(each.sum()), len(each))
        parts = self.parts(predicted, metric)
        n = len(parts)
        drawn = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), RESAMPLES)
        return percentiles(self._of(metric)(drawn @ parts))

    def resampled(self, counts: NDArray, predicted: NDArray, metric: str) -> NDArray[np.float64]:
        if (function := self.function(metric)) is not None:
            return function.resampled(counts, predicted)
        with np.errstate(invalid="ignore"):  # a draw of no unit at all has no value
            return self._of(metric)(counts @ self.parts(predicted, metric))

    def uncertainty(self, masked: NDArray, metric: str, seed: int | None, level: float) -> tuple[Any, Any, float]:
        if (function := self.function(metric)) is not None:
            return function.uncertainty(masked, seed, level)
        before, after = self.each(self.full, metric), self.each(masked, metric)
        if before is not None and after is not None and np.isin([before, after], (0, 1)).all():  # as for an accuracy
            worse, better = np.count_nonzero(before > after), np.count_nonzero(after > before)
            low, high = accuracy_intervals(worse, better, len(before), level)
            return low, high, float(mcnemar(worse, better))
        of = self._of(metric)
        full, masked_parts, spoiled = (self.parts(p, metric) for p in (self.full, masked, self.spoiled()))
        p = float("nan") if seed is None else sums_swap_p(of, full, masked_parts, seed)
        return *sums_interval(of, full, masked_parts, spoiled, level), p

    def drawn(self, weights: NDArray, metric: str, lacking: str) -> Drawn:
        """A metric on draws of the units, for ``Answer.drawn``; ``full`` are the best constant answers."""

        def resampled(predicted: NDArray) -> NDArray[np.float64]:
            return self.resampled(weights, predicted, metric)

        return Drawn(resampled, resampled(self.full), lacking)

    @classmethod
    def measured_by(cls, metric: str) -> Callable[[NDArray, NDArray], float]:
        """A metric of predictions and gold answers, for ``Metric.of``."""
        return lambda predicted, gold: cls(gold, predicted).measure(predicted, metric)

    def _of(self, metric: str) -> Callable[[NDArray], NDArray]:
        if not is_one_of(metric, self.metrics):
            raise TaskError(unknown_choice("metric", metric, self.metrics))
        return self.metrics[metric]


def percentiles(values: NDArray) -> Ends:
    """95 % of the resampled values that are defined; None where none is."""
    values = values[np.isfinite(values)]
    if not len(values):
        return None, None
    low, high = np.quantile(values, [(1 - LEVEL) / 2, 1 - (1 - LEVEL) / 2])
    return float(low), float(high)


def read_row(values: ArrayLike, name: str) -> NDArray:
    """One checked row of finite numbers, as a user gave it."""
    try:
        table = np.asarray(values)
    except ValueError as error:
        raise TaskError(f"{name} must be a row of numbers; its parts differ in length.") from error
    except (TypeError, RuntimeError) as error:  # a tensor of a type that numpy lacks, or with gradients
        raise TaskError(f"{name} is no row that numpy reads: {error}") from error
    if table.ndim != 1 or table.dtype.kind not in "iuf":
        described = f"{table.ndim} dimensions" if table.ndim != 1 else f"values of type {table.dtype}"
        raise TaskError(f"{name} must be one row of numbers, not {described}.")
    if not np.isfinite(table).all():
        raise TaskError(f"{name} has a value that is not a finite number.")
    return table


def read_rows(gold: Any, before: Any, after: Any, read: Callable[[Any, str], NDArray] = read_row) -> list[NDArray]:
    """The three rows that ``headviz.paired`` compares: each read, and all equally long."""
    rows = {name: read(values, name) for name, values in (("gold", gold), ("before", before), ("after", after))}
    lengths = {name: len(row) for name, row in rows.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{n} {name}" for name, n in lengths.items())
        raise TaskError(f"gold, before and after must be equally long; there are {listed}.")
    if not lengths["gold"]:
        raise TaskError("gold, before and after are empty. Give at least one example.")
    return list(rows.values())
