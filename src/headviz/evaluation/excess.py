"""What two changes cost together beyond the sum of what each costs alone, with its interval and p.

excess = m(first) + m(second) − m(neither off) − m(both off), on the same examples; above 0, one stands in for the
other. For accuracy it is the mean of a number from −2 to 2 per example, with one example added in each direction, as in
``intervals``, of the largest size seen. For other metrics its spread comes from a bootstrap of the examples. Both ends
and p are normal.

Shapes: N examples, R resamples.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from ..answers.comparison import Answers
from ..statistics.significance import LEVEL

RESAMPLES = 200


class Excess(NamedTuple):
    value: float
    low: float
    high: float
    p_value: float


def excess(
    answers: Answers, first: NDArray, second: NDArray, both: NDArray, metric: str, level: float = LEVEL, seed: int = 0
) -> Excess:
    """``answers`` holds gold and the answers with neither off; the others are answers to the same examples [N].

    >>> from headviz.answers.one_class import ONE_CLASS
    >>> gold = np.array([0, 1] * 20)
    >>> found = excess(ONE_CLASS.answers(gold, gold, "ab"), gold, gold, 1 - gold, "accuracy")
    >>> found.value, found.low > 0.8
    (1.0, True)
    """
    if metric == "accuracy":
        right = [(said == answers.gold).astype(float) for said in (first, second, answers.full, both)]
        each = right[0] + right[1] - right[2] - right[3]
        value, n = float(each.mean()), len(each)
        most = max(1.0, float(np.abs(each).max(initial=0.0)))
        padded = np.concatenate([each, [most, -most]])
        centre, spread = float(padded.mean()), float(padded.std() / np.sqrt(n + 2))
    else:
        value = centre = _of(answers, first, second, both, metric)
        draws = np.random.default_rng(seed).integers(len(first), size=(RESAMPLES, len(first)))
        drawn = [_of(answers.pick(i), first[i], second[i], both[i], metric) for i in draws]
        spread = float(np.nanstd(drawn)) if np.isfinite(drawn).any() else float("nan")
    if not spread > 0:
        return Excess(value, float("nan"), float("nan"), float("nan") if value != value or spread != spread else 1.0)
    half = float(scipy.special.ndtri((1 + level) / 2)) * spread
    return Excess(value, centre - half, centre + half, float(2 * scipy.special.ndtr(-abs(centre) / spread)))


def _of(answers: Answers, first: NDArray, second: NDArray, both: NDArray, metric: str) -> float:
    one, two, none, all_ = (answers.measure(said, metric) for said in (first, second, answers.full, both))
    return one + two - none - all_
