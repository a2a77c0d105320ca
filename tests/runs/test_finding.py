"""The sentences of a pruning run."""

from __future__ import annotations

from typing import Any

from headviz.pruning.baselines import finding, one_class


def step(share: float, value: float, delta: float | None, low: float | None, high: float | None) -> dict[str, Any]:
    change = {"delta": delta, "low": low, "high": high, "p": None}
    return {
        "sparsity": share,
        "metrics": {"accuracy": value},
        "against": "given",
        "change": {"accuracy": change},
        "predicted": {"equivalent": 230, "not_equivalent": 178},
        "constant": {"accuracy": 0.684},
    }


FINE = step(0.25, 0.9, 0.0, -0.01, 0.01)
LOST = step(0.5, 0.6, -0.3, -0.4, -0.2)


def test_a_share_can_go_only_where_the_loss_is_excluded() -> None:
    assert finding([FINE, LOST], "accuracy") == (
        "Up to 25 % of the heads can go: a loss of more than 1.0 points is excluded (margin 2). A loss is clear from "
        "50 % on. Accuracy is 0.600 at 50 % (−30.0 points)."
    )
    assert finding([FINE], "accuracy", margin=0.5).startswith(
        "At the first step, 25 %, a loss of more than 1.0 points is excluded, but not one of 0.5. "
    )
    later = finding([step(0.25, 0.9, 0.0, -0.073, 0.01), step(0.5, 0.9, 0.0, -0.012, 0.01)], "accuracy", margin=5)
    assert later.startswith(
        "At the first step, 25 %, a loss of more than 7.3 points is excluded, but not one of 5. Acc"
    )


def test_a_loss_is_clear_from_a_share_on_only_where_every_later_step_is_for_every_seed() -> None:
    """One seed of five and one step were enough for "a loss is clear from 25 % on"."""
    bad = step(0.25, 0.85, -0.05, -0.08, -0.02)
    five = [{**FINE, "seed": k} for k in range(4)] + [{**bad, "seed": 4}]
    assert "A loss is first clear at 25 % (1 of 5 seeds). Accuracy" in finding(five, "accuracy")
    half = [{**LOST, "seed": k} for k in range(5)]
    assert "A loss is first clear at 25 % (1 of 5 seeds), and from 50 % on for every seed." in finding(
        five + half, "accuracy"
    )
    back = [{**LOST, "sparsity": 0.25}, {**FINE, "sparsity": 0.5}]
    assert "A loss is first clear at 25 %, but not at every later step." in finding(back, "accuracy")


def test_an_interval_that_spans_zero_is_not_called_free() -> None:
    """The sentence was "Up to 75 % of the heads are gone without a clear loss of accuracy", of 50 examples."""
    steps = [step(s, 0.8, -0.02, -0.09, 0.05) for s in (0.25, 0.5, 0.75)]
    said = finding(steps, "accuracy")
    assert said.startswith("At the first step, 25 %, a loss of more than 9.0 points is excluded, but not one of 2.")
    assert "without a clear loss" not in said


def test_every_seed_must_exclude_the_loss() -> None:
    other = {**step(0.25, 0.88, -0.02, -0.05, 0.01), "seed": 1}
    assert finding([FINE, other], "accuracy").startswith("At the first step, 25 %, a loss of more than 5.0 points is")


def test_one_class_is_said_before_anything_else() -> None:
    """A network that answers one class kept the majority's accuracy, and "0.0 points lost" stood there."""
    flat = {**step(0.9, 0.684, 0.0, -0.001, 0.001), "predicted": {"equivalent": 408, "not_equivalent": 0}}
    said = finding([FINE, flat], "accuracy")
    assert said.startswith("With 90 % of the heads removed, all 408 answers are “equivalent”. Up to")
    retrained = {**flat, "against": "retrained"}
    assert finding([retrained], "accuracy").startswith("With 90 % of the heads removed, all 408 answers are")
    assert one_class([FINE, {**FINE, "predicted": None, "constant": None}]) == ""


def test_without_an_interval_nothing_is_claimed() -> None:
    unknown = step(0.25, 0.9, 0.0, None, None)
    assert finding([unknown], "accuracy") == "accuracy is 0.900 at 25 % (0.0 points); too few flips to tell."
