"""Comparisons on growing parts of the data: nested, in proportion to the classes, and the usual one at last."""

from __future__ import annotations

import itertools
import sys
import threading
from typing import Any

import numpy as np
import pytest
import torch

from headviz import HeadMask
from headviz.analyses.ablation import ablate
from headviz.errors import Cancelled, NotFinite
from headviz.evaluation import mask_evaluator
from headviz.evaluation.evaluator import Evaluator, EvaluatorOptions
from headviz.evaluation.mask_evaluator import compute_ahead, give_way, toggles
from support.plain import evaluate
from support.tiny import tiny_classifier

from .test_evaluator import CLOSE, some_data


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every model counts as one whose evaluation takes long."""
    monkeypatch.setattr(mask_evaluator, "AT_ONCE", 0.0)
    monkeypatch.setattr(mask_evaluator, "ONE_PART", 0.0)


def mask() -> HeadMask:
    return HeadMask.full(3, 4).without([(0, 1), (1, 2)])


def test_parts_grow_and_the_last_is_the_usual_comparison(large: None) -> None:
    clf, data = tiny_classifier(spread=0.15), some_data(100)
    evaluator = Evaluator(clf, data, EvaluatorOptions(chunk_tokens=120))
    steps = list(evaluator.growing(mask()))
    assert [s.n for s in steps] == [8, 16, 32, 100]
    assert [s.final for s in steps] == [False, False, False, True]
    for before, after in itertools.pairwise(steps):
        assert set(before.index) < set(after.index)
    expected = Evaluator(clf, data).compare(mask())
    assert steps[-1].comparison.to_dict() == expected.to_dict()
    plain = evaluate(clf, data, mask())
    np.testing.assert_allclose(evaluator.evaluate(mask()).logits, plain.logits, **CLOSE)
    for step in steps:
        np.testing.assert_array_equal(step.masked, evaluator.predictions(mask())[step.index])
        np.testing.assert_array_equal(step.full, evaluator.predictions()[step.index])
        right = (step.masked == data.gold[step.index]).mean()
        assert step.comparison.primary.masked == right
    widths = [s.comparison.primary.interval_high - s.comparison.primary.interval_low for s in steps]
    assert widths == sorted(widths, reverse=True)
    assert all(np.isnan(s.comparison.primary.p_value) for s in steps[:-1])


def test_no_step_waits_for_the_whole_reference(large: None, monkeypatch: pytest.MonkeyPatch) -> None:
    clf, data = tiny_classifier(spread=0.15), some_data(100)
    evaluator, read = Evaluator(clf, data, EvaluatorOptions(chunk_tokens=120)), []
    read_out = evaluator._stages.read_out
    monkeypatch.setattr(evaluator._stages, "read_out", lambda h, c, e: (read.extend(c.index), read_out(h, c, e))[1])
    steps = evaluator.growing(mask())
    first = next(steps)
    assert first.n == 8
    assert sorted(read) == sorted([*first.index, *first.index])  # under both masks, and nothing else
    assert next(steps).n == 16
    assert len(read) == 2 * 16  # the mask starts from what the reference has so far
    assert [s.n for s in steps] == [32, 100]
    assert [s.n for s in evaluator.growing(mask().without([(2, 3)]))] == [8, 16, 32, 100]
    assert len(read) == 3 * 100


def test_a_mask_that_is_known_and_a_quick_model_have_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    clf, data = tiny_classifier(), some_data(100)
    assert [s.n for s in Evaluator(clf, data).growing(mask())] == [100]
    monkeypatch.setattr(mask_evaluator, "AT_ONCE", 0.0)
    evaluator = Evaluator(clf, data)
    evaluator.evaluate(mask())
    # nothing is known of the reference; one part is enough
    assert [s.n for s in evaluator.growing(mask())] == [16, 100]
    assert [s.n for s in evaluator.growing(mask())] == [100]
    assert [s.n for s in evaluator.growing()] == [100]  # the reference was computed for it


def test_the_mask_starts_where_the_reference_is_and_progress_never_goes_back(
    large: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    clf, data, late = tiny_classifier(spread=0.15), some_data(100), HeadMask.full(3, 4).without([(1, 2)])
    evaluator, layers, told = Evaluator(clf, data, EvaluatorOptions(chunk_tokens=120)), [], []
    context = evaluator._stages.context
    monkeypatch.setattr(evaluator._stages, "context", lambda layer, *a: (layers.append(layer), context(layer, *a))[1])
    *_, last = evaluator.growing(late, progress=lambda done, total: told.append((done, total)))
    assert layers.count(0) == len(evaluator._chunks)  # once, for the reference
    assert told == sorted(told)
    assert told[-1] == (100, 100)
    np.testing.assert_array_equal(last.masked, Evaluator(clf, data).predictions(late))


def test_parts_hold_each_class_in_proportion_and_do_not_hang_on_the_file(large: None) -> None:
    data = some_data(90, seed=3)
    order = mask_evaluator.stratified_order(data)
    assert sorted(order) == list(range(90))
    shares = data.gold
    for n in (9, 30, 64):
        for label in range(3):
            expected = n * (shares == label).mean()
            assert abs((shares[order[:n]] == label).sum() - expected) <= 1
    turned = data.subset(range(89, -1, -1))
    assert [data.texts[i] for i in order[:30]] == [
        turned.texts[i] for i in mask_evaluator.stratified_order(turned)[:30]
    ]


def test_left_or_cancelled_in_between_it_starts_anew(large: None) -> None:
    clf, data = tiny_classifier(spread=0.15), some_data(60)
    evaluator = Evaluator(clf, data)
    steps = evaluator.growing(mask())
    assert [next(steps).n for _ in range(2)] == [8, 16]
    held = evaluator.memory
    steps.close()
    assert evaluator.memory < held  # what it had reserved is free
    with pytest.raises(Cancelled):
        list(evaluator.growing(mask(), cancel=lambda: True))
    np.testing.assert_allclose(evaluator.evaluate(mask()).logits, evaluate(clf, data, mask()).logits, **CLOSE)


def test_answers_that_are_no_numbers_are_refused_before_the_first_step(large: None) -> None:
    clf, data = tiny_classifier(), some_data(60)
    with torch.no_grad():
        clf.model.classifier.bias[0] = torch.nan
    evaluator, done = Evaluator(clf, data), list[int]()
    with pytest.raises(NotFinite):
        next(evaluator.growing(mask(), progress=lambda examples, _: done.append(examples)))
    assert max(done, default=0) < len(data)
    assert evaluator.memory == 0


def test_a_large_model_answers_on_two_examples_first_without_an_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mask_evaluator, "SLOW_FIRST_PART", 0.0)
    monkeypatch.setattr(mask_evaluator, "ONE_PART", 0.0)
    monkeypatch.setattr(mask_evaluator, "AT_ONCE", 0.0)
    clf, data = tiny_classifier(spread=0.15), some_data(60)
    grown = list(Evaluator(clf, data).growing(mask()))
    assert [one.n for one in grown] == [2, 4, 8, 16, 32, 60]
    ends = [one.comparison.primary.interval_low for one in grown]
    assert np.isnan(ends[:2]).all()
    assert np.isfinite(ends[2:]).all()


@pytest.mark.parametrize("n", [1, 8, 13, 14, 40_000])
def test_sizes_double_and_share_what_may_be_missed(n: int) -> None:
    sizes = mask_evaluator.part_sizes(n)
    assert all(b == 2 * a for a, b in itertools.pairwise(sizes))
    assert all(s <= mask_evaluator.MOST * n for s in sizes)
    assert 2 * max(sizes, default=mask_evaluator.FIRST / 2) > mask_evaluator.MOST * n
    assert len(sizes) * (1 - mask_evaluator.level(n)) <= mask_evaluator.WATCHING + 1e-12


# what a click may ask for next is computed before, and found by the click and by a table of single --


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The first layer of every computation."""
    seen: list[int] = []
    real = Evaluator._run

    def spy(self: Evaluator, mask: HeadMask, begin: int, *more: Any) -> Any:
        seen.append(begin)
        return real(self, mask, begin, *more)

    monkeypatch.setattr(Evaluator, "_run", spy)
    return seen


