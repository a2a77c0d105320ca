"""Work on a device that computes by itself: how often it is waited for, told on one whose numbers nobody can read.

PyTorch's "meta" device computes shapes alone. Reading a number of it raises, as a program would wait for a GPU there,
and whatever comes back has to come through ``fetch``, which is counted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import headviz
from headviz.attribution import integration, walk
from headviz.attribution.integration import sweep
from headviz.attribution.rules import PathOptions
from headviz.evaluation import evaluator as evaluators
from headviz.extras.scores import measures
from headviz.heads import HeadMask
from headviz.models.as_described import unfilled
from headviz.models.fast import gpu
from headviz.models.network import Network
from headviz.scores import gradients, map_values
from support.scored_data import made
from support.tiny import PAIRS, TEXTS, tiny_classifier

FETCHING = (walk, map_values, gradients, measures, evaluators)
SCORES = ("conductance-kendall", "attattr-max", "taylor", "gnorm")


class Launches(TorchDispatchMode):
    """How often something is started, and whether it reads a table of this process's memory."""

    def __init__(self) -> None:
        super().__init__()
        self.count, self.mixed = 0, list[str]()

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        out = func(*args, **(kwargs or {}))
        given = [t for t in torch.utils._pytree.tree_leaves((args, kwargs, out)) if isinstance(t, Tensor)]
        here = [t for t in given if t.device.type == "cpu" and t.dim()]
        if len(here) < len(given):
            self.count += 1
            self.mixed += [str(func)] * bool(here)
        return out


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Sizes of what came back, of a device that computes nothing."""
    result: list[int] = []

    def fetch(tensors: Sequence[Tensor]) -> Callable[[], list[np.ndarray]]:
        if threading.current_thread() is threading.main_thread():  # not of a page's job that another test has left
            result.append(sum(t.numel() for t in tensors))
        tables = [np.ones(t.shape, str(t.dtype).removeprefix("torch.")) for t in tensors]
        return lambda: tables

    for module in FETCHING:
        monkeypatch.setattr(module, "fetch", fetch)
    monkeypatch.setattr(Network, "digest", "the weights cannot be read")
    monkeypatch.setattr(evaluators.EvaluatorOptions, "room_on", lambda options, device: 2**30)
    with unfilled():  # here a weight without numbers is meant
        yield result


def there(layers: int = 3) -> Any:
    clf = tiny_classifier(layers=layers)
    clf.model.to("meta")
    return clf


@pytest.mark.parametrize("score", SCORES)
def test_a_sweep_is_waited_for_once_a_chunk_however_many_texts_and_layers(score: str, fetched: list[int]) -> None:
    seen = {}
    for layers, texts in ((2, 4), (3, 12)):
        fetched.clear()
        headviz.score_heads(there(layers), made(texts), score, cache=False)
        seen[layers, texts] = len(fetched)
        numbers = sum(fetched)
        assert numbers <= texts * (4 * layers * 4 + 8)  # a few numbers for each head, no maps
    assert set(seen.values()) == {1}


def test_maps_of_many_texts_come_back_together(fetched: list[int]) -> None:
    clf = there(2)
    for texts in (TEXTS[:1], 2 * TEXTS):
        fetched.clear()
        headviz.conductance(clf, texts, [PAIRS[0]] * len(texts), steps=4, cache=False, budget=2**30)
        assert len(fetched) == 1


def test_an_evaluation_is_waited_for_once(fetched: list[int]) -> None:
    clf, data = there(), made(40)
    evaluator = headviz.Evaluator(clf, data)
    fetched.clear()
    for mask in (None, HeadMask.full(3, 4).without([(1, 2)])):
        evaluator._logits(clf.under(mask), False, None, None)
    assert len(fetched) == 2


@pytest.mark.slow
def test_what_is_recorded_reads_nothing_of_this_process(fetched: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph cannot hold a copy from the processor's memory. Without one, the sweep is computed from its start."""
    counted = []

    def repeated(model: Any, key: Any, inputs: dict[str, Tensor], run: Any) -> None:
        assert {t.device.type for t in inputs.values()} == {"meta"}
        with Launches() as launches:
            run(inputs)
        counted.append(launches)

    monkeypatch.setattr(integration, "repeated", repeated)
    for steps, rule in ((8, "richardson"), (5, "trapezoid")):
        for mask in (None, HeadMask.full(3, 4).without([(1, 2)])):
            clf = there()
            sweep(clf, clf.encode(TEXTS[:1], PAIRS[:1]), [None], PathOptions(steps, rule), mask)
    assert len(counted) == 4
    assert not [name for launches in counted for name in launches.mixed]
    assert max(launches.count for launches in counted) < 250 * 3


def test_a_batch_starts_no_more_than_one_text(fetched: list[int]) -> None:
    def started(texts: int) -> int:
        clf = there()
        encodings = sorted(clf.encode(texts * TEXTS[:2], texts * PAIRS[:2]), key=len)
        with Launches() as launches:
            list(integration.swept(clf, encodings, [None] * len(encodings), PathOptions(4)))
        return launches.count

    assert started(10) == started(2)


@pytest.mark.slow
@pytest.mark.parametrize("score", [*SCORES, "conductance-pearson", "conductance-max", "gim", "hies"])
def test_values_are_the_processors(score: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many texts at once, with their padding left out, equal one after the other."""
    clf, data = tiny_classifier(layers=3), made(6)
    mask = HeadMask.full(3, 4).without([(0, 1), (2, 3)])
    for rows in ("all", "influential") if score.startswith("conductance") else ("",):
        options = {"rows": rows} if rows else {}
        one = headviz.score_heads(clf, data, score, mask=mask, cache=False, **options)
        with monkeypatch.context() as patched:
            for module in (gpu, walk, map_values, integration):
                patched.setattr(module, "runs_by_itself", lambda device: True)
            patched.setattr(integration, "repeated", lambda *_: None)
            other = headviz.score_heads(clf, data, score, mask=mask, cache=False, **options)
        np.testing.assert_allclose(other.values, one.values, atol=1e-5, rtol=1e-4)
        assert other.undefined == one.undefined


@pytest.mark.parametrize("method", [headviz.conductance, headviz.attattr])
def test_a_full_memory_halves_the_passes(method: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clf, sizes, most = tiny_classifier(layers=3), [], [0]
    plain = method(clf, TEXTS, PAIRS, steps=4, cache=False)
    rows = walk.Walk.rows

    def too_many(own: walk.Walk, x: Tensor) -> dict[str, Tensor]:
        sizes.append(len(x))
        if len(x) > most[0]:
            raise torch.OutOfMemoryError("full")
        return rows(own, x)

    monkeypatch.setattr(walk.Walk, "rows", too_many)
    with pytest.raises(torch.OutOfMemoryError):
        method(clf, TEXTS, PAIRS, steps=4, cache=False)  # nothing at all fits
    most[0] = 6
    monkeypatch.setattr(integration, "LEAST", 1)
    result = method(clf, TEXTS, PAIRS, steps=4, cache=False)
    assert max(sizes) > 6 >= sizes[-1]
    for one, other in zip(result, plain, strict=True):
        np.testing.assert_allclose(one.attribution, other.attribution, atol=1e-6)
