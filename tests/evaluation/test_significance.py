"""Paired statistics against scipy, hand-made cases and plain resampling."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from headviz.statistics.significance import benjamini_hochberg, confusion, holm, mcnemar, wilson


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_exact_binomial_test(worse: int, better: int) -> None:
    expected = stats.binomtest(worse, worse + better).pvalue if worse + better else 1.0
    assert float(mcnemar(worse, better)) == pytest.approx(expected, rel=1e-9)


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


def test_holm_by_hand_and_never_more_than_benjamini_hochberg_finds() -> None:
    np.testing.assert_allclose(holm([[0.01, np.nan], [0.04, 0.03]]), [[0.03, np.nan], [0.06, 0.06]])
    np.testing.assert_allclose(holm([0.5, 0.9]), [1.0, 1.0])
    assert holm([]).shape == (0,)
    p = np.random.default_rng(0).random(144) ** 4
    assert (holm(p) >= benjamini_hochberg(p)).all()


def test_holm_finds_a_head_that_costs_nothing_in_one_table_of_twenty_at_most() -> None:
    """144 heads of which 100 cost nothing: the share of tables in which any of these 100 is called certain."""
    rng = np.random.default_rng(1)
    wrong = 0
    for _ in range(2000):
        p = np.concatenate([rng.random(100), rng.random(44) * 1e-4])
        wrong += bool((holm(p)[:100] < 0.05).any())
    assert 0.02 < wrong / 2000 < 0.06


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
