"""The number of torch threads is lent, not taken."""

from dataclasses import replace

import pytest
import torch

import headviz
from headviz.scores.spare_core import room_for_statistics
from headviz.scores.sweeps import SWEEPS
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


def test_one_thread_stays_one_also_after_an_error():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with room_for_statistics():
            assert torch.get_num_threads() == 1
            raise KeyError
    except KeyError:
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("name", "score", "threads"),
    [("gates", "taylor", 3), ("attattr", "attattr-max", 3), ("conductance", "conductance-pearson", 2)],
)
def test_only_where_statistics_take_long(name: str, score: str, threads: int, monkeypatch: pytest.MonkeyPatch):
    """Elsewhere the thread that is left out would be missed: on two cores half of the speed."""
    seen, before, sweep = set(), torch.get_num_threads(), SWEEPS[name]

    def run(chunk):
        seen.add(torch.get_num_threads())
        return sweep.run(chunk)

    monkeypatch.setitem(SWEEPS, name, replace(sweep, run=run))
    torch.set_num_threads(3)
    try:
        headviz.score_heads(tiny_classifier(), made(6), score, cache=False)
    finally:
        torch.set_num_threads(before)
    assert seen == {threads}
