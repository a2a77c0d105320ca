"""How often an interval of timings holds their mean: ``python bench/coverage_of_series.py [--runs 20000]``.

Timings of a busy machine resemble those before them. Simulated: series of paired differences with this correlation from
one to the next; Student's t over all of them, and over three blocks, as ``headviz.speed`` has it. Beside the coverage
stands the median width, in standard deviations of one difference.
"""

import argparse

import numpy as np

from headviz.statistics.intervals import interval_of_mean, interval_of_series

LENGTHS = (7, 12, 30)
CORRELATIONS = (0.0, 0.3, 0.5, 0.8)


def series(rng: np.random.Generator, runs: int, length: int, correlation: float) -> np.ndarray:
    """[runs, length] of variance 1 and mean 0."""
    result = rng.normal(size=(runs, length))
    for at in range(1, length):
        result[:, at] = correlation * result[:, at - 1] + np.sqrt(1 - correlation**2) * result[:, at]
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20_000)
    given = parser.parse_args()
    print("| repeats | correlation | t: covers (width) | three blocks: covers (width) |\n|---|---|---|---|")
    for length in LENGTHS:
        for correlation in CORRELATIONS:
            drawn = series(np.random.default_rng(0), given.runs, length, correlation)
            cells = []
            for of in (interval_of_mean, interval_of_series):
                low, high = np.array([of(one)[1:] for one in drawn]).T
                cells.append(f"{np.mean((low <= 0) & (high >= 0)):.3f} ({np.median(high - low):.2f})")
            print(f"| {length} | {correlation} | {cells[0]} | {cells[1]} |", flush=True)


if __name__ == "__main__":
    main()
