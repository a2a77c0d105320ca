"""The evaluators of many masks: what they all can do, whatever their model answers with.

A comparison may grow: it is made on a few examples first. The parts are prefixes of one seeded order that is
stratified by class, so a later part contains the earlier ones. The interval on a part allows for repeated looks: all
parts before the last together miss the truth in ``WATCHING`` of the cases, shared equally among them (the union bound).
The last one, on all examples, is the usual comparison. ``bench/coverage_of_looks.py`` measures how often all of them
hold the truth.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from ..answers.comparison import Answers, Comparison, Delta
from ..errors import ModelError
from ..heads import HeadMask
from ..models.base import TransformerModel
from ..models.network import weights_state
from ..progress import Cancel, Progress, tracked
from ..results import Result
from ..storage.exchange import MaskLike
from ..tasks import sampling
from .plain import Evaluation
from .verdict import ENOUGH

if TYPE_CHECKING:
    from ..tasks import Dataset

FIRST = 8  # examples of the first part; with each further part there are twice as many
EARLY_SIZES = (2, 4)  # examples of the parts before it, without an interval, where the first part takes long
MOST = 0.6  # share of the examples that a part before the last may have
WATCHING = 0.01  # how often one of the parts before the last may miss the truth
AT_ONCE = 1e10  # operations; an evaluation of at most so many has no parts
ONE_PART = 1e11  # operations; an evaluation of at most so many has one part before the last
SLOW_FIRST_PART = 1e11  # where the first part takes more operations, parts of ``EARLY_SIZES`` examples come before it
GPU_FASTER = 2000  # times as many operations a second as a processor, at the least


@dataclass(frozen=True, eq=False)
class Growing(Result):
    """A comparison of a mask on ``n`` of ``of`` examples; on all of them it is ``Evaluator.compare``'s.

    ``index`` are the positions of the examples in the data; ``gold`` are their labels, ``full`` and ``masked`` what was
    answered to them.
    """

    mask: HeadMask
    comparison: Comparison
    index: NDArray[np.int64]
    gold: NDArray
    full: NDArray
    masked: NDArray
    of: int
    cut_off: str = ""  # how many texts are cut to the model's length, in words

    @property
    def n(self) -> int:
        return len(self.index)

    @property
    def final(self) -> bool:
        return self.n == self.of

    @property
    def counted(self) -> str:
        """How far the count has come; empty at its end."""
        return "" if self.final else f"on {self.n:,} of {self.of:,} examples so far"

    def extra(self) -> dict[str, Any]:
        return {"n": self.n, "final": self.final}

    def records(self) -> list[dict[str, Any]]:
        return self.comparison.records()


def part_sizes(n: int) -> list[int]:
    """How many examples each part before the last has."""
    return [FIRST << i for i in range(n.bit_length()) if FIRST << i <= MOST * n]


def level(n: int) -> float:
    """The level of the interval of each part before the last."""
    return 1 - WATCHING / max(1, len(part_sizes(n)))


def stratified_order(data: Dataset, seed: int = 0) -> NDArray[np.int64]:
    """Positions of the examples, so that every prefix has each class in proportion, to within one unit."""
    return np.concatenate(_units_in_order(data, seed))


def _units_in_order(data: Dataset, seed: int = 0) -> list[NDArray[np.int64]]:
    rank, units = sampling.unit_ranks(data, seed), sampling.members_of(data)
    group = np.zeros(len(data), dtype=np.int64) if data.labels is None else data.answer.groups(data)[0]
    group = group[[members[0] for members in units]]
    share = np.empty(len(units))  # the k-th of a class's m members gets (k + ½)/m
    for number in np.unique(group):
        members = np.flatnonzero(group == number)
        share[members[np.argsort(rank[members], kind="stable")]] = (np.arange(len(members)) + 0.5) / len(members)
    return [units[i] for i in np.lexsort((rank, share))]


def parts(data: Dataset, operations: float, device: torch.device) -> list[NDArray[np.int64]]:
    """The examples that each part adds; fewer parts, or only the whole, where an evaluation takes few operations."""
    operations /= GPU_FASTER if device.type == "cuda" else 1
    if operations <= AT_ONCE:
        return [np.arange(len(data))]
    units = _units_in_order(data)
    ends = part_sizes(len(units))
    if operations <= ONE_PART:
        ends = ends[-2:-1]  # the second largest part, if there are two
    elif ends and operations / len(units) * FIRST > SLOW_FIRST_PART:
        ends = [*EARLY_SIZES, *ends]
    steps = np.split(np.arange(len(units)), ends)
    return [np.concatenate([units[i] for i in step]) for step in steps]


def part_of(
    data: Dataset, mask: HeadMask, index: NDArray[np.int64], full: NDArray, masked: NDArray, precision: str = "float32"
) -> Growing:
    """The comparison on some of the examples; ``full`` and ``masked`` are the answers to these alone."""
    answers = data.answer.answers(data.gold[index], full, data.label_names)
    comparison = answers.compare(masked, data.task.metrics, level=level(len(np.unique(data.units))), tested=False)
    untested = replace(comparison, deltas=tuple(map(_untested, comparison.deltas)), precision=precision)
    return Growing(mask, untested, index, answers.gold, full, masked, len(data))


def _untested(delta: Delta) -> Delta:
    """Without p, which is not valid for repeated tests, and without an interval where there are too few examples."""
    nan = float("nan")
    if delta.n >= (FIRST if delta.metric == "accuracy" else ENOUGH):
        return replace(delta, p_value=nan)
    return replace(delta, p_value=nan, interval_low=nan, interval_high=nan)


class MaskEvaluator(ABC):
    """Bound to one model and one data set. Masks already seen are not computed again. Safe to share between threads.

    ``mask=None`` is the full model: every head that it has.
    """

    clf: TransformerModel
    data: Dataset

    def __init__(self, clf: TransformerModel, data: Dataset) -> None:
        self.clf, self.data, self._weights = clf, clf.answer.judged(data), weights_state(clf.model)

    def whole(self, mask: MaskLike | None) -> HeadMask:
        """The mask, with the heads that the model lacks off. A ``ModelError`` once the model's weights have changed."""
        if weights_state(self.clf.model) != self._weights:
            raise ModelError(
                "The model's weights have changed since this evaluator was made, and what it keeps is of the old ones. "
                "Make a new evaluator."
            )
        return self.clf.under(mask)

    @property
    def cut_off(self) -> str:
        """How many texts are cut to the model's length, in words; empty where none is."""
        return ""

    @property
    @abstractmethod
    def precision(self) -> str:
        """What the layers compute in: float32, bfloat16, …"""

    @property
    @abstractmethod
    def own_keywords(self) -> dict[str, Any]:
        """Keywords with which ``evaluator_of`` makes one like it."""

    @property
    def stand_in(self) -> str:
        """What stands in the place of heads that are off, in words; empty = nothing."""
        fill = self.clf.fill
        return "" if fill is None else f"{fill.kind} of {fill.examples} examples"

    @property
    def room(self) -> int:
        """How many results of other masks are kept before one that a click asked for is dropped."""
        return 256

    @abstractmethod
    def evaluate(
        self,
        mask: MaskLike | None = None,
        *,
        keep: bool = True,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> Evaluation:
        """The evaluation under a mask. ``keep=False`` leaves no states behind: right for a sweep of masks that
        nobody will build upon."""

    @abstractmethod
    def predictions(
        self,
        mask: MaskLike | None = None,
        *,
        keep: bool = True,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> NDArray:
        """[n] what the model answers under a mask, in the data's order and the task's own terms."""

    def answers(
        self, reference: MaskLike | None = None, *, progress: Progress | None = None, cancel: Cancel | None = None
    ) -> Answers:
        """Gold answers and the predictions under ``reference``, which other masks are compared with."""
        full = self.predictions(reference, progress=progress, cancel=cancel)
        return self.data.answer.answers(self.data.gold, full, self.data.label_names)

    def each_draw(self) -> Iterator[Self]:
        """Itself, or one evaluator for each draw of what stands in a head's place. They share their cached states."""
        yield self

    def compare(
        self,
        mask: MaskLike,
        reference: MaskLike | None = None,
        *,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> Comparison:
        """A mask against the reference on the same examples, with all uncertainty."""
        answers = self.answers(reference, progress=progress, cancel=cancel)
        masked = self.predictions(mask, progress=progress, cancel=cancel)
        comparison = answers.compare(masked, self.data.task.metrics, self.data.slices)
        return replace(comparison, precision=self.precision)

    def growing(
        self,
        mask: MaskLike | None = None,
        reference: MaskLike | None = None,
        *,
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> Iterator[Growing]:
        """``compare`` as it grows: on a few examples first, on all of them at last.

        The parts are stratified by class, and the full model is evaluated part by part with the mask, so the first
        answer comes soon however many examples there are. Every interval allows for the looks before it; leave the
        loop when one is narrow enough. Where all examples take little time, and for a translation model, there is only
        the last step.
        """
        mask, n = self.whole(mask), len(self.data)
        answers = self.answers(reference, progress=progress, cancel=cancel)
        masked = self.predictions(mask, progress=progress, cancel=cancel)
        comparison = answers.compare(masked, self.data.task.metrics, self.data.slices)
        comparison = replace(comparison, precision=self.precision)
        yield Growing(mask, comparison, np.arange(n), answers.gold, answers.full, masked, n, self.cut_off)


def toggles(present: HeadMask, mask: HeadMask) -> list[HeadMask]:
    """The mask with each head of the model switched once, the cheapest first: heads of the last layers."""
    return [mask.toggled([head]) for head in sorted(present.kept, reverse=True)]


def compute_ahead(
    evaluator: MaskEvaluator,
    mask: MaskLike | None = None,
    *,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> None:
    """Evaluate every mask that a click on a head may ask for next, as far as there is room for results.

    The first one keeps the states of the mask itself, from which the others and later clicks start.
    """
    present = evaluator.clf.present
    masks = toggles(present, evaluator.whole(mask))[: evaluator.room]
    for number, toggled in enumerate(tracked(masks, progress, cancel)):
        evaluator.predictions(toggled, keep=number == 0, cancel=cancel)


def give_way() -> None:
    """This thread alone computes on one core and lets all others go first, where the system has a way to say so.

    ``torch.set_num_threads`` would hold for every thread of the process.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
    for library in (Path(torch.__file__).parent / "lib").glob("libgomp*"):
        with suppress(OSError, AttributeError):
            ctypes.CDLL(str(library)).omp_set_num_threads(1)
