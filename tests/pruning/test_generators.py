"""Algorithms as generators: what they may yield, what a run stores of them, and plugins of the older interface."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from headviz import plugins
from headviz.errors import OptionError, RunError
from headviz.heads import HeadMask
from headviz.pruning import ALGORITHMS, Algorithm, State
from headviz.pruning.algorithms import Remove, Score
from headviz.pruning.job import run_plan
from support.plugin_files import nothing_stays, written
from support.pruning_plans import by_hash, context, plan, without_times

__all__ = ["nothing_stays"]

OLDER = """
from headviz.pruning.algorithms import Algorithm, masked

def highest(loop):
    return loop.without_lowest(loop.first_scores())

ALGORITHMS = [Algorithm("mine", "Mine", "What.", "Cost.", "Source.", highest, masked)]
"""


def named(monkeypatch: pytest.MonkeyPatch, masks: Any, **options: Any) -> str:
    monkeypatch.setitem(ALGORITHMS, "mine", Algorithm("mine", "Mine", "What.", "Cost.", "Source.", masks, **options))
    return "mine"


def highest_first(full: HeadMask, sizes: Any) -> Any:
    scores = yield Score(full)
    mask = full
    for size in sizes:
        mask = yield Remove(-scores, mask, size)


def test_exact_gates_may_bring_a_head_back():
    full = HeadMask.full(1, 3)
    steps = ALGORITHMS["gates-exact"].masks(full, [1, 2])
    assert next(steps).mask == full
    first, second = np.array([[0.1, 0.5, 0.9]]), np.array([[0.9, 0.1, 0.2]])
    assert vars(steps.send(first)) == {"scores": first, "mask": full, "size": 1}
    after = steps.send(full.without([(0, 0)]))
    assert (after.mask, after.gates) == (full.without([(0, 0)]), first)
    assert vars(steps.send(second)) == {"scores": second, "mask": full, "size": 2}


def test_what_an_algorithm_makes_of_its_scores_is_the_same_at_each_step(monkeypatch, tmp_path):
    p = plan(named(monkeypatch, highest_first))
    c = context(tmp_path)
    *_, state = run_plan(p, c)
    scores = by_hash(c.clf, c.sample(p, 0, p.samples), p.score, mask=None, seed=0).values
    order = [divmod(int(i), 4) for i in np.argsort(-scores, axis=None)]
    for record, size in zip(state.steps, (3, 6, 9), strict=True):
        assert set(HeadMask.from_hex(record.mask, 3, 4).off) == set(order[:size])
        assert np.array_equal(np.array(state.choice(0, record.step).scores), scores)  # as they were measured


def test_a_run_that_goes_on_asks_again_only_what_was_not_answered(monkeypatch, tmp_path):
    asked = []

    def counted(*given: Any, **options: Any) -> Any:
        asked.append(options["mask"].hex)
        return by_hash(*given, **options)

    p = plan("iterative")
    expected = [without_times(s) for s in run_plan(p, context(tmp_path / "whole"))][-1]
    steps = run_plan(p, context(tmp_path / "run", score=counted))
    for _ in range(3):
        next(steps)
    *_, state = run_plan(p, context(tmp_path / "run", score=counted), State.load(tmp_path / "run" / "run"))
    assert without_times(state) == expected
    assert asked == ["fff", *(c.mask for c in state.choices[:-1])]


@pytest.mark.slow
def test_masks_may_need_no_scores_and_models_of_any_earlier_step_can_be_scored(monkeypatch, tmp_path):
    def first_then_first_model(full: HeadMask, sizes: Any) -> Any:
        first = yield full.without([(layer, 0) for layer in range(3)])
        mask = first
        for size in sizes[1:]:
            scores = yield Score(trained=first)
            mask = yield Remove(scores, mask, size)

    p = plan(named(monkeypatch, first_then_first_model, retrains=True), retrain_full=False, keep_models="all")
    c = context(tmp_path)
    *_, state = run_plan(p, c)
    assert state.choices[0].scores is None
    model = c.trained(state.record(0, 1))
    for choice in state.choices[1:]:
        measured = by_hash(model, c.sample(p, 0, p.samples), p.score, mask=None, seed=0).values
        assert np.array_equal(np.array(choice.scores, float), measured, equal_nan=True)


def twice(full: HeadMask, sizes: Any) -> Iterator[Any]:
    yield Score(full)
    yield Score(full)


def never(full: HeadMask, sizes: Any) -> Iterator[Any]:
    yield from ()


def words(full: HeadMask, sizes: Any) -> Iterator[Any]:
    yield "half"


def unknown(full: HeadMask, sizes: Any) -> Iterator[Any]:
    yield Score(trained=full.without([(0, 0)]))


@pytest.mark.parametrize(
    ("masks", "message"),
    [(twice, "asks twice"), (never, "ends before"), (words, "yields a str"), (unknown, "trains a model under")],
)
def test_what_an_algorithm_may_not_do_is_one_line(masks, message, monkeypatch, tmp_path):
    with pytest.raises(RunError, match=message):
        list(run_plan(plan(named(monkeypatch, masks)), context(tmp_path)))


@pytest.mark.usefixtures("nothing_stays")
def test_a_plugin_of_the_older_interface_is_refused_in_one_line(tmp_path):
    with pytest.raises(OptionError, match=r"mine\.py, line 2 is broken: .*generator.*docs/plugins\.md") as error:
        plugins.load([written(tmp_path, OLDER)])
    assert "\n" not in str(error.value)
    with pytest.raises(OptionError, match="generator"):
        Algorithm("mine", "Mine", "What.", "Cost.", "Source.", lambda loop: loop)
