"""A device whose memory is full: work is halved, and the results are those of one with room.

No device is needed. What it would have no room for fails here by its size, in the kernels that all work goes through.
"""

from __future__ import annotations

import contextlib
import random
import weakref
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import headviz
from headviz import HeadMask
from headviz.evaluation import evaluator as evaluators
from headviz.evaluation.evaluator import Evaluator, EvaluatorOptions
from headviz.models.fast import gpu
from headviz.scores import gradients
from headviz.scores.chunk import Chunk
from headviz.scores.options import NoOptions
from support.scored_data import made
from support.tiny import PAIRS, TEXTS, tiny_classifier, worn_classifier

CLOSE = {"atol": 1e-5, "rtol": 1e-4}
FULL = torch.OutOfMemoryError


class Limit:
    """The most tokens that a pass may have; ``passes`` lists how many those had that were tried."""

    def __init__(self) -> None:
        self.tokens = 10**9
        self.passes: list[int] = []
        self.failed: list[int] = []

    def check(self, tokens: int) -> None:
        self.passes.append(tokens)
        if tokens > self.tokens:
            self.failed.append(tokens)
            raise FULL("full")


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Limit:
    """Of every pass, as its layer norms see it."""
    limit, layer_norm = Limit(), nn.functional.layer_norm

    def checked(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        limit.check(x.shape[:-1].numel())
        return layer_norm(x, *args, **kwargs)

    monkeypatch.setattr(nn.functional, "layer_norm", checked)
    return limit


def test_pieces_stay_in_order_and_the_error_goes_on_where_nothing_is_smaller() -> None:
    def parts(most: int) -> list[list[int]]:
        def run(part: slice) -> list[int]:
            if part.stop - part.start > most:
                raise FULL("full")
            return list(range(part.start, part.stop))

        return list(gpu.split_when_full([slice(0, 7), slice(7, 11)], run, gpu.halves))

    for most, count in ((9, 2), (3, 4), (1, 11)):
        assert [i for part in parts(most) for i in part] == list(range(11))
        assert len(parts(most)) >= count
    with pytest.raises(FULL):
        parts(0)


@pytest.mark.parametrize("method", [headviz.conductance, headviz.attattr])
def test_what_has_filled_the_memory_is_gone_when_half_of_it_is_tried(
    method: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The backward pass fails, as on a card. Each try is smaller than the one that failed before it."""
    clf, failed, tried = tiny_classifier(layers=3), list[weakref.ref[Tensor]](), list[int]()
    plain, grad = method(clf, TEXTS, PAIRS, steps=4, cache=False), torch.autograd.grad

    def too_many(of: Tensor, by: Any, **options: Any) -> Any:
        by = list(by)
        assert not any(ref() is not None for ref in failed)
        if len(by[0]) > 6:
            tried.append(len(by[0]))
            failed.extend(weakref.ref(t) for t in by)
            raise FULL("full")
        return grad(of, by, **options)

    monkeypatch.setattr(torch.autograd, "grad", too_many)
    result = method(clf, TEXTS, PAIRS, steps=4, cache=False)
    assert len(tried) > 1
    assert tried == sorted(set(tried), reverse=True)
    for one, other in zip(result, plain, strict=True):
        np.testing.assert_allclose(one.attribution, other.attribution, atol=1e-6)


@pytest.mark.parametrize(("family", "donors"), [("bert", ""), ("bert", "resample"), ("modernbert", ""), ("gpt2", "")])
def test_an_evaluator_halves_what_does_not_fit(family: str, donors: str, limit: Limit) -> None:
    """From the start and from kept states; what failed once is not tried again for the next mask."""
    clf, data, rng = worn_classifier(family, layers=3), made(24, seed=1), random.Random(4)
    keywords = {"ablation": donors, "reference": made(8, seed=2)} if donors else {}
    masks = [clf.full_mask, *(HeadMask.full(3, 4).without_random(n, seed=rng.random()) for n in (1, 3, 6, 2))]
    options = EvaluatorOptions(chunk_tokens=200)
    expected = headviz.evaluator_of(clf, data, options, **keywords)
    evaluator = headviz.evaluator_of(clf, data, options, **keywords)
    for mask, most in zip(masks, (10**9, 60, 60, 40, 40), strict=True):
        plain = expected.evaluate(mask).logits
        limit.tokens = most
        failed = len(limit.failed)
        np.testing.assert_allclose(evaluator.evaluate(mask).logits, plain, **CLOSE)
        assert most == 10**9 or (len(limit.failed) > failed) == (mask is masks[1] or mask is masks[3])
        limit.tokens = 10**9
    limit.tokens = 1
    with pytest.raises(FULL):
        evaluator.evaluate(masks[-1].without_random(1, seed=0))


def test_kept_states_go_before_a_chunk_is_halved(limit: Limit, monkeypatch: pytest.MonkeyPatch) -> None:
    clf, data = worn_classifier(layers=4), made(24, seed=1)
    evaluator = Evaluator(clf, data, EvaluatorOptions(budget=2**24, chunk_tokens=10**6))
    masks = [clf.full_mask.without([(0, head)]) for head in range(4)]
    evaluator.evaluate()
    held = [evaluator.memory]
    for mask in masks[:3]:
        evaluator.evaluate(mask)
        held.append(evaluator.memory)
    assert held == sorted(set(held))
    plain = Evaluator(clf, data).evaluate(masks[3]).logits
    largest = max(limit.passes)
    check = limit.check

    def with_states(tokens: int) -> None:
        check(tokens)
        if evaluator.memory > held[2]:
            raise FULL("full")

    monkeypatch.setattr(limit, "check", with_states)
    limit.passes.clear()
    np.testing.assert_allclose(evaluator.evaluate(masks[3]).logits, plain, **CLOSE)
    assert max(limit.passes) == largest  # no chunk was halved
    again = evaluator.memory
    evaluator.evaluate(masks[0].without([(3, 3)]))
    assert evaluator.memory <= max(again, held[2])  # nor is as much kept as before


@pytest.mark.parametrize("score", ["taylor", "fisher", "gim", "hies", "gnorm"])
def test_a_sweep_of_derivatives_halves_what_does_not_fit(score: str, limit: Limit) -> None:
    clf, data = tiny_classifier(layers=3), made(14, seed=1)
    plain = headviz.score_heads(clf, data, score, cache=False)
    limit.tokens = 70
    limit.passes.clear()
    result = headviz.score_heads(clf, data, score, cache=False)
    assert limit.failed
    np.testing.assert_allclose(result.values, plain.values, **CLOSE)
    limit.tokens = 1
    with pytest.raises(FULL):
        headviz.score_heads(clf, data, score, cache=False)


def test_a_precision_is_chosen_in_parts(limit: Limit, monkeypatch: pytest.MonkeyPatch) -> None:
    clf = worn_classifier()
    encodings = clf.encode(6 * TEXTS, 6 * PAIRS)
    chunk = evaluators.pack([len(e) for e in encodings], 10**6)[0]
    plain = evaluators._logits(clf, "float32", chunk, encodings)
    limit.tokens = 50
    np.testing.assert_allclose(evaluators._logits(clf, "float32", chunk, encodings), plain, **CLOSE)
    assert limit.failed


def test_first_sizes_come_from_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    card = torch.device("cuda")
    sizes = {}
    for memory in (2**33, 2**37):
        monkeypatch.setattr(evaluators, "free", lambda device, memory=memory: memory)
        sizes[memory] = [EvaluatorOptions().tokens_at_once(card, each) for each in (2**15, 2**20, 2**40)]
    small, large = sizes[2**33], sizes[2**37]
    assert small[0] <= large[0] == 2**16  # a larger one would not be faster
    assert small[1] < large[1] < 2**16
    assert small[1] * 2**20 < 2**33
    assert small[2] == 1
    monkeypatch.setattr(gradients, "runs_by_itself", lambda device: True)
    clf, data = tiny_classifier(), made(64)
    encodings = clf.encode(data.texts, data.pairs)

    def most(budget: int) -> int:
        chunk = Chunk(clf, clf.full_mask, encodings, [None] * 64, None, data, NoOptions(), budget)
        return max(part.stop - part.start for part in gradients.by_tokens(chunk))

    assert most(1) == 1 < most(2**21) < most(2**30)


class Card:
    """CUDA's graphs as far as ``repeated`` knows them. A replay computes into the same results."""

    def __init__(self) -> None:
        self.stream = contextlib.nullcontext
        self.OutOfMemoryError = FULL

    class Stream:
        def wait_stream(self, other: Any) -> None: ...

    def current_stream(self) -> Any:
        return self.Stream()

    def graph_pool_handle(self) -> int:
        return 1

    def CUDAGraph(self) -> Any:
        return SimpleNamespace(replay=lambda: None)

    @contextlib.contextmanager
    def graph(self, graph: Any, **options: Any) -> Iterator[None]:
        try:
            yield
        except FULL as error:
            raise RuntimeError("operation failed due to a previous error during capture") from error


@pytest.mark.parametrize("at", [1, 2])  # while libraries load, while the pass is recorded
def test_a_pass_that_found_no_room_is_recorded_another_time(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "cuda", Card())
    model, calls = nn.Linear(2, 2), list[int]()

    def run(inputs: dict[str, Tensor]) -> list[Tensor]:
        calls.append(1)
        if len(calls) == at:
            raise FULL("full")
        return [inputs["x"] + 1]

    x = {"x": torch.zeros(3)}
    with pytest.raises(FULL):
        gpu.repeated(model, "key", x, run)
    assert gpu.refusals(model) == []
    assert gpu.repeated(model, "key", x, run) is not None
    assert gpu.repeated(model, "key", x, run) is not None
    assert len(calls) == at + 2  # recorded once
