"""How far an order of heads is ahead of random ones, from what the cells hold, with an interval for few orders.

A cell's own interval resamples examples and random orders. With three orders that is too narrow. So the part of its
variance that comes from the orders is taken out, and that of a mean of so few is put in its place.

python -m study.leads         # how often either interval holds: the table in bench/coverage.md
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from itertools import product
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
AT_ONCE = 1 - (1 - LEVEL) / 3  # Bonferroni over three tasks
RIGHT = 0.7  # of the simulated answers


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


@dataclass(frozen=True)
class Simulated:
    """Leads that are zero in the mean: how far orders and models differ (sd, points), and how alike answers are."""

    orders: float
    models: float = 0.0
    alike: float = 0.5  # correlation of the answers of two orders to one example, before they are right or wrong
    steps: int = 9
    of_models: int = 3
    of_orders: int = 3
    n: int = 400

    def draw(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Leads [models, steps, orders, n] and the random orders' accuracies [models, steps, orders].

        An order is the same for all models, and what sets it or a model apart is the same at all steps: the errors go
        together as far as they can.
        """
        common = np.sqrt(self.alike) * rng.normal(size=self.n)

        def right(rates: np.ndarray) -> np.ndarray:
            own = np.sqrt(1 - self.alike) * rng.normal(size=(*rates.shape, self.n))
            return (common + own < norm.ppf(np.clip(rates, 0.01, 0.99))[..., None]).astype(float)

        of_models = self.models / 100 * rng.normal(size=(self.of_models, 1))
        of_orders = self.orders / 100 * rng.normal(size=self.of_orders)
        own = right(np.broadcast_to(RIGHT + of_models, (self.of_models, self.steps)))
        others = right(np.broadcast_to(RIGHT + of_orders, (self.of_models, self.steps, self.of_orders)))
        return own[:, :, None] - others, others.mean(axis=-1)


def resampled(leads: np.ndarray, rng: np.random.Generator, times: int = 400) -> list[list[dict[str, float]]]:
    """What cells say of ``leads`` [models, steps, orders, n]: orders and examples drawn again, as in each of them."""
    *_, orders, n = leads.shape
    examples = rng.multinomial(n, np.full(n, 1 / n), times).T / n
    chosen = rng.multinomial(orders, np.full(orders, 1 / orders), times).T / orders
    low, high = np.quantile((leads @ examples * chosen).sum(axis=2), [0.025, 0.975], axis=-1)
    means = leads.mean(axis=(2, 3))
    return [
        [{"mean": m, "low": lo, "high": hi} for m, lo, hi in zip(*model, strict=True)]
        for model in zip(means, low, high, strict=True)
    ]


def simulate(of: Simulated, runs: int = 400, seed: int = 0) -> tuple[float, float, float]:
    """How often the mean of the cells' intervals holds the mean lead, and ``lead_over_range``, also at ``AT_ONCE``."""
    rng, held = np.random.default_rng(seed), np.zeros(3)
    for _ in range(runs):
        leads, orders = of.draw(rng)
        ahead = resampled(leads, rng)
        plain = [float(np.mean([one[end] for model in ahead for one in model])) for end in ("low", "high")]
        given = [lead_over_range(ahead, orders, of.n, level)[1:] for level in (LEVEL, AT_ONCE)]
        held += [low <= 0 <= high for low, high in (plain, *given)]
    return tuple(float(h) for h in held / runs)  # type: ignore[return-value]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000, help="simulated leads of each kind")
    runs = parser.parse_args().runs
    print("| steps | models | sd of orders | sd of models | mean of the cells' | as given, 95 % | as given, 98.3 % |")
    print("|---|---|---|---|---|---|---|")
    for steps, models in ((1, 1), (1, 3), (9, 3)):
        for orders, apart in product((0.0, 2.0, 5.0, 10.0), (0.0, 5.0) if models > 1 else (0.0,)):
            kinds = [Simulated(orders, apart, alike, steps, models) for alike in (0.3, 0.8)]
            held = np.min([simulate(kind, runs) for kind in kinds], axis=0)
            shares = " | ".join(f"{share:.3f}" for share in held)
            print(f"| {steps} | {models} | {orders:g} | {apart:g} | {shares} |", flush=True)


if __name__ == "__main__":
    main()
