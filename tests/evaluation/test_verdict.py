"""One decision for colours, marks and sentences; answers of one class."""

from __future__ import annotations

import numpy as np
import pytest

import headviz
from headviz.answers.metrics import corrected, counts, remark, remark_on
from headviz.evaluation.verdict import clear, excluded, outward, points_up, possible_loss, undecided, verdict, within
from headviz.tasks import constant, metric

NAN = float("nan")


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (-0.3, -0.1, "loss"),
        (0.1, 0.2, "gain"),
        (-0.1, 0.1, "open"),
        (0.0, 0.2, "open"),
        (-0.2, 0.0, "open"),
        (None, None, "unknown"),
        (NAN, NAN, "unknown"),
    ],
)
def test_a_change_is_clear_only_where_its_interval_excludes_zero(low: float, high: float, said: str) -> None:
    assert verdict(low, high) == said


def test_a_mark_needs_both_the_test_and_the_interval() -> None:
    q = np.array([0.01, 0.01, 0.2, NAN])
    assert clear([0.1, -0.1, 0.1, 0.1], [0.2, 0.1, 0.2, 0.2], q, 0.05).tolist() == [True, False, False, False]


def test_what_is_neither_loss_nor_gain_is_undecided() -> None:
    low, high = [0.1, -0.1, 0.0, NAN, -0.2], [0.2, 0.1, 0.2, NAN, -0.1]
    assert undecided(low, high).tolist() == [False, True, True, True, False]


def test_what_is_excluded_is_the_end_of_the_interval() -> None:
    gold = np.array([0, 1] * 250)
    change = headviz.paired(gold, gold, gold)
    assert change.excludes == pytest.approx(1 - 0.025 ** (1 / 500), rel=1e-4)
    assert excluded(change.low, 100) == "a loss of more than 0.8 points is excluded"
    assert excluded(change.low, 100, margin=0.5) == "a loss of more than 0.8 points is excluded, but not one of 0.5"
    assert excluded(0.01, 100) == "any loss is excluded"
    assert excluded(NAN, 100) == "too few flips to tell"
    assert (possible_loss(-0.02), possible_loss(0.02)) == (0.02, 0.0)
    assert (within(-0.019, 0.02), within(-0.021, 0.02), within(None, 0.02), within(NAN, 0.02)) == (True, *[False] * 3)


def test_nothing_is_excluded_where_a_metric_is_undefined() -> None:
    """It read 0.0: no loss possible. Pearson's correlation has no value where every label is the same."""
    same = headviz.paired([1] * 100, [0, 1] * 50, [0, 1] * 50, "pearson")
    assert np.isnan([same.difference, same.low, same.excludes, possible_loss(NAN)]).all()
    assert not within(same.low, 1.0)
    assert excluded(same.low, 100) == "too few flips to tell"


def test_the_majority_not_one_over_the_classes() -> None:
    """The charts drew .5 for MRPC, where "equivalent" for every pair is right in .684 of them."""
    mrpc = np.array([1] * 279 + [0] * 129)
    assert constant("accuracy", mrpc) == pytest.approx(0.684, abs=5e-4)
    assert (
        constant("f1", mrpc) == pytest.approx(metric("f1", np.ones(408, int), mrpc)) == pytest.approx(0.812, abs=1e-3)
    )
    assert (constant("matthews", mrpc), constant("pearson", mrpc), constant("bleu", mrpc)) == (0.0, 0.0, None)


def test_corrected_for_chance_a_constant_answer_keeps_nothing() -> None:
    """On MRPC 82 % of an accuracy of .834 were "left" with one class for all answers."""
    assert corrected(0.684, 0.834, 0.684) == 0
    assert corrected(0.834, 0.834, 0.684) == 1
    assert corrected(0.534, 0.834, 0.684) == pytest.approx(-1)
    assert np.isnan([corrected(0.5, 0.68, 0.684), corrected(0.5, 0.7, None)]).all()


def test_answers_of_one_class_are_said_to_be() -> None:
    assert remark({"yes": 408, "no": 0}) == "All 408 answers are “yes”."
    assert remark({"yes": 404, "no": 4}) == "Nearly all answers are “yes” (404 of 408)."
    assert remark({"yes": 390, "no": 18}) == remark(None) == remark({}) == ""
    assert remark({"yes": 408, "no": 0}, majority=0.99) == ""  # nearly all gold labels are
    assert remark({"yes": 408, "no": 0}, 0.99, 0.99) == ""
    assert remark({"yes": 408, "no": 0}, 0.99, 0.01) == "All 408 answers are “yes”."  # but of the other class
    assert remark({"yes": 1, "no": 0}) == "The one answer is “yes”."
    for gold in (0, 1):
        said = remark_on(np.ones(100, dtype=int), np.full(100, gold), ("no", "yes"))
        assert said == ("" if gold else "All 100 answers are “yes”.")
    assert remark_on(np.ones(50, int), np.array([0, 1] * 25), ("no", "yes")) == "All 50 answers are “yes”."
    assert counts(np.array([0, -1, 1, 1]), ("no", "yes")) == {"no": 1, "yes": 2, "none of the classes": 1}


def test_an_interval_is_rounded_outward_and_so_agrees_with_its_bound() -> None:
    assert outward(-0.08108, -0.06111, 100) == pytest.approx((-0.082, -0.061))
    rng = np.random.default_rng(0)
    for low, high in np.sort(rng.normal(0, 0.05, (200, 2)), axis=1):
        ends = outward(low, high, 100)
        assert ends[0] <= low + 1e-12
        assert ends[1] >= high - 1e-12
        assert ends[0] > low - 0.001
        if low < 0:
            assert f"{-100 * ends[0]:.1f}" == points_up(-100 * low)
    assert outward(-0.02, 0.02, 100) == pytest.approx((-0.02, 0.02))
    assert [points_up(v) for v in (0.0, -0.0, 0.04)] == ["0.0", "0.0", "0.1"]
