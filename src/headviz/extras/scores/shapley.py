"""Shapley values of heads (Held and Yang 2023).

A head's value is what it adds to the metric, averaged over the orders in which heads can be switched off. Each order is
walked from all heads to none through the evaluator, which computes only the layers that a mask changes. An order ends
early where the metric is near that without any head: the difference is shared evenly among the remaining heads, so the
values of every order sum to metric(all) − metric(none).

Shapes: P orders, L rows, H heads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from math import comb, isnan

import numpy as np
from numpy.typing import NDArray

from ...evaluation.dispatch import evaluator_of
from ...evaluation.evaluator import EvaluatorOptions
from ...heads import HeadId, HeadMask
from ...progress import stop_if
from ...scores.measures import Inputs
from ...scores.statistics import Summary, exact, mean
from ...scores.task_loss import check_metric
from ...scores.whole import Whole
from .options import ShapleyOptions

MOST_HEADS = 10  # of which every coalition is evaluated

Worth = Callable[[HeadMask], float]  # the metric under a mask


def shapley(inputs: Inputs, options: ShapleyOptions) -> Summary:
    """Exact for few heads; otherwise the mean over random orders, with intervals over them."""
    whole = inputs.whole
    assert whole is not None
    worth = worth_of(whole, options.metric)
    if len(whole.heads) <= MOST_HEADS:
        return exact(by_coalitions(whole, worth))
    checkpoint, rows = whole.checkpoint_of("shapley", options), []
    if (stored := checkpoint.load()) is not None:
        rows = list(stored["rows"])
    rng = np.random.default_rng(options.seed)
    orders = [rng.permutation(len(whole.heads)) for _ in range(options.permutations)]
    for number in range(len(rows), len(orders)):
        if whole.progress is not None:
            whole.progress(number, len(orders))
        rows.append(one_order(whole, worth, [whole.heads[i] for i in orders[number]], options.tolerance))
        checkpoint.save({"rows": np.stack(rows)})
    if whole.progress is not None:
        whole.progress(len(orders), len(orders))
    per = np.stack(rows)
    return replace(mean(per), per=per)


def worth_of(whole: Whole, metric: str | None) -> Worth:
    """The metric of the sample under a mask; a metric that is undefined for one answer for all counts as 0."""
    name = check_metric(whole.data, metric)
    options = EvaluatorOptions(budget=whole.budget, precision="float32")
    evaluator = evaluator_of(whole.clf, whole.data, options, label_order=whole.label_order)

    def worth(mask: HeadMask) -> float:
        stop_if(whole.cancel)
        value = float(evaluator.evaluate(mask).metrics[name])
        return 0.0 if isnan(value) else value

    return worth


def one_order(whole: Whole, worth: Worth, order: list[HeadId], tolerance: float) -> NDArray[np.float64]:
    """[L, H]: what the metric loses with each head of one order, NaN for heads that are off."""
    mask = whole.mask
    out = np.full((mask.num_layers, mask.num_heads), np.nan)
    value, without_any = worth(mask), worth(mask.without(order))
    for i, head in enumerate(order):
        if abs(value - without_any) <= tolerance:
            for unwalked in order[i:]:
                out[unwalked] = (value - without_any) / (len(order) - i)
            return out
        mask = mask.without([head])
        before, value = value, worth(mask)
        out[head] = before - value
    return out


def by_coalitions(whole: Whole, worth: Worth) -> NDArray[np.float64]:
    """[L, H]: exact values from the metric of every coalition."""
    heads = whole.heads
    values = {
        frozenset(on): worth(whole.mask.without([h for h in heads if h not in on]))
        for size in range(len(heads) + 1)
        for on in combinations(heads, size)
    }
    out = np.full((whole.mask.num_layers, whole.mask.num_heads), np.nan)
    for head in heads:
        others = [h for h in heads if h != head]
        out[head] = sum(
            (values[frozenset((*on, head))] - values[frozenset(on)]) / (len(heads) * comb(len(others), size))
            for size in range(len(others) + 1)
            for on in combinations(others, size)
        )
    return out
