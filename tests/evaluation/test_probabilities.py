"""Metrics of probabilities and of classes beyond accuracy, and a user's own, against scikit-learn and plain loops."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn import metrics as sklearn

import headviz
from headviz import Dataset, UserError, load_task, paired
from headviz.answers import comparison
from headviz.answers.metrics import METRICS
from headviz.answers.probabilities import ProbabilityAnswers
from headviz.cli import main
from headviz.errors import OptionError, TaskError
from headviz.tasks import metric
from headviz.tasks.catalogue import judged_by
from support.jobs import data_of, model_of
from support.tiny import tiny_classifier

N = 120


def answers(classes: int, seed: int = 0) -> tuple[NDArray, NDArray, NDArray]:
    """Gold classes and two tables of probabilities."""
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, classes, N)
    logits = rng.normal(size=(N, classes)) + 1.5 * np.eye(classes)[gold]
    tables = [
        np.exp(x) / np.exp(x).sum(axis=1, keepdims=True) for x in (logits, logits + rng.normal(size=logits.shape))
    ]
    return gold, *tables


@pytest.mark.parametrize("classes", [2, 3])
def test_values_are_those_of_scikit_learn(classes: int) -> None:
    gold, p, _ = answers(classes)
    p = np.round(p, 1) if classes == 2 else p  # ties share their place
    score = p[:, 1] if classes == 2 else p
    own = gold if classes == 2 else np.eye(classes)[gold]
    said = p.argmax(axis=1)
    expected = {
        "roc_auc": sklearn.roc_auc_score(gold, score, multi_class="ovr"),
        "average_precision": sklearn.average_precision_score(own, score),
    }
    if classes == 3:
        expected["neg_log_loss"] = -sklearn.log_loss(gold, p)
    assert {name: metric(name, p, gold) for name in expected} == pytest.approx(expected)
    of_classes = {
        "balanced_accuracy": sklearn.balanced_accuracy_score(gold, said),
        "f1_macro": sklearn.f1_score(gold, said, average="macro"),
        "f1_0": sklearn.f1_score(gold, said, labels=[0], average="macro"),
    }
    assert {name: metric(name, said, gold) for name in of_classes} == pytest.approx(of_classes)


def test_calibration_error_by_hand() -> None:
    p = np.array([[0.05, 0.95], [0.05, 0.95], [0.35, 0.65], [0.35, 0.65]])
    # the first bin has one right answer of two, the second both
    assert metric("neg_calibration_error", p, np.array([1, 0, 1, 1])) == pytest.approx(-(0.45 + 0.35) / 2)


def test_the_interval_of_an_area_is_delongs_with_room_for_changes_not_seen() -> None:
    gold, before, after = answers(2)
    positive, negative = np.flatnonzero(gold == 1), np.flatnonzero(gold == 0)

    def components(score: NDArray) -> tuple[NDArray, NDArray]:
        wins = np.sign(score[positive][:, None] - score[negative][None]) / 2 + 0.5
        return wins.mean(axis=1), wins.mean(axis=0)

    (a, b), (c, d) = components(before[:, 1]), components(after[:, 1])
    plain = 1.96 * np.sqrt((c - a).var() / len(positive) + (d - b).var() / len(negative))
    result = paired(gold, before[:, 1], after[:, 1], "roc_auc")
    assert result.difference == pytest.approx(d.mean() - b.mean())
    assert plain <= (result.high - result.low) / 2 <= 1.25 * plain
    same = paired(gold, before, before, "roc_auc")
    assert same.low < 0 < same.high  # nothing changed, and little is excluded
    assert same.p == 1


def test_the_interval_of_an_area_holds_the_truth_where_a_class_is_rare() -> None:
    """20 of 200 examples are positive, and a tenth of the answers become another example's: DeLong's interval alone
    holds the loss in .84 of such data."""
    rng, held = np.random.default_rng(0), []

    def drawn(n: int) -> tuple[NDArray, NDArray, NDArray]:
        gold = (rng.random(n) < 0.1).astype(np.int64)
        before = 2.0 * gold - 1 + 1.5 * rng.normal(size=n)
        after = np.where(rng.random(n) < 0.1, rng.permutation(before), before)
        return gold, *(np.stack([1 / (1 + np.exp(x)), 1 / (1 + np.exp(-x))], axis=1) for x in (before, after))

    gold, before, after = drawn(200_000)
    loss = metric("roc_auc", after, gold) - metric("roc_auc", before, gold)
    for _ in range(60):
        gold, before, after = drawn(200)
        low, high, _ = ProbabilityAnswers(gold, before, 2).uncertainty(after, "roc_auc", None, 0.95)
        held.append(low <= loss <= high)
    assert np.mean(held) >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize("name", ["average_precision", "neg_log_loss", "neg_calibration_error"])
def test_a_large_loss_is_seen_and_none_is_not(name: str) -> None:
    gold, before, after = answers(3)
    shuffled = before[np.random.default_rng(1).permutation(N)]
    worse = paired(gold, before, shuffled, name)
    assert worse.high < 0
    assert worse.p < 0.05
    again = paired(gold, after, before, name)
    assert paired(gold, before, after, name).difference == pytest.approx(-again.difference)
    assert paired(gold, before, before, name).p == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["balanced_accuracy", "f1_2"])
def test_class_metrics_have_paired_intervals(name: str) -> None:
    gold, before, after = (one if one.ndim == 1 else one.argmax(axis=1) for one in answers(3))
    result = paired(gold, before, after, name)
    value = METRICS[name].of
    assert result.difference == pytest.approx(value(after, gold) - value(before, gold))
    assert result.low < result.difference < result.high
    drawn = np.random.default_rng(0).integers(0, N, size=(400, N))
    spread = np.std([value(after[i], gold[i]) - value(before[i], gold[i]) for i in drawn])
    assert 2 * 1.96 * spread == pytest.approx(result.high - result.low, rel=0.2)


def test_the_class_of_an_f1_keeps_its_number() -> None:
    gold, said = np.array([0, 5, 5, 9] * 10), np.array([0, 5, 9, 9] * 10)
    expected = sklearn.f1_score(gold, said, labels=[9], average="macro") - 1
    assert paired(gold, gold, said, "f1_9").difference == pytest.approx(expected)


def words_right(gold: NDArray, predicted: NDArray) -> float:
    return float((gold == predicted)[gold != -100].mean())


def closeness(gold: NDArray, predicted: NDArray) -> float:
    return -float(np.abs(gold - predicted).mean())


def first_unit(gold: NDArray, predicted: NDArray) -> float:
    return float((gold[:, 0, 0] == predicted[:, 0]).mean())


def best_first(gold: NDArray, scores: NDArray) -> float:
    assert (np.isnan(gold) == np.isnan(scores)).all()
    return float((gold[np.arange(len(gold)), np.nanargmax(scores, axis=1)] > 0).mean())


@pytest.mark.parametrize(
    ("job", "function", "units"),
    [
        ("class", closeness, 40),
        ("number", closeness, 40),
        ("labels", closeness, 40),
        ("tokens", words_right, 40),
        ("span", first_unit, 40),
        ("rank", best_first, 10),
    ],
)
def test_ones_own_functions_judge_every_job(
    job: str, function: Callable[..., float], units: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "FUNCTION_SWAPS", 99)
    monkeypatch.setattr(comparison, "RESAMPLES", 200)
    clf, plain = model_of(job), data_of(job, 10)
    data = replace(plain, task=judged_by(plain.task, function))
    evaluator = headviz.evaluator_of(clf, data)
    (delta,) = evaluator.compare({0: [0, 1], 1: [2]}).deltas
    answers = evaluator.answers()
    assert (delta.metric, delta.n) == (function.__name__, units)
    assert delta.full == pytest.approx(function(*answers.as_rows(answers.full)))
    assert delta.masked == pytest.approx(function(*answers.as_rows(evaluator.predictions({0: [0, 1], 1: [2]}))))
    assert delta.interval_low <= delta.delta <= delta.interval_high
    assert 0 < delta.p_value <= 1
    assert headviz.evaluate(clf, data).metrics == {function.__name__: pytest.approx(delta.full)}


def test_metrics_and_functions_are_judged_together() -> None:
    names = ["neg_log_loss", "f1_macro", "f1_2", closeness]
    clf, data = tiny_classifier(), load_task("demo", limit=24, metrics=names)
    result = headviz.evaluate(clf, data, {1: [1, 2]})
    assert list(result.metrics) == ["neg_log_loss", "f1_macro", "f1_2", "closeness"]
    said = result.probabilities.astype(float)
    said /= said.sum(axis=1, keepdims=True)
    assert result.metrics["neg_log_loss"] == pytest.approx(-sklearn.log_loss(result.gold, said, labels=[0, 1, 2]))
    table = headviz.ablate(clf, load_task("demo", limit=12, metrics="roc_auc"))
    assert table.subject.metric == "roc_auc"


def test_metrics_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    line = "evaluate --model demo --task demo --limit 12 --metrics roc_auc,f1_1,balanced_accuracy --device cpu --json"
    assert main(line.split()) == 0
    assert list(json.loads(capsys.readouterr().out)["metrics"]) == ["roc_auc", "f1_1", "balanced_accuracy"]
    assert main([*line.split()[:7], "--metrics", "roc_auk"]) == 2
    assert "Did you mean 'roc_auc'" in capsys.readouterr().err


def test_unbalanced_data_have_metrics_that_see_the_rare_class(tmp_path: Path) -> None:
    def read(share: float, classes: int = 2) -> tuple[str, ...]:
        labels = [int(i >= share * 100) * (1 + i % (classes - 1)) for i in range(100)]
        return Dataset.of([f"text {i}" for i in range(100)], labels=labels).task.metrics

    assert read(0.5) == ("accuracy", "matthews")
    assert read(0.9) == ("accuracy", "balanced_accuracy", "f1_1")
    assert read(0.9, 3) == ("accuracy", "balanced_accuracy", "f1_macro")


def test_wrong_metrics_are_refused() -> None:
    for wrong in ("roc_auk", [], ["accuracy", "accuracy"], "pearson"):
        with pytest.raises(TaskError):
            load_task("demo", limit=4, metrics=wrong)

    def accuracy(gold: NDArray, predicted: NDArray) -> float:
        return 0.0

    with pytest.raises(TaskError, match="another name"):
        load_task("demo", limit=4, metrics=accuracy)
    with pytest.raises(UserError, match="probabilities"):
        paired([0, 1], [0.2, 1.2], [0.1, 0.2], "roc_auc")
    with pytest.raises(OptionError):
        paired([0, 1], [0, 1], [0, 1], "f1_x")
