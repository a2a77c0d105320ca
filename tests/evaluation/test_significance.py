"""Paired statistics against scipy, hand-made cases and plain resampling."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from headviz.answers.one_class import ClassAnswers
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


def test_confusion_counts_gold_by_predicted() -> None:
    table = confusion([0, 0, 1], [0, 1, 1], 2)
    np.testing.assert_array_equal(table, [[1, 1], [0, 1]])
    np.testing.assert_array_equal(confusion([0, 1], [-1, 1], 2), [[0, 0, 1], [0, 1, 0]])


# the excess of two changes: its value, an interval that holds it as often as it says, and other -----


def drawn(rng: np.random.Generator, n: int, together: float) -> tuple[np.ndarray, ...]:
    """Gold, full, first, second, both: each alone loses 4 % of the answers, both lose ``together`` more."""
    gold = rng.integers(0, 2, n)
    first, second, more = (rng.random(n) < share for share in (0.04, 0.04, together))
    said = [np.where(lost, 1 - gold, gold) for lost in (first, second, first | second | more)]
    return gold, gold, *said


def test_the_value_is_what_both_cost_beyond_the_sum() -> None:
    from headviz.extras.analyses.redundant import excess

    gold, full, *said = drawn(np.random.default_rng(0), 300, 0.2)
    result = excess(ClassAnswers(gold, full, 2), *said, "accuracy")
    one, two, both = (1 - ClassAnswers(gold, full, 2).measure(s, "accuracy") for s in said)
    assert result.value == pytest.approx(both - one - two)
    assert result.low < result.value < result.high
    assert result.p_value < 1e-6


def test_nothing_in_excess_is_seldom_called_clear() -> None:
    from headviz.extras.analyses.redundant import excess

    rng, clear, held = np.random.default_rng(1), 0, 0
    truth = -0.04 * 0.04  # what both lose anyway is counted once
    for _ in range(400):
        gold, full, *said = drawn(rng, 200, 0.0)
        result = excess(ClassAnswers(gold, full, 2), *said, "accuracy")
        clear += result.low > 0
        held += result.low <= truth <= result.high
    assert clear <= 400 * 0.05
    assert held >= 400 * 0.93


def test_other_metrics_are_resampled_and_agree() -> None:
    from headviz.extras.analyses.redundant import excess

    gold, full, *said = drawn(np.random.default_rng(2), 400, 0.2)
    by_f1 = excess(ClassAnswers(gold, full, 2), *said, "f1")
    by_accuracy = excess(ClassAnswers(gold, full, 2), *said, "accuracy")
    assert by_f1.low < by_accuracy.value < by_f1.high
    assert excess(ClassAnswers(gold, full, 2), full, full, full, "f1").p_value == 1.0


def test_examples_that_only_either_change_keeps_are_held_too() -> None:
    """Each counts 2; with one of 1 added in each direction .88 of the intervals held the truth."""
    from headviz.extras.analyses.redundant import excess

    rng, held = np.random.default_rng(3), 0
    gold = np.zeros(100, dtype=int)
    for _ in range(1000):
        wrong = np.where(rng.random(100) < 0.05, 1, gold)  # without both, and with both off
        result = excess(ClassAnswers(gold, wrong, 2), gold, gold, wrong, "accuracy")
        held += result.low <= 0.1 <= result.high
    assert held >= 930
