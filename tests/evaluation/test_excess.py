"""The excess of two changes: its value, an interval that holds it as often as it says, and other metrics."""

from __future__ import annotations

import numpy as np
import pytest

from headviz.answers.one_class import ClassAnswers
from headviz.extras.analyses.redundant import excess


def drawn(rng: np.random.Generator, n: int, together: float) -> tuple[np.ndarray, ...]:
    """Gold, full, first, second, both: each alone loses 4 % of the answers, both lose ``together`` more."""
    gold = rng.integers(0, 2, n)
    first, second, more = (rng.random(n) < share for share in (0.04, 0.04, together))
    said = [np.where(lost, 1 - gold, gold) for lost in (first, second, first | second | more)]
    return gold, gold, *said


def test_the_value_is_what_both_cost_beyond_the_sum() -> None:
    gold, full, *said = drawn(np.random.default_rng(0), 300, 0.2)
    found = excess(ClassAnswers(gold, full, 2), *said, "accuracy")
    one, two, both = (1 - ClassAnswers(gold, full, 2).measure(s, "accuracy") for s in said)
    assert found.value == pytest.approx(both - one - two)
    assert found.low < found.value < found.high
    assert found.p_value < 1e-6


def test_nothing_in_excess_is_seldom_called_clear() -> None:
    rng, clear, held = np.random.default_rng(1), 0, 0
    truth = -0.04 * 0.04  # what both lose anyway is counted once
    for _ in range(400):
        gold, full, *said = drawn(rng, 200, 0.0)
        found = excess(ClassAnswers(gold, full, 2), *said, "accuracy")
        clear += found.low > 0
        held += found.low <= truth <= found.high
    assert clear <= 400 * 0.05
    assert held >= 400 * 0.93


def test_other_metrics_are_resampled_and_agree() -> None:
    gold, full, *said = drawn(np.random.default_rng(2), 400, 0.2)
    by_f1 = excess(ClassAnswers(gold, full, 2), *said, "f1")
    by_accuracy = excess(ClassAnswers(gold, full, 2), *said, "accuracy")
    assert by_f1.low < by_accuracy.value < by_f1.high
    assert excess(ClassAnswers(gold, full, 2), full, full, full, "f1").p_value == 1.0


def test_examples_that_only_either_change_keeps_are_held_too() -> None:
    """Each counts 2; with one of 1 added in each direction .88 of the intervals held the truth."""
    rng, held = np.random.default_rng(3), 0
    gold = np.zeros(100, dtype=int)
    for _ in range(1000):
        wrong = np.where(rng.random(100) < 0.05, 1, gold)  # without both, and with both off
        found = excess(ClassAnswers(gold, wrong, 2), gold, gold, wrong, "accuracy")
        held += found.low <= 0.1 <= found.high
    assert held >= 930
