"""How often the intervals of a difference hold the truth: ``python bench/coverage.py [--runs 4000] [--out FILE]``.

Simulated: a model's answers before and after a change, of which a small share differs, all of it to the worse, most
of it, or to both sides alike; balanced, unbalanced and rare classes; the changes in one class or in all. Each cell
draws data sets from a known population and counts the intervals that hold the population's difference. An interval
that is not given does not hold it. A second table counts the lower ends above that difference: so often "a loss of more
than X is excluded" is said of a loss that is there.

The product also widens an interval to reach zero where the test beside it does not reject, which can but raise the
coverage; for accuracy the two always agree. The tests of the others are sampled: ``--tested`` does the same for
them, and takes some milliseconds for each interval that excludes zero.

Metrics of the other jobs are drawn from a made population of 20,000 texts, questions or queries, each of which is a
unit, and given to the classes that the product uses: F1 of several labels (balanced and rare ones) and of tags (few and
many spans in a text), exact match and token F1 of spans, nDCG@10, MRR@10 and MAP (equal and unequal numbers of
passages), from one unit on. There coverage is that of the intervals that are given. Metrics of probabilities are drawn
from a formula, of a balanced and a rare class, and their intervals as the product gives them.

``--out`` keeps every cell as it is done, one JSON line each; the same command takes up an interrupted one.
"""

from __future__ import annotations

import argparse
import itertools
import json
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import binom, norm

from headviz.answers.comparison import SumAnswers
from headviz.answers.labels import LabelAnswers
from headviz.answers.probabilities import OF_PROBABILITIES, ProbabilityAnswers
from headviz.answers.rank import RankAnswers
from headviz.answers.span import SpanAnswers
from headviz.answers.tokens import TokenAnswers
from headviz.statistics.intervals import SLOPES, accuracy_intervals, class_intervals, consistent, correlation_interval
from headviz.statistics.resampling import Joint, class_in, class_swap_p, of_tables, ranks, regression_swap_p
from headviz.statistics.significance import LEVEL

SIZES = (50, 100, 200, 500, 2000)
RATES = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1)  # share of answers that change
TO_THE_WORSE = (1.0, 0.7, 0.5)  # share of the changes
POSITIVE = (0.5, 0.68, 0.1)  # share of class 1
ACCURACY = (0.7, 0.9)
CORRELATIONS = (0.3, 0.6, 0.9, 0.97)
TARGET = 0.93
NEVER = 1e-9  # counts that are rarer are left out of an exact sum
FALLEN = "fallen"  # the highest gold values get the lowest answers: rare and large, so a sample may show none
MIXED = "noisier and exchanged"  # all are a little noisier, which hides that a sample shows none of those exchanged
HEAVY = "heavy tails"
KINDS = ("exchanged", "shifted", "noisier", HEAVY, FALLEN, MIXED)


def population(positive: float, right: float, worse: float, better: float, only: int | None) -> NDArray | None:
    """Shares [gold, before, after]; the changes are all in class ``only``, if given. None where it cannot be."""
    joint = np.zeros((2, 2, 2))
    for gold, share in ((0, 1 - positive), (1, positive)):
        lost, mended = worse / right, better / (1 - right)
        if only is not None:
            lost, mended = (lost / share, mended / share) if gold == only else (0.0, 0.0)
        if lost > 1 or mended > 1:
            return None
        other = 1 - gold
        joint[gold, gold, other] = share * right * lost
        joint[gold, gold, gold] = share * right * (1 - lost)
        joint[gold, other, gold] = share * (1 - right) * mended
        joint[gold, other, other] = share * (1 - right) * (1 - mended)
    return joint


def accuracy_cells(done: set[str]) -> Iterator[dict[str, Any]]:
    """Accuracy asks only how many answers are lost and mended: the coverage is a sum over both, without simulation."""
    for n, rate, share in itertools.product(SIZES, RATES, TO_THE_WORSE):
        told = {"worse": share}
        if key_of("accuracy", n, rate, told) in done:
            continue
        lost, mended = rate * share, rate * (1 - share)
        w, b = np.meshgrid(*(np.arange(most(n, p) + 1) for p in (lost, mended)), indexing="ij")
        chance = binom.pmf(w, n, lost) * np.where(w + b <= n, binom.pmf(b, n - w, mended / (1 - lost)), 0)
        w, b, chance = (x[chance > NEVER] for x in (w, b, chance))
        yield cell("accuracy", n, rate, told, *accuracy_intervals(w, b, n), mended - lost, chance)


def most(n: int, share: float) -> int:
    """A count that is as good as never exceeded."""
    return min(n, int(n * share + 12 * np.sqrt(n * share) + 12))


