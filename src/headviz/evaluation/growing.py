"""Answers before all examples were looked at: in which order, in which parts, and with which intervals.

The parts are prefixes of one seeded order that is proportional to the classes, so a later part contains the earlier
ones. A comparison on a part has an interval that allows for looking again: all parts before the last together miss the
truth in ``WATCHING`` of the cases, shared equally among them (the union bound). The last one, on all examples, is the
usual comparison. ``bench/coverage_of_looks.py`` measures how often all of them hold the truth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..answers.comparison import Comparison, Delta
from ..results import Result
from ..tasks import strata

if TYPE_CHECKING:
    import torch

    from ..tasks import Dataset

FIRST = 8  # examples of the first part; each further part doubles them
MOST = 0.6  # share of the examples beyond which no part but the whole is worth a look
WATCHING = 0.01  # how often one of the parts before the last may miss the truth
ENOUGH = 64  # examples from which a metric other than accuracy has an interval: it hangs on a class that may be rare
AT_ONCE = 1e10  # operations of an evaluation that is over before a part of it could be read,
SOON = 1e11  # and of one that is over soon after: one part of it is enough
GPU_FASTER = 2000  # times as many operations a second as a processor, at the least


@dataclass(frozen=True, eq=False)
class Growing(Result):
    """A comparison on ``n`` of ``of`` examples; on all of them it is ``Evaluator.compare``'s.

    ``index`` are the positions of the examples in the data; ``gold`` are their labels, ``full`` and ``masked`` what was
    answered to them.
    """

    comparison: Comparison
    index: NDArray[np.int64]
    gold: NDArray
    full: NDArray
    masked: NDArray
    of: int

    @property
    def n(self) -> int:
        return len(self.index)

    @property
    def final(self) -> bool:
        return self.n == self.of

    def extra(self) -> dict[str, Any]:
        return {"n": self.n, "final": self.final}


def looks(n: int) -> list[int]:
    """How many examples each part before the last has."""
    return [FIRST << i for i in range(n.bit_length()) if FIRST << i <= MOST * n]


def level(n: int) -> float:
    """The level of the interval of each part before the last."""
    return 1 - WATCHING / max(1, len(looks(n)))


def in_order(data: Dataset, seed: int = 0) -> NDArray[np.int64]:
    """Positions of the examples, so that every prefix has each class in proportion, to within one example."""
    rank = strata.ranks(data, seed)
    group = np.zeros(len(data), dtype=np.int64) if data.labels is None else data.answer.groups(data)[0]
    place = np.empty(len(data))
    for one in np.unique(group):
        members = np.flatnonzero(group == one)
        place[members[np.argsort(rank[members], kind="stable")]] = (np.arange(len(members)) + 0.5) / len(members)
    return np.lexsort((rank, place))


def parts(data: Dataset, operations: float, device: torch.device) -> list[NDArray[np.int64]]:
    """The examples that each part adds; two parts or one where a whole evaluation takes few operations."""
    operations /= GPU_FASTER if device.type == "cuda" else 1
    if operations <= AT_ONCE:
        return [np.arange(len(data))]
    ends = looks(len(data))
    return np.split(in_order(data), ends if operations > SOON else ends[-2:-1])


def partial(data: Dataset, index: NDArray[np.int64], full: NDArray, masked: NDArray) -> Growing:
    """The comparison on some of the examples; ``full`` and ``masked`` are the answers to these alone."""
    answers = data.answer.answers(data.gold[index], full, data.label_names)
    found = answers.compare(masked, data.task.metrics, level=level(len(data)), tested=False)
    untested = replace(found, deltas=tuple(map(_untested, found.deltas)))
    return Growing(untested, index, answers.gold, full, masked, len(data))


def _untested(found: Delta) -> Delta:
    """Without p, which is not for a test that may be repeated, and without an interval where there are too few."""
    unknown = float("nan")
    if found.metric == "accuracy" or found.n >= ENOUGH:
        return replace(found, p_value=unknown)
    return replace(found, p_value=unknown, interval_low=unknown, interval_high=unknown)