def test_a_click_and_a_table_compute_nothing_more(counted: list[int]) -> None:
    evaluator = Evaluator(tiny_classifier(spread=0.15), some_data(30))
    mask = HeadMask.full(3, 4).without([(0, 1), (2, 2)])
    evaluator.compare(mask)
    del counted[:]
    compute_ahead(evaluator, mask)
    assert len(counted) == 12
    assert counted[1:8] == [2, 2, 2, 1, 1, 1, 1]  # the cheapest first, from states that are kept
    assert sorted(counted[8:]) == [0, 0, 0, 2]  # with (0, 1) on, the full model's states serve
    del counted[:]
    for one in toggles(evaluator.clf.present, mask):
        evaluator.compare(one)
    table = ablate(evaluator, base=mask)
    assert not counted
    plain = ablate(Evaluator(evaluator.clf, evaluator.data), base=mask)
    assert table.to_dict()["values"] == plain.to_dict()["values"]


def test_it_stops_in_the_middle_and_keeps_to_its_room(counted: list[int]) -> None:
    evaluator = Evaluator(tiny_classifier(), some_data(30), EvaluatorOptions(budget=16 * 2 * 5 * 30 * 3 * 4))
    assert evaluator.room == 5
    compute_ahead(evaluator)
    assert len(counted) == 5
    asked = 0

    def cancel() -> bool:
        nonlocal asked
        asked += 1
        return asked > 3

    with pytest.raises(Cancelled):
        compute_ahead(Evaluator(tiny_classifier(), some_data(30)), cancel=cancel)
    assert asked == 4  # asked before every layer, not only between masks


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says how")
def test_giving_way_holds_for_its_own_thread_alone() -> None:
    import os

    before, nice = torch.get_num_threads(), os.getpriority(os.PRIO_PROCESS, 0)
    result: list[int] = []

    def work() -> None:
        give_way()
        result.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    one = threading.Thread(target=work)
    one.start()
    one.join()
    assert result == [19]
    assert torch.get_num_threads() == before
    assert os.getpriority(os.PRIO_PROCESS, 0) == nice