def widened(low: NDArray, high: NDArray, p_of: Callable[[int], float]) -> tuple[NDArray, NDArray]:
    """Intervals that reach zero where the test does not reject; ``p_of`` gives p of the data set of that number."""
    p = np.zeros(len(low))
    for i in np.flatnonzero((low > 0) | (high < 0)):
        p[i] = p_of(int(i))
    return consistent(low, high, p)


def class_cells(metric: str, runs: int, done: set[str], tested: bool = False) -> Iterator[dict[str, Any]]:
    """Every combination for a class metric."""
    for n, positive, right, rate, share, only in itertools.product(
        SIZES, POSITIVE, ACCURACY, RATES, TO_THE_WORSE, (None, 0, 1)
    ):
        joint = population(positive, right, rate * share, rate * (1 - share), only)
        if joint is None:
            continue
        told = {"positive": positive, "right": right, "worse": share, "only": only}
        if (key := key_of(metric, n, rate, told)) in done:
            continue
        rng = np.random.default_rng(zlib.crc32(key.encode()))
        truth = float(of_tables(metric, joint.sum(axis=1)) - of_tables(metric, joint.sum(axis=2)))
        drawn = rng.multinomial(n, joint.ravel(), size=runs).reshape(-1, 2, 2, 2)
        low, high = class_intervals(Joint.of(drawn), metric)
        if tested:
            low, high = widened(low, high, lambda i, drawn=drawn: class_swap_p(Joint.of(drawn[i]), metric))
        yield cell(metric, n, rate, told, low, high, truth)


def drawn_scores(rng: np.random.Generator, n: int, r: float, rate: float, kind: str) -> tuple[NDArray, ...]:
    """Gold values and a model's answers before and after: a share of them is exchanged or shifted, those of the highest
    gold values fall below all others, or all are noisier: these alone, with a share exchanged besides, or with errors
    and noise of Student's t with three degrees of freedom.
    """
    draw = partial(rng.standard_t, 3) if kind == HEAVY else rng.normal
    gold, errors, noise = rng.normal(size=n), draw(size=n), draw(size=n)
    before = r * gold + np.sqrt(1 - r * r) * errors
    change = rng.random(n) < rate
    if kind == "exchanged":
        return gold, before, np.where(change, rng.normal(size=n), before)
    if kind == "shifted":
        return gold, before, np.where(change, before - 2, before)
    if kind == FALLEN:
        return gold, before, np.where(gold > norm.ppf(1 - rate), gold - 6, before)
    if kind == MIXED:
        return gold, before, np.where(change, rng.normal(size=n), before + noise / 10)
    return gold, before, before + 3 * rate * noise


def correlation_cells(metric: str, runs: int, done: set[str], tested: bool = False) -> Iterator[dict[str, Any]]:
    """Pearson's or Spearman's; the population's difference is that of a million examples."""
    ranked = metric == "spearman"
    for r, rate, kind in itertools.product(CORRELATIONS, RATES, KINDS):
        told = {"r": r, "kind": kind}
        if all(key_of(metric, n, rate, told) in done for n in SIZES):
            continue
        gold, before, after = drawn_scores(np.random.default_rng(0), 1_000_000, r, rate, kind)
        gold, before, after = (ranks(x) if ranked else x for x in (gold, before, after))
        truth = float(np.corrcoef(gold, after)[0, 1] - np.corrcoef(gold, before)[0, 1])
        for n in SIZES:
            if (key := key_of(metric, n, rate, told)) in done:
                continue
            rng = np.random.default_rng(zlib.crc32(key.encode()))
            drawn = [drawn_scores(rng, n, r, rate, kind) for _ in range(runs)]
            low, high = np.array([correlation_interval(*one, ranked=ranked) for one in drawn]).T
            if tested:
                low, high = widened(low, high, lambda i, drawn=drawn: regression_swap_p(*drawn[i], metric))
            yield cell(metric, n, rate, told, low, high, truth)


def drawn_probabilities(
    rng: np.random.Generator, n: int, positive: float, rate: float, kind: str
) -> tuple[NDArray, ...]:
    """Classes and two models' probabilities [n, 2]: those of a share of the examples are another example's, or all are
    noisier.
    """
    gold = (rng.random(n) < positive).astype(np.int64)
    before = 2.0 * gold - 1 + 1.5 * rng.normal(size=n)
    if kind == "exchanged":
        after = np.where(rng.random(n) < rate, rng.permutation(before), before)
    else:
        after = before + 3 * rate * rng.normal(size=n)
    return gold, *(np.stack([expit(-x), expit(x)], axis=1) for x in (before, after))


