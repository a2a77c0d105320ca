"""The number of torch threads is lent, not taken."""

import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import headviz
from headviz.scores import collect, sweeps
from headviz.scores.spare_core import MOST, room_for_statistics, statistics_at_once
from headviz.scores.sweeps import SWEEPS
from headviz.storage.store import Store
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
    ("score", "hidden", "given", "used"),
    [
        ("taylor", 32, 3, 3),
        ("attattr-max", 32, 3, 3),
        ("conductance-pearson", 32, 3, 2),
        ("conductance-pearson", 256, 3, 3),
        ("conductance-pearson", 256, 4, 3),
    ],
)
def test_a_core_is_spared_where_that_is_faster(
    score: str, hidden: int, given: int, used: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elsewhere the thread that is left out would be missed: on two cores half of the speed."""
    seen, before = set(), torch.get_num_threads()
    name = {"taylor": "gates", "attattr-max": "attattr"}.get(score, "conductance")
    sweep = SWEEPS[name]

    def run(chunk):
        seen.add(torch.get_num_threads())
        return sweep.run(chunk)

    monkeypatch.setitem(SWEEPS, name, replace(sweep, run=run))
    clf = tiny_classifier(hidden=hidden, layers=1)
    torch.set_num_threads(given)
    try:
        values = headviz.score_heads(clf, made(6), score, cache=False).values
        torch.set_num_threads(1)
        np.testing.assert_allclose(values, headviz.score_heads(clf, made(6), score, cache=False).values, atol=1e-4)
    finally:
        torch.set_num_threads(before)
    assert seen == {used, 1}


def test_statistics_side_by_side_are_each_examples_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As beside a GPU: there all cores are free for them."""
    clf, seen, data = tiny_classifier(hidden=32, layers=2), set(), made(12)
    singles = [data.subset([i]) for i in range(len(data))]
    alone = [headviz.score_heads(clf, one, "conductance-spearman", cache=False).values for one in singles]
    sweep, correlate = SWEEPS["conductance"], sweeps.correlate

    def slow(maps, kept):
        seen.add(threading.current_thread().name)
        until = time.monotonic() + 10
        while len(seen) < 3 and time.monotonic() < until:  # so that one of them does not do it all
            time.sleep(0.01)
        return correlate(maps, kept)

    monkeypatch.setattr(sweeps, "correlate", slow)
    monkeypatch.setitem(
        SWEEPS, "conductance", replace(sweep, split=lambda c: (slice(i, i + 1) for i in range(len(c.encodings))))
    )
    monkeypatch.setattr(collect, "statistics_at_once", lambda *given: 3)
    store = Store(tmp_path)
    headviz.score_heads(clf, data, "conductance-spearman", cache=store)
    assert len(seen) == 3
    monkeypatch.setattr(sweeps, "correlate", None)  # from here on all is in the cache
    for one, values in zip(singles, alone, strict=True):
        found = headviz.score_heads(clf, one, "conductance-spearman", cache=store).values
        np.testing.assert_allclose(found, values, atol=1e-4)
    assert len({values.tobytes() for values in alone}) > 6


def test_beside_a_gpu_statistics_have_the_cores_that_torch_may_use_and_the_memory_allows() -> None:
    clf, before = tiny_classifier(), torch.get_num_threads()
    gpu = SimpleNamespace(device=torch.device("cuda"))
    torch.set_num_threads(3)
    try:
        assert [statistics_at_once(one, 1, 1000) for one in (clf, gpu)] == [1, 3]
        assert [statistics_at_once(gpu, size, 1000) for size in (400, 2000)] == [2, 1]
        torch.set_num_threads(64)
        assert statistics_at_once(gpu, 1, 1000) == MOST
    finally:
        torch.set_num_threads(before)
