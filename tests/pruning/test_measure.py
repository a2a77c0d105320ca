"""What is recorded of a model's answers, against textbook formulas and resampling example by example."""

import math
from dataclasses import replace

import numpy as np
import pytest

from headviz.answers.number import NumberAnswers
from headviz.answers.one_class import ONE_CLASS, ClassAnswers
from headviz.pruning.judging import measured
from headviz.tasks import Dataset, get_task
from support.metrics import metric_of_rows
from support.pruning_plans import make_data


def test_the_interval_of_an_accuracy_is_wilsons():
    gold = np.zeros(40, int)
    mine = np.array([0] * 31 + [1] * 9)
    z, n, p = 1.959964, 40, 31 / 40
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    ends = ClassAnswers(gold, gold, 2).interval(mine, "accuracy")
    assert ends == pytest.approx((middle - half, middle + half), abs=1e-6)


@pytest.mark.parametrize("name", ["f1", "matthews"])
def test_the_interval_of_other_metrics_is_the_bootstraps(name):
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 2, 200)
    mine = np.where(rng.random(200) < 0.8, gold, 1 - gold)
    i = rng.integers(0, 200, (2000, 200))
    drawn = metric_of_rows(name, gold[i], mine[i])
    ends = ClassAnswers(gold, gold, 2).interval(mine, name)
    assert ends == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.012)


def test_the_interval_of_a_correlation_is_the_bootstraps():
    rng = np.random.default_rng(0)
    gold = rng.normal(size=150)
    mine = gold + rng.normal(size=150)
    drawn = [np.corrcoef(gold[i], mine[i])[0, 1] for i in (rng.integers(0, 150, 150) for _ in range(2000))]
    ends = NumberAnswers(gold, gold).interval(mine, "pearson")
    assert ends == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.012)
    assert NumberAnswers(gold, gold).interval(np.ones(150), "pearson") == (0.0, 0.0)


def test_a_record_holds_intervals_and_paired_deltas_of_every_metric():
    data = make_data(60, "dev")
    rng = np.random.default_rng(0)
    logits, reference = (rng.normal(size=(60, 3)).astype(np.float32) for _ in range(2))
    reference[np.arange(60), data.gold] += 2
    mine, theirs = logits.argmax(axis=1), reference.argmax(axis=1)
    found = measured(data, mine, theirs)
    assert found.agreement == np.mean(mine == theirs)
    assert found.intervals == {"accuracy": ClassAnswers(data.gold, data.gold, 3).interval(mine, "accuracy")}
    delta = found.deltas["accuracy"]
    change = (mine == data.gold).astype(float) - (theirs == data.gold)
    assert delta["delta"] == pytest.approx(change.mean())
    low, high = np.quantile([rng.choice(change, 60).mean() for _ in range(4000)], [0.025, 0.975])
    assert low - 0.06 < delta["low"] <= low  # the exact interval is the wider one
    assert high <= delta["high"] < high + 0.06


def test_agreement_of_a_regression_is_a_correlation():
    a = np.array([1.0, 2.0, 4.0])
    assert NumberAnswers(a, a).agreement(2 * a + 1) == pytest.approx(1)
    assert NumberAnswers(a, a).agreement(np.ones(3)) is None


@pytest.mark.parametrize("name", ["accuracy", "f1", "matthews"])
def test_an_answer_that_is_none_of_the_classes_is_a_wrong_one(name):
    """A model with more outputs than the task has classes; its steps had no interval and no change."""
    rng = np.random.default_rng(3)
    data = Dataset(replace(get_task("sst2"), metrics=(name,)), "dev", ("a",) * 60, None, rng.integers(0, 2, 60))
    logits, reference = (rng.normal(size=(60, 3)).astype(np.float32) for _ in range(2))
    order = np.array([0, 1])
    mine, theirs = ONE_CLASS.predicted(logits, order), ONE_CLASS.predicted(reference, order)
    assert (mine < 0).any()
    value = metric_of_rows(name, data.gold[None], mine[None])[0]
    found = measured(data, mine, theirs)
    low, high = found.intervals[name]
    assert low < value < high
    one = ClassAnswers(data.gold, theirs, 2).deltas([mine], name)[0]
    assert found.deltas[name] == {
        "delta": one.delta,
        "low": one.interval_low,
        "high": one.interval_high,
        "p": one.p_value,
    }
    assert not math.isnan(one.interval_low)
