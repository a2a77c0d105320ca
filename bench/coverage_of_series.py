"""How often an interval of timings holds their mean: ``python bench/coverage_of_series.py [--runs 20000] [--timed]``.

Timings of a busy machine resemble those before them. Simulated: series of paired differences with this correlation from
one to the next; Student's t over all of them, over three blocks, as ``headviz.speed`` has it, and the median by
resampling, as ``prune --faster`` and ``runtimes`` have it of pairs in turn. Beside the coverage
stands the median width, in standard deviations of one difference.

``--timed`` times the demo and the demo without half of its heads in pairs, as ``prune --faster`` and ``runtimes`` do,
and prints how far the ratio of a pair resembles that of the pair before. The order within a pair changes from one to
the next.
"""

import argparse

import numpy as np
import torch

import headviz
from headviz.pruning.latency import Timer, median_of_pairs
from headviz.statistics.intervals import interval_of_mean, interval_of_series

LENGTHS = (7, 9, 12, 30, 41)
CORRELATIONS = (0.0, 0.1, 0.3, 0.5, 0.8)


def series(rng: np.random.Generator, runs: int, length: int, correlation: float) -> np.ndarray:
    """[runs, length] of variance 1 and mean 0."""
    result = rng.normal(size=(runs, length))
    for at in range(1, length):
        result[:, at] = correlation * result[:, at - 1] + np.sqrt(1 - correlation**2) * result[:, at]
    return result


def timed(count: int = 8, pairs: int = 41) -> None:
    """The correlation of one pair's ratio with the next, over so many series of pairs."""
    torch.set_num_threads(1)
    clf = headviz.load("demo", device="cpu")
    small = headviz.prune(clf, clf.full_mask.without(clf.full_mask.kept[::2]))
    timer, found = Timer(clf, 1, 32), []
    for _ in range(count):
        ratios = []
        for pair in range(pairs):
            seconds = [timer(model) for model in ((small, clf) if pair % 2 else (clf, small))]
            ratios.append(seconds[1] / seconds[0] if pair % 2 else seconds[0] / seconds[1])
        off = np.array(ratios) - np.mean(ratios)
        found.append(float((off[1:] * off[:-1]).sum() / (off**2).sum()))
    mean, low, high = interval_of_mean(found)
    print(f"{count} series of {pairs} pairs: lag-1 correlation {mean:.2f} [{low:.2f}, {high:.2f}]")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--timed", action="store_true", help="time pairs on this machine instead")
    given = parser.parse_args()
    if given.timed:
        timed()
        return
    print("| repeats | correlation | t: covers (width) | three blocks | median, resampled |\n|---|---|---|---|---|")
    for length in LENGTHS:
        for correlation in CORRELATIONS:
            drawn = series(np.random.default_rng(0), given.runs, length, correlation)
            cells = []
            for of in (interval_of_mean, interval_of_series, median_of_pairs):
                some = drawn[: given.runs // 10] if of is median_of_pairs else drawn
                low, high = np.array([of(one)[1:] for one in some]).T
                cells.append(f"{np.mean((low <= 0) & (high >= 0)):.3f} ({np.median(high - low):.2f})")
            print(f"| {length} | {correlation} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
