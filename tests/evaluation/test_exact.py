"""The bound on a loss of accuracy: how often it misses by exact sums, and what it agrees with."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from headviz.statistics.intervals import accuracy_intervals
from headviz.statistics.significance import mcnemar

LOST = (0.001, 0.003, 0.01, 0.02, 0.035, 0.05, 0.1, 0.2, 0.3, 0.5)
MENDED = (0.1, 0.3, 0.6, 1.0)  # for each answer that is lost


def counts(n: int, lost: float, mended: float) -> list[NDArray]:
    """All counts of lost and mended answers that occur, and how often."""
    ends = (min(n, int(n * p + 7 * np.sqrt(n * p) + 9)) + 1 for p in (lost, mended))
    worse, better = (x.ravel() for x in np.meshgrid(*map(np.arange, ends)))
    chance = stats.multinomial.pmf(
        np.stack([worse, better, n - worse - better], -1), n, [lost, mended, 1 - lost - mended]
    )
    return [x[chance > 1e-9] for x in (worse, better, chance)]


@pytest.mark.parametrize("n", [10, 50, 100, 200, 408, 2000])
def test_where_nothing_is_mended_the_bound_keeps_its_level(n: int) -> None:
    """The interval's lower end missed in up to 7.2 % with 10 examples, and in 6.6 % with 2,000."""
    worse = np.arange(min(n, 90) + 1)
    low = accuracy_intervals(worse, 0, n)[0]
    rates = np.linspace(0.05, min(n, 40) - 0.05, 1200) / n
    chance = stats.binom.pmf(worse[:, None], n, rates)
    most = ((low[:, None] > -rates) * chance).sum(axis=0).max()
    assert 0.02 < most <= 0.025 + 1e-5


@pytest.mark.parametrize("n", [10, 50, *(pytest.param(n, marks=pytest.mark.slow) for n in (100, 200, 408, 2000))])
def test_where_some_are_mended_too(n: int) -> None:
    cases = [(p, q * p) for p in LOST for q in MENDED if p + q * p < 1 and p < (0.11 if n > 200 else 0.4)]
    worse, better, chance = zip(*(counts(n, *case) for case in cases), strict=True)
    low = accuracy_intervals(np.concatenate(worse), np.concatenate(better), n)[0]
    for (lost, mended), ends, share in zip(
        cases, np.split(low, np.cumsum([len(c) for c in chance])[:-1]), chance, strict=True
    ):
        assert share[ends > mended - lost + 1e-12].sum() <= 0.025, (lost, mended)


@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 5000), st.sampled_from([0.9, 0.95, 0.999]))
def test_zero_is_excluded_where_and_only_where_mcnemar_rejects(worse: int, better: int, n: int, level: float) -> None:
    n = max(n, worse + better)
    low, high = accuracy_intervals(worse, better, n, level)
    p = mcnemar(worse, better)
    assert bool((low > 0) | (high < 0)) == bool(p <= 1 - level)
    assert -1 <= low <= (better - worse) / n <= high <= 1
    assert float(low) == -float(accuracy_intervals(better, worse, n, level)[1])


@pytest.mark.parametrize(("worse", "n"), [(0, 1), (0, 500), (3, 10), (4, 408), (10, 10), (30, 40_000)])
def test_without_a_mended_answer_it_is_that_of_clopper_and_pearson(worse: int, n: int) -> None:
    limit = stats.binomtest(worse, n).proportion_ci(0.95, "exact").high
    assert float(accuracy_intervals(worse, 0, n)[0]) == pytest.approx(-limit, rel=1e-4)


@pytest.mark.parametrize(("worse", "better", "n"), [(1, 1, 10), (5, 1, 98), (3, 11, 500), (2, 1, 3), (90, 70, 2000)])
def test_the_bound_is_the_quantile_that_defines_it(worse: int, better: int, n: int) -> None:
    """S and T drawn one by one; together they are a Dirichlet distribution."""
    rng = np.random.default_rng(0)
    t, s = rng.beta(worse + 1, better, 400_000), rng.beta(worse + better + 1, max(n - worse - better, 1e-9), 400_000)
    drawn = np.quantile(s * (2 * t - 1), [0.974, 0.976])
    assert drawn[0] < -float(accuracy_intervals(worse, better, n)[0]) < drawn[1]


def test_more_lost_or_fewer_examples_leave_more_possible() -> None:
    worse, better = np.meshgrid(np.arange(12), np.arange(12))
    low, high = accuracy_intervals(worse, better, 60)
    assert (np.diff(low, axis=1) <= 1e-9).all()
    assert (np.diff(high, axis=0) >= -1e-9).all()
    assert (accuracy_intervals(worse, better, 50)[0] < low)[low < 0].all()
