"""The number of torch threads is lent, not taken; what a GPU takes instead."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import headviz
from headviz import plugins
from headviz.scores.collect import can_spare_core, room_for_statistics
from headviz.scores.score import SWEEPS
from support.scored_data import made
from support.tiny import tiny_classifier


def test_one_thread_fewer_and_back():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with room_for_statistics():
            assert torch.get_num_threads() == 2
            with room_for_statistics():
                assert torch.get_num_threads() == 2
            assert torch.get_num_threads() == 2
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("score", "hidden", "given", "used"),
    [("taylor", 32, 3, 3), ("conductance-pearson", 32, 3, 2), ("conductance-pearson", 256, 3, 3)],
)
def test_a_core_is_spared_where_that_is_faster(
    score: str, hidden: int, given: int, used: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elsewhere the thread that is left out would be missed: on two cores half of the speed."""
    seen, before = set(), torch.get_num_threads()
    name = "gates" if score == "taylor" else "conductance"
    sweep = SWEEPS[name]

    def run(chunk):
        seen.add(torch.get_num_threads())
        return plugins.function(sweep.run)(chunk)

    monkeypatch.setitem(SWEEPS, name, replace(sweep, run=run))
    clf = tiny_classifier(hidden=hidden, layers=1)
    torch.set_num_threads(given)
    try:
        values = headviz.score_heads(clf, made(3), score, cache=False).values
        torch.set_num_threads(1)
        np.testing.assert_allclose(values, headviz.score_heads(clf, made(3), score, cache=False).values, atol=1e-4)
    finally:
        torch.set_num_threads(before)
    assert seen == {used, 1}


def test_on_cuda_no_core_is_left_to_the_statistics() -> None:
    """The device computes them itself; beside another GPU the processor does."""
    gpus = [
        SimpleNamespace(device=torch.device(kind), num_heads=12, head_size=size)
        for size in (8, 64)
        for kind in ("cuda", "mps")
    ]
    assert [can_spare_core(gpu) for gpu in gpus] == 2 * [False, True]
