"""The sentences of a pruning run."""

from __future__ import annotations

from typing import Any

from headviz.pruning.baselines import finding


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
    found = finding([FINE, LOST], "accuracy")
    assert found.startswith("Up to 25 % of the heads can go for a loss of at most 1.0 points (margin 2). A loss is ")
    assert "significant from 50 % on" in found
    closer = finding([FINE], "accuracy", margin=0.5)
    assert closer.startswith("At the first step, 25 %, a loss of more than 1.0 points is excluded, but not one of 0.5.")


def test_a_loss_is_clear_from_a_share_on_only_where_every_later_step_is_for_every_seed() -> None:
    """One seed of five and one step were enough for "a loss is significant from 25 % on"."""
    bad = step(0.25, 0.85, -0.05, -0.08, -0.02)
    five = [{**FINE, "seed": k} for k in range(4)] + [{**bad, "seed": 4}]
    assert "A loss is first significant at 25 % (1 of 5 seeds). Accuracy" in finding(five, "accuracy")
    half = [{**LOST, "seed": k} for k in range(5)]
    assert "A loss is first significant at 25 % (1 of 5 seeds), and from 50 % on for every seed." in finding(
        five + half, "accuracy"
    )
    back = [{**LOST, "sparsity": 0.25}, {**FINE, "sparsity": 0.5}]
    assert "A loss is first significant at 25 %, but not at every later step." in finding(back, "accuracy")


def test_without_an_interval_nothing_is_claimed() -> None:
    unknown = step(0.25, 0.9, 0.0, None, None)
    assert finding([unknown], "accuracy") == "accuracy is 0.900 at 25 % (0.0 points); too few flips to tell."
