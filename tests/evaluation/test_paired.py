"""headviz.paired: what it counts, what it refuses, and that its interval and its test agree."""

from __future__ import annotations

import json
import re
import time
import tracemalloc

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, matthews_corrcoef

import headviz
from headviz.answers import ANSWERS
from headviz.errors import OptionError


def _answers(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 3, n)
    before = np.where(rng.random(n) < 0.85, gold, rng.integers(0, 3, n))
    return gold, before, np.where(rng.random(n) < 0.95, before, rng.integers(0, 3, n))


def test_counts_and_signs() -> None:
    gold, before, after = _answers()
    result = headviz.paired(gold, before, after)
    assert result.worse == np.sum((before == gold) & (after != gold))
    assert result.better == np.sum((before != gold) & (after == gold))
    assert result.difference == pytest.approx(np.mean(after == gold) - np.mean(before == gold))
    assert result.low < result.difference < result.high
    assert result.excludes == max(0.0, -result.low)
    assert json.loads(result.to_json())["worse"] == result.worse


def test_correlations_take_numbers() -> None:
    rng = np.random.default_rng(1)
    gold = rng.normal(size=80)
    before = gold + rng.normal(size=80)
    result = headviz.paired(gold, before, before + 0.1, "pearson")
    assert result.difference == pytest.approx(0, abs=1e-12)
    assert (result.worse, result.better) == (0, 80)


@pytest.mark.parametrize("size", [1e-170, 1e155])
def test_a_correlation_does_not_hang_on_the_size_of_the_numbers(size: float) -> None:
    """The squares of 1e155 were infinite, and those of 1e-170 nothing."""
    gold, before, after = np.array([[1.0, -1.0, 0.5, 2.0], [1.0, 2.0, 3.0, 5.0], [3.0, 2.0, 1.0, 4.0]])
    expected = np.corrcoef(gold, after)[0, 1] - np.corrcoef(gold, before)[0, 1]
    result = headviz.paired(size * gold, size * before, size * after, "pearson")
    assert result.difference == pytest.approx(expected)
    assert result.low < result.difference < result.high


def test_a_narrower_level_is_narrower() -> None:
    gold, before, after = _answers()
    wide, narrow = (headviz.paired(gold, before, after, level=level) for level in (0.99, 0.8))
    assert wide.low < narrow.low < narrow.high < wide.high


@pytest.mark.parametrize(("metric", "classes", "count"), [("accuracy", 100_001, 1000), ("matthews", 61, 1000)])
def test_many_classes_take_no_more_than_their_examples(metric: str, classes: int, count: int) -> None:
    """5,000 classes asked for 932 GiB, 60 for 35 seconds and 1 GB."""
    rng = np.random.default_rng(2)
    gold = rng.integers(0, classes, count)
    before, after = (np.where(rng.random(count) < share, gold, rng.integers(0, classes, count)) for share in (0.8, 0.7))
    start = time.process_time()
    tracemalloc.start()
    result = headviz.paired(gold, before, after, metric)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 150e6
    assert time.process_time() - start < 10
    known = matthews_corrcoef if metric == "matthews" else accuracy_score
    assert result.difference == pytest.approx(known(gold, after) - known(gold, before))
    assert result.low <= result.difference < result.high
    assert result.p < 0.01


@pytest.mark.parametrize("metric", ["accuracy", "f1", "matthews"])
def test_class_numbers_that_nobody_uses_change_nothing(metric: str) -> None:
    gold, before, after = _answers()
    apart = [np.array([0, 1, 70_000, -1])[x] for x in (gold, before, after)]
    assert headviz.paired(*apart, metric) == headviz.paired(gold, before, after, metric)


def test_a_table_of_too_many_classes_is_refused() -> None:
    many = np.arange(2500)
    with pytest.raises(headviz.UserError, match="2,500 classes; matthews is compared over at most 2,000"):
        headviz.paired(many, many, many[::-1], "matthews")
    assert headviz.paired(many, many, many[::-1]).worse == 2500


@pytest.mark.parametrize(
    "bad",
    [
        ([0, 1], [0, 1], [0]),
        ([], [], []),
        ("ab", "ab", "ab"),
        ([[0, 1]], [[0, 1]], [[0, 1]]),
        ([0, 1], [0.5, 1], [0, 1]),
        ([0, float("nan")], [0, 1], [0, 1]),
        ([0, 1], [0, -2], [0, 1]),
        ([-1, 1], [0, 1], [0, 1]),
        ([0, 1], [True, False], [0, 1]),
        ([0, 10**12], [0, 1], [0, 1]),
        ([0, 10**400], [0, 1], [0, 1]),
        ([0, [1]], [0, 1], [0, 1]),
        (None, None, None),
        ({}, {}, {}),
    ],
)
def test_what_is_no_row_of_classes_is_refused(bad: tuple) -> None:
    with pytest.raises(headviz.UserError):
        headviz.paired(*bad)


@pytest.mark.parametrize("options", [{"metric": "accurracy"}, {"level": 1.5}, {"level": "95"}, {"level": True}])
def test_options_are_checked(options: dict) -> None:
    with pytest.raises(headviz.UserError):
        headviz.paired([0, 1], [0, 1], [0, 1], **options)


@pytest.mark.parametrize("metric", ["accuracy", "spearman", "roc_auc"])
def test_groups_are_not_ignored(metric: str) -> None:
    rows = [0, 1, 1, 0], [0.1, 0.9, 0.8, 0.3], [0.2, 0.7, 0.8, 0.3]
    if metric == "accuracy":
        rows = [0, 1, 1, 0], [0, 1, 1, 0], [0, 1, 0, 0]
    headviz.paired(*rows, metric)
    with pytest.raises(OptionError, match="groups"):
        headviz.paired(*rows, metric, groups=[0, 0, 1, 1])


def test_every_metric_that_is_compared_is_described() -> None:
    described = re.findall(r"[\w@]+", headviz.paired.__doc__ or "")
    assert {name for answer in ANSWERS.values() if answer.paired for name in answer.metrics} <= set(described)
