"""``headviz.paired``: how much two sets of answers to the same examples differ, and what can be excluded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..answers.number import NUMBER
from ..answers.one_class import ONE_CLASS
from ..errors import OptionError, TaskError, is_one_of, shown, unknown_choice
from ..results import Result
from ..statistics import resampling
from ..statistics.significance import LEVEL
from .verdict import possible_loss

MOST_CLASSES = 2000  # of a metric that is told from a table of all classes


@dataclass(frozen=True)
class Paired(Result):
    """The change of a metric: ``difference`` is after - before, from ``low`` to ``high``.

    ``excludes`` is the largest loss that is still possible, the interval's lower end: a greater one is excluded, of an
    accuracy wrongly in at most 2.5 % (at the level of 0.95). Without an interval it is NaN, and nothing is excluded.
    ``worse`` and ``better`` count the right answers lost and the wrong ones mended; for a correlation, examples whose
    answer fell or rose.
    """

    metric: str
    n: int
    difference: float
    low: float
    high: float
    p: float
    worse: int
    better: int

    @property
    def excludes(self) -> float:
        return possible_loss(self.low)


def paired(
    gold: ArrayLike, before: ArrayLike, after: ArrayLike, metric: str = "accuracy", level: float = LEVEL
) -> Paired:
    """Compare two sets of predictions of the same examples.

    All three are equally long rows: class numbers for accuracy, f1 (of class 1) and matthews, numbers for pearson
    and spearman. f1 and matthews take at most 2,000 classes. -1 is an answer that is none of the classes. The interval
    and the test agree: it excludes zero only where the test rejects, for an accuracy also wherever it does. A
    correlation does not depend on the scale of the answers, and neither do its interval and p. NaN where the metric is
    undefined, as a correlation is where all answers are one value.

    >>> import headviz
    >>> change = headviz.paired([0, 1] * 50, [0, 1] * 50, [0, 1] * 48 + [1, 1, 1, 1])
    >>> change.worse, change.better, round(change.difference, 2), round(change.excludes, 3)
    (2, 0, -0.02, 0.07)
    """
    known = {**resampling.CLASS_METRICS, **resampling.REGRESSION_METRICS}
    if not is_one_of(metric, known):
        raise OptionError(unknown_choice("metric", metric, known))
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        raise OptionError(f"The level must be a number between 0 and 1, such as 0.95, not {shown(level)}.")
    classes = metric in resampling.CLASS_METRICS
    rows = {
        name: _row(values, name, classes) for name, values in (("gold", gold), ("before", before), ("after", after))
    }
    lengths = {name: len(row) for name, row in rows.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{n} {name}" for name, n in lengths.items())
        raise TaskError(f"gold, before and after must be equally long; there are {told}.")
    if not lengths["gold"]:
        raise TaskError("gold, before and after are empty. Give at least one example.")
    if classes and (rows["gold"] < 0).any():
        raise TaskError("A gold label is negative. Give class numbers from 0.")
    count = 0
    if classes:  # numbers that do not occur are closed up; f1 is of class 1
        occurring, places = np.unique(np.concatenate([[-1, 0, 1], *rows.values()]), return_inverse=True)
        rows = dict(zip(rows, np.split(places[3:] - 1, 3), strict=True))
        count = len(occurring) - 1
        if metric != "accuracy" and count > MOST_CLASSES:
            raise TaskError(f"There are {count:,} classes; {metric} is compared over at most {MOST_CLASSES:,}.")
        was, now = rows["before"] == rows["gold"], rows["after"] == rows["gold"]
    else:
        was, now = rows["before"] > rows["after"], rows["after"] > rows["before"]
        rows = {name: _near_one(row) for name, row in rows.items()}
    answers = (ONE_CLASS if classes else NUMBER).answers(rows["gold"], rows["before"], range(count))
    (found,) = answers.deltas([rows["after"]], metric, level=level)
    worse, better = int((was & ~now).sum()), int((now & ~was).sum())
    ends = (found.interval_low, found.interval_high)
    return Paired(metric, len(was), found.delta, *ends, found.p_value, worse, better)


def _near_one(values: NDArray) -> NDArray:
    """Times a power of two, which no correlation tells, so that no square is too large or too small for a number."""
    return np.ldexp(values, -np.frexp(np.abs(values).max())[1])


def _row(values: ArrayLike, name: str, classes: bool) -> NDArray:
    """One checked row of class numbers, or of finite numbers."""
    try:
        row = np.asarray(values)
    except ValueError as error:
        raise TaskError(f"{name} must be a row of numbers; its parts differ in length.") from error
    except (TypeError, RuntimeError) as error:  # a tensor of a type that numpy lacks, or with gradients
        raise TaskError(f"{name} is no row that numpy reads: {error}") from error
    if row.ndim != 1 or row.dtype.kind not in "iufb" or row.dtype.kind == "b":
        raise TaskError(f"{name} must be one row of numbers, not {_described(row)}.")
    if not np.isfinite(row).all():
        raise TaskError(f"{name} has a value that is not a finite number.")
    if not classes:
        return row.astype(float)
    if (row != np.floor(row)).any() or (row < -1).any() or (row > 100_000).any():
        raise TaskError(f"{name} must hold class numbers: whole numbers from 0, or -1 for none of the classes.")
    return row.astype(np.int64)


def _described(row: NDArray) -> str:
    return f"{row.ndim} dimensions" if row.ndim != 1 else f"values of type {row.dtype}"
