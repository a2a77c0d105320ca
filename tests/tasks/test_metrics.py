"""The measures against their definitions, written out slowly; and what happens where they have no value."""

import math

import numpy as np
import pytest

from headviz.errors import TaskError
from headviz.tasks import METRICS, TASKS, metric, metrics, why_undefined


def _slow_matthews(p: np.ndarray, g: np.ndarray) -> float:
    tp, tn = ((p == 1) & (g == 1)).sum(), ((p == 0) & (g == 0)).sum()
    fp, fn = ((p == 1) & (g == 0)).sum(), ((p == 0) & (g == 1)).sum()
    return (tp * tn - fp * fn) / math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))


def _slow_pearson(p: np.ndarray, g: np.ndarray) -> float:
    p, g = p - p.mean(), g - g.mean()
    return float((p * g).sum() / math.sqrt((p * p).sum() * (g * g).sum()))


def _average_ranks(v: np.ndarray) -> np.ndarray:
    return np.array([(v < x).sum() + ((v == x).sum() + 1) / 2 for x in v])


SLOW = {
    "accuracy": lambda p, g: sum(a == b for a, b in zip(p, g, strict=True)) / len(g),
    "f1": lambda p, g: 2 * ((p == 1) & (g == 1)).sum() / ((p == 1).sum() + (g == 1).sum()),
    "matthews": _slow_matthews,
    "pearson": _slow_pearson,
    "spearman": lambda p, g: _slow_pearson(_average_ranks(p), _average_ranks(g)),
}


@pytest.mark.parametrize("name", SLOW)
@pytest.mark.parametrize("seed", range(2))
def test_equals_the_definition(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    if name in ("pearson", "spearman"):
        p, g = rng.normal(size=40).round(1), rng.integers(0, 6, 40).astype(float)  # with ties
    else:
        p, g = rng.integers(0, 2, 40), rng.integers(0, 2, 40)
    assert metric(name, p, g) == pytest.approx(SLOW[name](p, g), abs=1e-12)


@pytest.mark.parametrize("name", SLOW)
def test_order_of_examples_does_not_matter(name: str) -> None:
    rng = np.random.default_rng(0)
    p, g = rng.integers(0, 2, 50), rng.integers(0, 2, 50)
    at = rng.permutation(50)
    assert metric(name, p[at], g[at]) == pytest.approx(metric(name, p, g), abs=1e-12)


def test_a_task_gets_its_own_measures_in_order() -> None:
    g = np.array([0, 1, 1, 0])
    for task in TASKS.values():
        result = metrics(task, g.astype(str), g.astype(str)) if task.job == "sentence" else metrics(task, g, g)
        assert list(result) == list(task.metrics)


def test_f1_without_a_positive_prediction_is_zero_not_missing() -> None:
    # F1 = 2tp / (2tp + fp + fn) has a value here, though precision has none
    for name in ("f1", "matthews"):
        assert metric(name, [0, 0, 0], [0, 1, 1]) == 0.0
        assert why_undefined(name, [0, 0, 0], [0, 1, 1]) is None


@pytest.mark.parametrize(
    ("name", "predictions", "gold", "why"),
    [
        ("f1", [0, 0], [0, 0], "positive class"),
        ("matthews", [0, 1, 1], [1, 1, 1], "every gold label is the same"),
        ("pearson", [1.0, 2.0], [2.0, 2.0], "every gold label is the same"),
        ("spearman", [1.0, 2.0], [3.0, 3.0], "every gold label is the same"),
        ("pearson", [math.nan, 2.0], [1.0, 2.0], "prediction is not a finite number"),
        ("spearman", [math.inf, 2.0], [1.0, 2.0], "prediction is not a finite number"),
        ("pearson", [1.0], [1.0], "the same"),
        *[(name, [], [], "no examples") for name in METRICS],
    ],
)
def test_undefined_is_nan_and_says_why(name: str, predictions: list, gold: list, why: str) -> None:
    assert math.isnan(metric(name, predictions, gold))
    assert why in str(why_undefined(name, predictions, gold))


def test_misuse_is_a_fault_not_a_number() -> None:
    with pytest.raises(ValueError, match="same shape"):
        metric("accuracy", [1, 0], [1])
    with pytest.raises(ValueError, match="same shape"):
        metric("accuracy", np.zeros((2, 2)), np.zeros((2, 2)))


def test_a_metric_knows_its_unit() -> None:
    from headviz.answers.metrics import points_in

    assert {*SLOW, "bleu", "chrf", "micro_f1", "exact_match"} <= set(METRICS)
    assert points_in("accuracy") == points_in("matthews") == 100
    assert points_in("bleu") == points_in("bleu-tokenised") == points_in("chrf") == 1
    with pytest.raises(TaskError, match="accuracy"):
        points_in("accuracity")
