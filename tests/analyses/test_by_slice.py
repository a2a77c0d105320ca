"""Costs by kind of example: each against the plain evaluation of that kind alone, and what is read off them."""

import json
from dataclasses import replace

import numpy as np
import pytest

from headviz import HeadMask
from headviz.analyses.ablation import ablate
from headviz.analyses.by_slice import MOST, BySlice, by_slice
from headviz.errors import Cancelled, OptionError
from headviz.evaluation.evaluator import Evaluator
from headviz.heads import HeadId
from headviz.statistics.significance import benjamini_hochberg
from headviz.tasks import Dataset
from headviz.tasks.catalogue import get_task
from support.analysed import learnt, texts
from support.plain import evaluate
from support.tiny import tiny_classifier

FULL = HeadMask.full(3, 4)


def sliced(n: int = 90, names: tuple[str, ...] = ("long", "odd", "short"), **more: object) -> Evaluator:
    evaluator = learnt(n=n, **more)
    kinds = tuple(names[i % len(names)] for i in range(n))
    return Evaluator(evaluator.clf, replace(evaluator.data, slices=kinds, slice_name="sort"))


def test_every_cost_is_that_of_its_examples_alone() -> None:
    evaluator = sliced()
    result = by_slice(evaluator)
    assert result.slice_name == "sort"
    assert sorted(s.name for s in result.slices) == ["long", "odd", "short"]
    p = []
    for k, one in enumerate(result.slices):
        part = evaluator.data.only_slice(one.name)
        assert one.n == len(part)
        alone = ablate(Evaluator(evaluator.clf, part))
        assert one.baseline == alone.baseline
        for ours, its in (("values", "values"), ("interval_low",) * 2, ("interval_high",) * 2, ("p_value",) * 2):
            np.testing.assert_allclose(getattr(result, ours)[k], getattr(alone, its), atol=1e-12)
        p.append(alone.p_value)
    np.testing.assert_allclose(result.q_value, benjamini_hochberg(np.array(p)))


def test_costs_of_the_kinds_add_up_to_the_whole() -> None:
    evaluator = sliced(n=100, names=("a", "b", "b", "c"))
    result, whole = by_slice(evaluator), ablate(evaluator)
    shares = np.array([s.n for s in result.slices]) / 100
    np.testing.assert_allclose(np.tensordot(shares, result.values, 1), whole.values, atol=1e-12)
    assert result.baseline == whole.baseline


@pytest.mark.slow
def test_each_kinds_costliest_head_and_what_it_costs_elsewhere() -> None:
    evaluator = sliced()
    result = by_slice(evaluator)
    costs = [s.cost for s in result.slices]
    assert costs == sorted(costs, reverse=True)
    for k, one in enumerate(result.slices):
        assert one.head is not None
        assert one.cost == result.values[k].max() == result.values[k][one.head]
        assert one.significant == int(((result.q_value[k] < 0.05) & (result.values[k] > 0)).sum())
        others = evaluator.data.subset([i for i, s in enumerate(evaluator.data.slices) if s != one.name])
        off = FULL.without([one.head])
        full, masked = (evaluate(evaluator.clf, others, m).metrics["accuracy"] for m in (None, off))
        assert one.elsewhere == pytest.approx(full - masked)


def made(values: np.ndarray, q: np.ndarray) -> BySlice:
    base = by_slice(sliced(n=30))
    return replace(base, values=values, interval_low=values - 0.05, interval_high=values + 0.05, q_value=q)


def test_heads_to_draw_form_a_diagonal() -> None:
    values, q = np.zeros((3, 3, 4)), np.ones((3, 3, 4))
    values[0, 2, 1], values[0, 0, 0], values[1, 1, 1], values[2, 0, 3] = 0.9, 0.5, 0.7, 0.1
    q[0, 2, 1] = q[0, 0, 0] = q[1, 1, 1] = 0.01  # the last is a kind's costliest, but not for certain
    q[1, 2, 2], values[1, 2, 2] = 0.01, -0.4  # a head that does harm costs nothing
    result = made(values, q)
    assert result.heads_to_draw() == [HeadId(2, 1), HeadId(0, 0), HeadId(1, 1), HeadId(0, 3)]
    assert result.heads_to_draw(3) == [HeadId(2, 1), HeadId(1, 1), HeadId(0, 3)]


def test_on_top_of_a_mask_and_with_one_kind_only() -> None:
    evaluator = sliced(n=40, names=("all",))
    result = by_slice(evaluator, base=FULL.without([(1, 1)]))
    assert np.isnan(result.values[0, 1, 1])
    assert np.isnan(result.slices[0].elsewhere)
    content = json.loads(result.to_json())
    assert content["tested"] == 11
    assert content["slices"][0]["elsewhere"] is None
    assert content["values"][0][1][1] is None


def test_a_kind_on_which_the_metric_has_no_value_has_no_head_either() -> None:
    a, b = texts(24, 0)
    gold = np.where(np.arange(24) % 2, 2.5, np.linspace(0, 5, 24))  # every second one alike: no correlation
    kinds = tuple("alike" if i % 2 else "spread" for i in range(24))
    data = Dataset(get_task("stsb"), "dev", a, b, gold, slices=kinds, slice_name="sort")
    result = by_slice(Evaluator(tiny_classifier(labels=("score",)), data))
    spread, alike = result.slices
    assert (spread.name, alike.name) == ("spread", "alike")
    assert spread.head is not None
    assert alike.head is None
    assert np.isnan(alike.cost)
    assert json.loads(result.to_json())["slices"][1]["cost"] is None
    assert all(result.values[0][h] == result.values[0][h] for h in result.heads_to_draw())


def test_refusals_progress_and_cancel() -> None:
    with pytest.raises(OptionError, match="slice column"):
        by_slice(learnt(n=20))
    with pytest.raises(OptionError, match="61 different values"):
        by_slice(sliced(n=80, names=tuple(f"k{i}" for i in range(MOST + 1))))
    seen: list[tuple[int, int]] = []
    by_slice(sliced(n=20), progress=lambda done, total: seen.append((done, total)))
    assert seen == [(i, 16) for i in range(17)]
    with pytest.raises(Cancelled):
        by_slice(sliced(n=20), cancel=iter([False] * 14 + [True] * 50).__next__)