def probability_cells(metric: str, runs: int, done: set[str]) -> Iterator[dict[str, Any]]:
    """Metrics of probabilities; the population's difference is that of a million examples."""
    for positive, rate, kind in itertools.product((0.5, 0.1), RATES[1::2], ("exchanged", "noisier")):
        told = {"positive": positive, "kind": kind}
        if all(key_of(metric, n, rate, told) in done for n in SIZES):
            continue
        gold, *both = drawn_probabilities(np.random.default_rng(0), 1_000_000, positive, rate, kind)
        before, after = (float(OF_PROBABILITIES[metric](gold, p, np.ones((1, len(gold))))[0]) for p in both)
        for n in SIZES:
            if (key := key_of(metric, n, rate, told)) in done:
                continue
            rng, ends = np.random.default_rng(zlib.crc32(key.encode())), []
            for _ in range(runs):
                gold, full, masked = drawn_probabilities(rng, n, positive, rate, kind)
                ends.append(ProbabilityAnswers(gold, full, 2).uncertainty(masked, metric, None, 0.95)[:2])
            yield cell(metric, n, rate, told, *np.array(ends, dtype=float).T, after - before)


UNITS = (1, 5, 10, 20, 50, 200)  # texts, questions or queries of one data set
POOL = 20_000
JOBS = ("micro_f1", "macro_f1", "span_f1", "exact_match", "token_f1", "ndcg@10", "mrr@10", "map")


def pool_of(metric: str, rng: np.random.Generator, rate: float, worse: float, uneven: bool) -> Any:
    """Gold answers and a model's before and after, [units, …]: a share of the units changes."""
    changes, down = rng.random(POOL) < rate, rng.random(POOL) < worse
    if metric in ("micro_f1", "macro_f1"):  # four labels; an example changes one of them
        share = np.array([0.02, 0.05, 0.1, 0.3]) if uneven else np.full(4, 0.4)
        gold = (rng.random((POOL, 4)) < share).astype(np.int64)
        before = np.where(rng.random((POOL, 4)) < 0.1 + 0.2 * gold, 1 - gold, gold)
        at = rng.integers(0, 4, POOL)
        after = before.copy()
        after[changes, at[changes]] = np.where(down, 1 - gold[np.arange(POOL), at], gold[np.arange(POOL), at])[changes]
        return gold, before, after
    if metric == "span_f1":  # up to 3 spans of one word, or up to 12 in few texts
        most = np.where(rng.random(POOL) < 0.1, 12, 1) if uneven else np.full(POOL, 3)
        gold = np.where(rng.random((POOL, 12)) < most[:, None] / 16, rng.choice([1, 3], (POOL, 12)), 0)
        wrong = np.where(gold > 0, rng.choice([0, 1, 3], (POOL, 12)), rng.choice([0, 1], (POOL, 12), p=[0.7, 0.3]))
        before = np.where(rng.random((POOL, 12)) < 0.15, wrong, gold)
        after = np.where(changes[:, None], np.where(down[:, None], wrong, gold), before)
        return gold, before, after
    if metric in ("exact_match", "token_f1"):  # of 20 words; a changed answer goes elsewhere, or to the gold one
        first, long = rng.integers(0, 12, POOL), rng.integers(1, 8 if uneven else 3, POOL)
        place = np.arange(20)
        there = (place >= first[:, None]) & (place < (first + long)[:, None])
        gold = np.stack([np.tile(1 + place, (POOL, 1)), there], axis=2).astype(np.int64)
        right = np.stack([first, first + long - 1], axis=1)
        other = np.stack([one := rng.integers(0, 14, POOL), one + rng.integers(0, 6, POOL)], axis=1)
        none = np.where((rng.random(POOL) < 0.3)[:, None], -1, other)
        before = np.where((rng.random(POOL) < 0.3)[:, None], none, right)
        return gold, before, np.where(changes[:, None], np.where(down[:, None], none, right), before)
    # ten passages, or two in most queries and 40 in few
    k = 40 if uneven else 10
    size = np.where(rng.random(POOL) < 0.2, 40, 2) if uneven else np.full(POOL, 10)
    there = np.arange(k) < size[:, None]
    gold = ((rng.random((POOL, k)) < 0.2) & there).astype(float)
    gold[np.arange(POOL), rng.integers(0, size)] = 1.0
    before = np.where(there, gold * 1.5 + rng.normal(size=(POOL, k)), -np.inf)
    noise = np.where(there, rng.normal(size=(POOL, k)), -np.inf)
    better = np.where(there, before + gold, -np.inf)
    return gold, before, np.where(changes[:, None], np.where(down[:, None], noise, better), before)


