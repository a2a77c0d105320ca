"""``headviz.paired``: how much two sets of answers to the same examples differ, and what can be excluded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..answers import ANSWERS
from ..answers.comparison import Answers
from ..errors import OptionError, is_one_of, shown, unknown_choice
from ..results import Result
from ..statistics.resampling import class_in
from ..statistics.significance import LEVEL
from .verdict import possible_loss


@dataclass(frozen=True)
class Paired(Result):
    """The change of a metric: ``difference`` is after - before, from ``low`` to ``high``.

    ``excludes`` is the largest loss that is still possible, the interval's lower end. A larger one is excluded; of
    accuracy, that is wrong in at most 2.5 % of samples (at the level of 0.95). Without an interval it is NaN, and
    nothing is excluded. ``worse`` and ``better`` count the right answers lost and the wrong ones mended; for a
    correlation, examples whose answer fell or rose.
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
    gold: ArrayLike,
    before: ArrayLike,
    after: ArrayLike,
    metric: str = "accuracy",
    level: float = LEVEL,
    groups: ArrayLike | None = None,
) -> Paired:
    """Compare two sets of predictions of the same examples.

    All three have the same length. What they hold depends on the metric:

    - accuracy, balanced_accuracy, f1 (of class 1; f1_3 of class 3), f1_macro, matthews: class numbers; -1 in ``before``
      and ``after`` is none of the classes. f1 and matthews take at most 2,000 classes.
    - roc_auc, average_precision, neg_log_loss, neg_calibration_error: class numbers, then probabilities [n, classes],
      or [n] of class 1.
    - pearson, spearman: numbers.
    - micro_f1, macro_f1, label_accuracy, and exact_match of several labels: tables [n, labels] of 0 and 1.
    - span_f1, token_accuracy: lists of tags, one list for each text; or class numbers [n, words], -100 behind a text's
      end. The unit is the text.
    - token_f1, and exact_match of spans: ``data.gold``, and predictions of ``headviz.Evaluator``.
    - ndcg@10, mrr@10, map: relevances, then scores; ``groups`` has the query of each, which is the unit. The other
      metrics take no ``groups``: their rows are units.

    The interval and the test agree: it excludes zero only where the test rejects, for an accuracy also wherever it
    does. A correlation does not depend on the scale of the answers, and neither do its interval and p. NaN where the
    metric is undefined, as a correlation is where all answers are one value.

    >>> import headviz
    >>> change = headviz.paired([0, 1] * 50, [0, 1] * 50, [0, 1] * 48 + [1, 1, 1, 1])
    >>> change.worse, change.better, round(change.difference, 2), round(change.excludes, 3)
    (2, 0, -0.02, 0.07)
    """
    by_metric = {name: answer for answer in ANSWERS.values() if answer.paired for name in answer.metrics}
    if isinstance(metric, str) and class_in(metric) is not None:
        by_metric[metric] = by_metric["f1"]  # which has F1 of every class
    if not is_one_of(metric, by_metric):
        raise OptionError(unknown_choice("metric", metric, by_metric))
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        raise OptionError(f"The level must be a number between 0 and 1, such as 0.95, not {shown(level)}.")
    candidates = [answer for answer in ANSWERS.values() if answer.paired and metric in answer.metrics]
    # jobs that share a metric's name may have gold answers of other dimensions
    if len({answer.metrics[metric].dims[1] for answer in candidates}) > 1:
        same_dims = (answer for answer in candidates if answer.metrics[metric].dims[1] == np.ndim(gold))
        by_metric[metric] = next(same_dims, candidates[0])
    if groups is not None and not by_metric[metric].grouped:
        grouped = ", ".join(name for name, answer in by_metric.items() if answer.grouped)
        raise OptionError(
            f"Groups (groups=), the query of each passage, are for {grouped}. Of '{metric}' every row is a unit: leave "
            "them out."
        )
    return paired_change(*by_metric[metric].rows(metric, gold, before, after, groups), metric, level)


def same_answers(before: NDArray, after: NDArray) -> NDArray[np.bool_] | None:
    """[n] whether the whole answer to an example is the same; None where answers are numbers, which hardly ever are."""
    return None if before.dtype.kind == "f" else (before == after).reshape(len(before), -1).all(axis=1)


def paired_change(answers: Answers, after: NDArray, metric: str, level: float = LEVEL) -> Paired:
    """The change of a metric from the predictions in ``answers`` to others of the same examples."""
    (delta,) = answers.deltas([after], metric, level=level)
    ends = (delta.interval_low, delta.interval_high)
    return Paired(metric, delta.n, delta.delta, *ends, delta.p_value, *answers.moved(after))
