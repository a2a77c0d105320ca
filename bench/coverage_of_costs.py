"""How often intervals of the correlation of two tables of head costs are right, where a few heads cost most.

    python -m bench.coverage_of_costs

Costs on two data sets share a part of heavy tails, as those of trained models do. Of Pearson's r, Fisher's interval and
that from resampling heads; of the rank correlation, the one that *Other data* gives (`rank_interval`).
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kurtosis, pearsonr, spearmanr

from headviz.extras.analyses.cross_dataset import rank_interval

HEADS = (72, 144)
TAILS = (0.8, 1.2)  # how much the spread of the shared part varies from head to head
TRUTH = 2_000_000  # heads that the true correlation is of


def costs(rng: np.random.Generator, heads: int, tails: float) -> tuple[NDArray, NDArray]:
    common = rng.normal(size=heads) * np.exp(tails * np.abs(rng.normal(size=heads)))
    first, second = (0.8 * common + 0.7 * rng.normal(size=heads) for _ in range(2))
    return first, second


def resampled(rng: np.random.Generator, first: NDArray, second: NDArray, times: int = 1000) -> NDArray:
    """The 95 % interval of Pearson's r over drawn heads."""
    drawn = rng.integers(len(first), size=(times, len(first)))
    x, y = (v[drawn] - v[drawn].mean(axis=1, keepdims=True) for v in (first, second))
    r = (x * y).sum(axis=1) / np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
    return np.quantile(r, (0.025, 0.975))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    runs = parser.parse_args().runs
    rng = np.random.default_rng(0)
    print("| heads | kurtosis (median) | Fisher's, of r | resampled heads, of r | rank correlation |")
    print("|---|---|---|---|---|")
    for tails in TAILS:
        many = costs(rng, TRUTH, tails)
        r, rho = pearsonr(*many).statistic, spearmanr(*many).statistic
        for heads in HEADS:
            held, peaked = np.zeros(3), []
            for _ in range(runs):
                pair = costs(rng, heads, tails)
                fisher = pearsonr(*pair).confidence_interval(0.95)
                of_r, of_ranks = resampled(rng, *pair), rank_interval(*pair)
                held += [fisher.low <= r <= fisher.high, of_r[0] <= r <= of_r[1], of_ranks[0] <= rho <= of_ranks[1]]
                peaked.append(kurtosis(pair[0], fisher=False))
            shares = " | ".join(f"{h / runs:.3f}" for h in held)
            print(f"| {heads} | {np.median(peaked):.0f} | {shares} |", flush=True)


if __name__ == "__main__":
    main()
