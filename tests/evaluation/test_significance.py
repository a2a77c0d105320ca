"""Paired statistics against scipy, hand-made cases and plain resampling."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from headviz.evaluation.significance import (
    accuracy_intervals,
    benjamini_hochberg,
    confusion,
    flips,
    mcnemar,
    wilson,
)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_exact_binomial_test(worse: int, better: int) -> None:
    expected = stats.binomtest(worse, worse + better).pvalue if worse + better else 1.0
    assert float(mcnemar(worse, better)) == pytest.approx(expected, rel=1e-9)


def test_mcnemar_by_hand() -> None:
    # 5 against 1: 2·(C(6,0) + C(6,1)) / 2^6
    np.testing.assert_allclose(mcnemar([5, 0, 0], [1, 0, 5]), [14 / 64, 1.0, 2 / 32])


def _oracle(worse: int, better: int, n: int, draws: int = 200_000) -> tuple[float, float]:
    """The same interval by resampling examples, as one would write it down."""
    rng = np.random.default_rng(0)
    d = np.r_[-np.ones(worse), np.ones(better), np.zeros(n - worse - better)]
    sums = np.concatenate([rng.choice(d, size=(2000, n)).sum(axis=1) for _ in range(draws // 2000)])
    low, high = np.quantile(sums, [0.025, 0.975], method="inverted_cdf")
    return low / n, high / n


@pytest.mark.parametrize(
    ("worse", "better", "n"), [(1, 0, 50), (4, 1, 60), (12, 9, 80), (0, 7, 40), (30, 2, 64)]
)
def test_accuracy_interval_equals_resampling(worse: int, better: int, n: int) -> None:
    low, high = (float(v[0]) for v in accuracy_intervals(worse, better, n))
    expected = _oracle(worse, better, n)
    assert low == pytest.approx(expected[0], abs=1.0001 / n)
    assert high == pytest.approx(expected[1], abs=1.0001 / n)


def test_accuracy_interval_equals_the_distribution_summed_out() -> None:
    # n = 2, one worse and one unchanged: sums -2, -1, 0 with 1/4, 1/2, 1/4
    low, high = accuracy_intervals([1, 1], [0, 0], 2)
    assert (low[0], high[0]) == (-1.0, 0.0)
    # at 40 % the tails of 1/4 stay inside the 30 % cut off at each end
    low, high = accuracy_intervals(1, 0, 2, level=0.4)
    assert (low[0], high[0]) == (-0.5, -0.5)


def test_many_tables_at_once_equal_one_by_one() -> None:
    rng = np.random.default_rng(1)
    worse, better = rng.integers(0, 200, (12, 12)), rng.integers(0, 100, (12, 12))
    low, high = accuracy_intervals(worse, better, 500)
    for index in [(0, 0), (3, 7), (11, 11)]:
        one = accuracy_intervals(worse[index], better[index], 500)
        assert (low[index], high[index]) == (one[0][0], one[1][0])


@given(st.integers(0, 40), st.integers(0, 40), st.integers(80, 5000))
def test_interval_mirrors_when_sides_are_exchanged(worse: int, better: int, n: int) -> None:
    low, high = (float(v[0]) for v in accuracy_intervals(worse, better, n))
    back = tuple(float(v[0]) for v in accuracy_intervals(better, worse, n))
    assert (low, high) == (-back[1], -back[0])
    assert low <= (better - worse) / n <= high


def test_a_mask_that_changes_nothing() -> None:
    low, high = accuracy_intervals(0, 0, 500)
    assert (low[0], high[0]) == (0.0, 0.0)
    assert float(mcnemar(0, 0)) == 1.0


def test_no_examples_give_no_interval() -> None:
    low, high = accuracy_intervals(0, 0, 0)
    assert np.isnan([low[0], high[0]]).all()


def test_wilson_by_hand() -> None:
    # Wilson (1927) for 8 of 10 at 95 %, as tabulated
    assert wilson(8, 10) == pytest.approx((0.4901625, 0.9433178), abs=1e-6)
    assert wilson(10, 10).high == 1.0
    assert np.isnan(wilson(0, 0).low)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_benjamini_hochberg_equals_scipy(p: list[float]) -> None:
    np.testing.assert_allclose(benjamini_hochberg(p), stats.false_discovery_control(p), atol=1e-12)


def test_benjamini_hochberg_leaves_untested_heads_out() -> None:
    q = benjamini_hochberg([[0.01, np.nan], [0.04, 0.03]])
    np.testing.assert_allclose(q, [[0.03, np.nan], [0.04, 0.04]])
    assert np.isnan(benjamini_hochberg([np.nan])).all()
    assert benjamini_hochberg([]).shape == (0,)


def test_flips_both_ways() -> None:
    gold, full, masked = [0, 1, 2, 0, 1], [0, 1, 0, 1, 2], [1, 1, 2, 2, 2]
    found = flips(gold, full, masked)
    assert [list(x) for x in found] == [[0], [2], [3]]


def test_confusion_counts_gold_by_predicted() -> None:
    table = confusion([0, 0, 1], [0, 1, 1], 2)
    np.testing.assert_array_equal(table, [[1, 1], [0, 1]])
    np.testing.assert_array_equal(confusion([0, 1], [-1, 1], 2), [[0, 0, 1], [0, 1, 0]])


@pytest.mark.parametrize("seed", range(3))
def test_random_answers_are_hardly_ever_called_significant(seed: int) -> None:
    """144 heads that change answers at random, in neither direction."""
    rng = np.random.default_rng(seed)
    called, tables = 0, 20
    for _ in range(tables):
        changed = rng.integers(0, 60, 144)
        worse = rng.binomial(changed, 0.5)
        called += int((benjamini_hochberg(mcnemar(worse, changed - worse)) < 0.05).sum())
    assert called / (tables * 144) < 0.005


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    n, loss, gain = 400, 0.10, 0.04
    drawn = rng.multinomial(n, [loss, gain, 1 - loss - gain], size=4000)
    low, high = accuracy_intervals(drawn[:, 0], drawn[:, 1], n)
    covered = np.mean((low <= gain - loss) & (gain - loss <= high))
    assert 0.93 < covered < 0.97
