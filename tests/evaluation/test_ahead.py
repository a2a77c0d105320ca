"""What a click may ask for next is computed before, and found by the click and by a table of single heads."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest
import torch

from headviz import HeadMask
from headviz.analyses.ablation import ablate
from headviz.errors import Cancelled
from headviz.evaluation.evaluator import Evaluator, EvaluatorOptions
from headviz.evaluation.mask_evaluator import compute_ahead, give_way, toggles
from support.tiny import tiny_classifier

from .test_evaluator import some_data


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
    found: list[int] = []

    def work() -> None:
        give_way()
        found.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    one = threading.Thread(target=work)
    one.start()
    one.join()
    assert found == [19]
    assert torch.get_num_threads() == before
    assert os.getpriority(os.PRIO_PROCESS, 0) == nice
