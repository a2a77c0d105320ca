"""How often the intervals of all looks hold the truth together: ``python bench/coverage_of_looks.py [--runs 20000]``.

``Evaluator.growing`` compares on ever more examples. Simulated: data sets as in ``bench/coverage.py``, looked at in its
parts, without the help of proportional classes. A data set counts as missed where the interval of any look does not
hold the population's difference: of those before the last, and of all, the last one included. Each entry is the
largest of all cases; an interval that is not given is no look.
"""

from __future__ import annotations

import argparse
import itertools
import zlib
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from coverage import ACCURACY, POSITIVE, RATES, TO_THE_WORSE, drawn_scores, population
from headviz.evaluation.mask_evaluator import ENOUGH, level, part_sizes
from headviz.statistics.intervals import SLOPES, accuracy_intervals, class_intervals, correlation_interval
from headviz.statistics.resampling import Joint
from headviz.statistics.significance import LEVEL

SIZES = (100, 256, 500, 2000)
LARGE = (*RATES, 0.2, 0.4)  # shares of answers that change; a rough part of the data is also looked at where many do
Ends = tuple[NDArray, NDArray]


def missed(ends: list[Ends], truth: float) -> tuple[float, float, float]:
    """How often a look before the last, any look, and the last one miss the truth."""
    miss = [(low > truth + 1e-12) | (high < truth - 1e-12) for low, high in ends]
    early = np.logical_or.reduce([np.zeros(len(miss[-1]), dtype=bool), *miss[:-1]])
    return float(early.mean()), float((early | miss[-1]).mean()), float(miss[-1].mean())


def steps(metric: str, n: int) -> list[tuple[int, float]]:
    """Examples and level of every look that has an interval."""
    return [*((size, level(n)) for size in part_sizes(n) if metric == "accuracy" or size >= ENOUGH), (n, LEVEL)]


def counted(n: int, joint: NDArray, runs: int, key: str, ends: Callable[[NDArray, int, float], Ends]) -> list[Ends]:
    """The intervals of growing tables of counts."""
    rng = np.random.default_rng(zlib.crc32(key.encode()))
    table, before, result = np.zeros((runs, joint.size), dtype=np.int64), 0, []
    for size, wanted in steps(key.split()[0], n):
        table += rng.multinomial(size - before, joint.ravel(), size=runs)
        before = size
        result.append(ends(table.reshape(runs, *joint.shape), size, wanted))
    return result


def of_accuracy(table: NDArray, n: int, wanted: float) -> Ends:
    lost, mended = table[:, 0], table[:, 1]
    return accuracy_intervals(lost, mended, n, wanted)


def cases(metric: str, n: int, runs: int) -> Iterator[tuple[float, float, float]]:
    """Every case of a metric: how often it is missed."""
    if metric == "accuracy":
        for rate, share in itertools.product(LARGE, TO_THE_WORSE):
            joint = np.array([rate * share, rate * (1 - share), 1 - rate])
            key = f"{metric} {n} {rate} {share}"
            yield missed(counted(n, joint, runs, key, of_accuracy), rate * (1 - 2 * share))
    elif metric == "pearson":
        for r, rate, kind in itertools.product((0.3, 0.6, 0.9), RATES, ("exchanged", "shifted", "noisier")):
            gold, before, after = drawn_scores(np.random.default_rng(0), 1_000_000, r, rate, kind)
            truth = float(np.corrcoef(gold, after)[0, 1] - np.corrcoef(gold, before)[0, 1])
            rng = np.random.default_rng(zlib.crc32(f"{metric} {n} {r} {rate} {kind}".encode()))
            drawn = (drawn_scores(rng, n, r, rate, kind) for _ in range(runs // 40))
            ends = [
                [correlation_interval(*(x[:k] for x in one), wanted) for k, wanted in steps(metric, n)] for one in drawn
            ]
            by_look = np.array(ends).transpose(1, 2, 0)
            yield missed([(low, high) for low, high in by_look], truth)
    else:
        for positive, right, rate, share in itertools.product(POSITIVE, ACCURACY, LARGE, TO_THE_WORSE):
            joint = population(positive, right, rate * share, rate * (1 - share), None)
            if joint is None:
                continue
            truth = float(SLOPES[metric](joint.sum(axis=1))[0] - SLOPES[metric](joint.sum(axis=2))[0])
            key = f"{metric} {n} {positive} {right} {rate} {share}"
            yield missed(
                counted(n, joint, runs // 5, key, lambda t, _, wanted: class_intervals(Joint.of(t), metric, wanted)),
                truth,
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20_000, help="a case; fewer for F1, Matthews and r")
    parser.add_argument("--metrics", default="accuracy,f1,matthews,pearson")
    given = parser.parse_args()
    print("| metric | n | looks before the last | one of these misses | any look misses | the last alone |")
    print("|---|---|---|---|---|---|")
    worst = 0.0
    for metric, n in itertools.product(given.metrics.split(","), SIZES):
        result = np.array(list(cases(metric, n, given.runs)))
        early, any_, _ = result.max(axis=0)
        alone = result[result[:, 1].argmax(), 2]
        worst = max(worst, any_)
        told = ", ".join(str(size) for size, _ in steps(metric, n)[:-1]) or "–"
        print(f"| {metric} | {n} | {told} | {early:.3f} | {any_:.3f} | {alone:.3f} |", flush=True)
    return 1 if worst > 0.07 else 0


if __name__ == "__main__":
    raise SystemExit(main())
