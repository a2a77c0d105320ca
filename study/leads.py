"""How far an order of heads is ahead of random ones, from what the cells hold, with an interval for few orders.

A cell's own interval resamples examples and random orders. With three orders that is too narrow: where orders differ by
ten points it holds the mean in .87 of 400 simulated cases, this one in .97. So the part of its variance that comes from
the orders is taken out, and that of a mean of so few is put in its place.

python -m study.leads         # how often either interval holds
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm, t

# examples of each class on the dev splits
DEV = {
    "mrpc": {"equivalent": 279, "not_equivalent": 129},
    "sst2": {"positive": 444, "negative": 428},
    "cola": {"acceptable": 721, "unacceptable": 322},
    "rte": {"entailment": 146, "not_entailment": 131},
    "wnli": {"not_entailment": 40, "entailment": 31},
    "qnli": {"not_entailment": 2761, "entailment": 2702},
    "mnli": {"entailment": 3479, "contradiction": 3213, "neutral": 3123},  # matched
}
LEVEL = 0.95


def balanced(step: dict[str, Any], task: str) -> float:
    """The mean over both classes of the share of right answers, from the accuracy and the counts of answers."""
    gold = DEV[task]
    (one, of_one), (_, of_other) = gold.items()
    right = step["metrics"]["accuracy"] * (of_one + of_other)
    right_of_one = (right + step["predicted"].get(one, 0) - of_other) / 2
    return float((right_of_one / of_one + (right - right_of_one) / of_other) / 2)


def lead(ahead: list[dict[str, float]], orders: np.ndarray, n: int, level: float = LEVEL) -> tuple[float, float, float]:
    """Mean over models, with an interval over models, orders and examples; each part with the freedom that it has.

    ``ahead``: one model's lead each, as its cell has it. ``orders`` [models, orders]: balanced accuracy of the random
    orders; the first ones of all models together, the second ones, …: whether they are one order or not, the variance
    of their means is what counts. The ``n`` examples are the same for all models.
    """
    return lead_over_range([[one] for one in ahead], orders[:, None], n, level)


def lead_over_range(
    ahead: list[list[dict[str, float]]], orders: np.ndarray, n: int, level: float = LEVEL
) -> tuple[float, float, float]:
    """The mean over several steps, and over models: ``ahead`` [models][steps], ``orders`` [models, steps, orders].

    Steps share their examples, and a cell does not say how far their errors go together. They are taken to go together
    wholly, which gives the widest interval.
    """
    models, _, count = orders.shape
    inside = np.var(orders, axis=2, ddof=1) * (count - 1) / count**2  # what a cell's resampling makes of the orders
    ends = np.array([[(a["low"], a["high"]) for a in steps] for steps in ahead])
    whole = ((ends[..., 1] - ends[..., 0]) / (2 * norm.ppf((1 + LEVEL) / 2))) ** 2
    examples = np.sqrt(np.maximum(0.0, whole - inside)).mean(axis=1) ** 2  # by model
    means = np.array([np.mean([a["mean"] for a in steps]) for steps in ahead])
    by_order = orders.mean(axis=(0, 1))
    parts = [(float(np.var(by_order, ddof=1)) / count, count - 1), (float(examples.mean()), n - 1)]
    if models > 1:
        parts.append((float(np.var(means, ddof=1)) / models, models - 1))
    half = float(sum(t.ppf((1 + level) / 2, freedom) ** 2 * part for part, freedom in parts)) ** 0.5
    return float(means.mean()), float(means.mean()) - half, float(means.mean()) + half


def simulate(of_orders: float, draws: int = 400, seed: int = 0) -> tuple[float, float]:
    """How often the cell's interval and this one hold the mean, where orders differ by so many points (sd)."""
    from study.orders import lead as by_resampling

    n, count = 400, 3
    draw = np.random.default_rng(seed)
    gold, held = np.arange(n) % 2, np.zeros(2)
    for _ in range(draws):
        rates = 0.7 + of_orders / 100 * draw.normal(size=count)
        own = draw.random(n) < 0.7
        others = draw.random((count, n)) < rates[:, None]
        result = by_resampling(own, others, gold, draw)
        each = [float(np.mean([o[gold == c].mean() for c in (0, 1)])) for o in others]
        ends = ((result["low"], result["high"]), lead([result], np.array([each]), n)[1:])
        held += [low <= 0 <= high for low, high in ends]
    return tuple(float(h) for h in held / draws)  # type: ignore[return-value]


if __name__ == "__main__":
    for points in (0.0, 2.0, 5.0, 10.0):
        by_cell, here = simulate(points)
        print(f"orders differ by {points:g} points (sd): the cell's holds in {by_cell:.3f}, this one in {here:.3f}")