def answers_of(metric: str, gold: NDArray, before: NDArray, after: NDArray) -> tuple[SumAnswers, NDArray]:
    if metric in ("micro_f1", "macro_f1"):
        return LabelAnswers(gold, before), after
    if metric == "span_f1":
        return TokenAnswers(gold, before), after
    if metric in ("exact_match", "token_f1"):
        return SpanAnswers(gold, before), after
    there = np.isfinite(before)
    query = np.broadcast_to(np.arange(len(gold))[:, None], gold.shape)
    return RankAnswers(np.stack([gold[there], query[there]], axis=1), before[there]), after[there]


def job_cells(metric: str, runs: int, done: set[str], tested: bool = False) -> Iterator[dict[str, Any]]:
    for rate, worse, uneven in itertools.product((0.005, 0.02, 0.1), (1.0, 0.5), (False, True)):
        told = {"worse": worse, "uneven": uneven}
        if all(key_of(metric, n, rate, told) in done for n in UNITS):
            continue
        pool = pool_of(metric, np.random.default_rng(0), rate, worse, uneven)
        whole, after = answers_of(metric, *pool)
        truth = whole.measure(after, metric) - whole.measure(whole.full, metric)
        for n in UNITS:
            if (key := key_of(metric, n, rate, told)) in done:
                continue
            rng, ends = np.random.default_rng(zlib.crc32(key.encode())), []
            for _ in range(runs):
                drawn, after = answers_of(metric, *(one[at] for at in [rng.integers(0, POOL, n)] for one in pool))
                ends.append(consistent(*drawn.uncertainty(after, metric, 0 if tested else None, LEVEL), LEVEL))
            low, high = np.array(ends, dtype=float).T
            given = np.isfinite(low)
            one = cell(metric, n, rate, told, *((low[given], high[given]) if given.any() else (low, high)), truth)
            yield one | {"not_given": 1 - float(given.mean()), "coverage": one["coverage"] if given.any() else None}


def job_table(cells: list[dict[str, Any]]) -> str:
    """Lowest coverage, median width in points and share of intervals not given, by metric and number of units."""
    lines = ["| metric | " + " | ".join(map(str, UNITS)) + " |", "|---" * (len(UNITS) + 1) + "|"]
    for metric in dict.fromkeys(c["metric"] for c in cells):
        row = []
        for n in UNITS:
            some = [c for c in cells if (c["metric"], c["n"]) == (metric, n)]
            known = [c for c in some if c["coverage"] is not None]
            missing = max(c["not_given"] for c in some)
            width = 100 * float(np.median([c["width"] for c in known])) if known else 0.0
            lowest = min((c["coverage"] for c in known), default=0.0)
            held = f"{lowest:.3f} ({width:.1f}{f', {missing:.1%}' if missing else ''})"
            row.append(held if known else "none")
        lines.append(f"| {metric} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def key_of(metric: str, n: int, rate: float, told: dict[str, Any]) -> str:
    """Names a cell, and seeds it."""
    return json.dumps([metric, n, rate, told], sort_keys=True)


def cell(
    metric: str,
    n: int,
    rate: float,
    told: dict[str, Any],
    low: NDArray,
    high: NDArray,
    truth: float,
    chance: NDArray | None = None,
) -> dict[str, Any]:
    """One row of the table; ``chance`` weighs the intervals. One that is not given does not hold the truth."""
    chance = np.full(len(low), 1 / len(low)) if chance is None else chance
    holds = (low <= truth + 1e-12) & (high >= truth - 1e-12)
    order = np.argsort(high - low)
    half = np.searchsorted(np.cumsum(chance[order]), 0.5)
    return {
        "key": key_of(metric, n, rate, told),
        "metric": metric,
        "n": n,
        "rate": rate,
        **told,
        "coverage": float(chance[holds].sum()),
        "too_high": float(chance[low > truth + 1e-12].sum()),
        "not_given": float(chance[np.isnan(low)].sum()),
        "width": float((high - low)[order[half]]),
    }


def table(cells: list[dict[str, Any]]) -> str:
    """Lowest coverage, median width in points and share of intervals not given, by metric, size and rate; Markdown."""
    lines = ["| metric | n | " + " | ".join(f"{rate:.1%}" for rate in RATES) + " |", "|---" * (len(RATES) + 2) + "|"]
    for metric, n in itertools.product(dict.fromkeys(c["metric"] for c in cells), SIZES):
        row = []
        for rate in RATES:
            some = [c for c in cells if (c["metric"], c["n"], c["rate"]) == (metric, n, rate)]
            if not some:
                row.append("")
                continue
            width, missing = np.median([c["width"] for c in some]), max(c["not_given"] for c in some)
            row.append(
                f"{min(c['coverage'] for c in some):.3f} ({100 * width:.1f}{f', {missing:.1%}' if missing else ''})"
            )
        lines.append(f"| {metric} | {n} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def of_low_ends(cells: list[dict[str, Any]]) -> str:
    """How often at most the lower end is above the truth, by metric and size; Markdown."""
    lines = ["| metric | " + " | ".join(map(str, SIZES)) + " |", "|---" * (len(SIZES) + 1) + "|"]
    for metric in dict.fromkeys(c["metric"] for c in cells):
        most_of = [max(c["too_high"] for c in cells if (c["metric"], c["n"]) == (metric, n)) for n in SIZES]
        lines.append(f"| {metric} | " + " | ".join(f"{x:.1%}" for x in most_of) + " |")
    return "\n".join(lines)


def of_fallen(cells: list[dict[str, Any]]) -> str:
    """Lowest coverage by the number of fallen or exchanged examples that are to be expected; Markdown."""
    metrics = list(dict.fromkeys(c["metric"] for c in cells))
    lines = [f"| {cells[0]['kind']} | {' | '.join(metrics)} |", "|---" * (len(metrics) + 1) + "|"]
    for expected in sorted({round(c["n"] * c["rate"], 1) for c in cells}):
        some = [c for c in cells if round(c["n"] * c["rate"], 1) == expected]
        row = [f"{min(c['coverage'] for c in some if c['metric'] == m):.3f}" for m in metrics]
        lines.append(f"| {expected:g} | {' | '.join(row)} |")
    return "\n".join(lines)


def read(out: Path | None, runs: int, tested: bool) -> list[dict[str, Any]]:
    """Cells of an interrupted call; those of another number of runs or kind, and a broken last line, are left out."""
    if out is None or not out.exists():
        return []
    text = out.read_text(encoding="utf-8")
    out.write_text(text[: text.rfind("\n") + 1], encoding="utf-8")
    record = map(json.loads, text.split("\n")[:-1])
    return [c for c in record if (c["runs"], c.get("tested", False)) == (runs, tested)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--runs",
        type=int,
        default=4000,
        help="data sets for each cell (a fifth for correlations, a fourth for probabilities, half for jobs)",
    )
    parser.add_argument("--metrics", default=",".join(("accuracy", "f1", "matthews", "pearson", "spearman", *JOBS)))
    parser.add_argument("--tested", action="store_true", help="widen all intervals as the product does (slow)")
    parser.add_argument("--out", type=Path, help="keep every cell in this file, one JSON line each")
    given = parser.parse_args()
    cells = read(given.out, given.runs, given.tested)
    done = {c["key"] for c in cells}
    for metric in given.metrics.split(","):
        if metric == "accuracy":
            some = accuracy_cells(done)
        elif metric in OF_PROBABILITIES:
            some = probability_cells(metric, given.runs // 4, done)
        elif metric in JOBS:
            some = job_cells(metric, given.runs // 2, done, given.tested)
        elif metric in SLOPES or class_in(metric) is not None:
            some = class_cells(metric, given.runs, done, given.tested)
        elif metric not in ("pearson", "spearman"):
            parser.error(f"no cells for {metric}")
        else:
            some = correlation_cells(metric, given.runs // 5, done, given.tested)
        for one in some:
            cells.append(one)
            if given.out:
                with given.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"runs": given.runs, "tested": given.tested, **one}) + "\n")
    rare = [[c for c in cells if c.get("kind") == kind] for kind in (FALLEN, MIXED)]
    of_jobs = [c for c in cells if c["metric"] in JOBS]
    usual = [c for c in cells if c.get("kind") not in (FALLEN, MIXED) and c["metric"] not in JOBS]
    if of_jobs:
        print(job_table(of_jobs))
    if usual:
        print(f"{table(usual)}\n\n{of_low_ends(usual)}")
    usual += [c for c in of_jobs if c["coverage"] is not None]
    below = [c for c in usual if c["coverage"] < TARGET]
    print(f"\n{len(usual)} cells, lowest {min(c['coverage'] for c in usual):.3f}, {len(below)} below {TARGET}.")
    for c in sorted(below, key=lambda c: c["coverage"])[:10]:
        print("  ", c)
    for some in filter(None, rare):
        print(f"\n{of_fallen(some)}")
    return 1 if below else 0


if __name__ == "__main__":
    raise SystemExit(main())
