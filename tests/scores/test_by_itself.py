"""Work on a device that computes by itself: how often it is waited for, told on one whose numbers nobody can read.

PyTorch's "meta" device computes shapes alone. Reading a number of it raises, as a program would wait for a GPU there,
and whatever comes back has to come through ``fetch``, which is counted.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode

import headviz
from headviz.attribution import attattr, integration, walk
from headviz.attribution.integration import sweep
from headviz.attribution.rules import AttAttrOptions, PathOptions
from headviz.evaluation import evaluator as evaluators
from headviz.heads import HeadMask
from headviz.models.as_described import unfilled
from headviz.models.fast import gpu, packing
from headviz.models.network import Network
from headviz.scores import gradients, map_values
from headviz.storage.store import Store
from support.jobs import data_of, model_of
from support.scored_data import made
from support.tiny import PAIRS, TEXTS, tiny_classifier

FETCHING = (walk, map_values, gradients, evaluators)
SCORES = ("conductance-kendall", "attattr-max", "taylor", "gnorm")
CORRELATIONS = ("conductance-spearman", "conductance-pearson", "conductance-max")
EVERY_SCORE = (*SCORES, *CORRELATIONS, "fisher", "gim", "hies")


class Launches(TorchDispatchMode):
    """How often something is started, and whether it reads a table of this process's memory."""

    def __init__(self) -> None:
        super().__init__()
        self.names, self.mixed = list[str](), list[str]()

    @property
    def count(self) -> int:
        return len(self.names)

    @property
    def copies(self) -> int:
        """How often a table is copied as it is, or rows of it."""
        return sum(name.startswith(("aten.index", "aten.clone", "aten.copy", "aten.cat")) for name in self.names)

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        out = func(*args, **(kwargs or {}))
        given = [t for t in torch.utils._pytree.tree_leaves((args, kwargs, out)) if isinstance(t, Tensor)]
        here = [t for t in given if t.device.type == "cpu" and t.dim()]
        if len(here) < len(given):
            self.names.append(str(func))
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
    if "gnorm" in headviz.scores.SCORES:
        monkeypatch.setattr("headviz.extras.scores.measures.fetch", fetch)
    monkeypatch.setattr(Network, "digest", "the weights cannot be read")
    monkeypatch.setattr(evaluators.EvaluatorOptions, "room_on", lambda options, device: 2**30)
    with unfilled():  # here a weight without numbers is meant
        yield result


def as_there(patch: pytest.MonkeyPatch) -> None:
    """Give this processor the work of a device that computes by itself; nothing is recorded."""
    for module in (gpu, walk, map_values, integration, gradients):
        patch.setattr(module, "runs_by_itself", lambda device: True)
    patch.setattr(integration, "repeated", lambda *_: None)


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


def started(swept: Callable[..., Any], options: Any, texts: int, layers: int = 3) -> int:
    """How often a sweep of so many pairs of texts starts something."""
    clf = there(layers)
    encodings = sorted(clf.encode(texts * TEXTS[:2], texts * PAIRS[:2]), key=len)
    with Launches() as launches:
        list(swept(clf, encodings, [None] * len(encodings), options))
    return launches.count


@pytest.mark.parametrize(
    ("swept", "options"), [(integration.sweep_groups, PathOptions(4)), (attattr.sweep_groups, AttAttrOptions(4))]
)
def test_a_batch_starts_no_more_than_one_text(swept: Any, options: Any, fetched: list[int]) -> None:
    assert started(swept, options, 10) == started(swept, options, 2)


def test_sums_over_the_path_start_as_much_for_many_layers_as_for_one(fetched: list[int]) -> None:
    """A rule that takes three times as many parts of the sum adds as much with two layers as with six."""
    more = [
        started(integration.sweep_groups, PathOptions(8, "richardson"), 2, layers)
        - started(integration.sweep_groups, PathOptions(8, "trapezoid"), 2, layers)
        for layers in (2, 6)
    ]
    assert more[0] == more[1]


def test_texts_of_unequal_length_are_put_into_their_places_and_back_by_one_copy_each(
    fetched: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Queries, keys and values of a layer together."""
    monkeypatch.setattr(packing, "UNEVEN", 100)  # one group

    def copies(layers: int) -> int:
        clf = there(layers)
        evaluator = headviz.Evaluator(clf, made(40))
        with Launches() as launches:
            evaluator._logits(clf.under(None), False, None, None)
        return launches.copies

    assert copies(4) - copies(3) == 2


@pytest.mark.parametrize("job", ["tokens", "span"])
def test_answers_for_each_token_are_waited_for_once(job: str, fetched: list[int]) -> None:
    clf, data = model_of(job), data_of(job)
    clf.model.to("meta")
    evaluator = headviz.Evaluator(clf, data)
    fetched.clear()
    evaluator._logits(clf.under(None), False, None, None)
    assert len(fetched) == 1
    for score in ("conductance-spearman", "taylor"):
        fetched.clear()
        headviz.score_heads(clf, data, score, cache=False)
        assert len(fetched) == 1


def test_what_will_be_read_of_maps_does_not_hold_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither their statistics nor the maps themselves, which are on their way: the next maps need the memory."""
    clf, swept, seen = tiny_classifier(layers=2), integration.sweep_groups, list[weakref.ref[walk.Swept]]()

    def watched(*args: Any, **options: Any) -> Iterator[walk.Swept]:
        def noted(group: walk.Swept) -> walk.Swept:
            assert not any(ref() is not None for ref in seen)
            seen.append(weakref.ref(group))
            return group

        return map(noted, swept(*args, **options))

    as_there(monkeypatch)
    monkeypatch.setattr(integration, "sweep_groups", watched)
    monkeypatch.setattr(integration, "GPU_TOKENS", 200)  # several groups
    headviz.score_heads(clf, made(12), "conductance-spearman", cache=False)
    assert len(seen) > 2
    seen.clear()
    sweep(clf, clf.encode(3 * TEXTS, 3 * PAIRS), [None] * 12, PathOptions(8))
    assert len(seen) > 1


def test_what_was_computed_for_one_statistic_stays_when_another_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A GPU computes only what is asked for; a processor reads it, and computes all."""
    clf, data, store, swept = tiny_classifier(layers=2), made(6), Store(tmp_path), integration.sweep_groups
    sweeps = list[int]()

    def counted(*args: Any, **options: Any) -> Any:
        sweeps.append(1)
        return swept(*args, **options)

    def computed(statistic: str) -> bool:
        sweeps.clear()
        headviz.score_heads(clf, data, f"conductance-{statistic}", cache=store)
        return bool(sweeps)

    monkeypatch.setattr(integration, "sweep_groups", counted)
    with monkeypatch.context() as patched:
        as_there(patched)
        assert [computed(name) for name in ("spearman", "kendall", "spearman", "kendall")] == [True, True, False, False]
    assert [computed(name) for name in ("spearman", "kendall", "pearson", "max")] == [False, False, True, False]


@pytest.mark.slow
@pytest.mark.parametrize("score", EVERY_SCORE)
def test_values_are_the_processors(score: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many texts at once, with their padding left out, equal one after the other."""
    clf, data = tiny_classifier(layers=3), made(6)
    mask = HeadMask.full(3, 4).without([(0, 1), (2, 3)])

    def computed() -> list[Any]:
        rows = ("all", "influential") if score.startswith("conductance") else ()
        options = [{"rows": name} for name in rows] or [{}]
        return [headviz.score_heads(clf, data, score, mask=mask, cache=False, **o) for o in options]

    here = computed()
    as_there(monkeypatch)
    for one, other in zip(here, computed(), strict=True):
        np.testing.assert_allclose(other.values, one.values, atol=1e-5, rtol=1e-4)
        assert other.undefined == one.undefined


@pytest.mark.slow
def test_a_recorded_pass_has_the_values_of_the_plain_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorded here as a list of operations, which other texts and masks of the same width repeat."""
    clf, records, replayed = tiny_classifier(layers=3), dict[Any, Any](), list[int]()
    how = {"steps": 4, "precision": "float32", "cache": False}
    cases = [
        (text, mask)
        for mask in (
            None,
            HeadMask.full(3, 4).without([(0, 1), (1, 2)]),
            HeadMask.full(3, 4).without([(2, h) for h in range(4)]),
        )
        for text in ("dog", "the small dog runs", "a cat sees the red bird not the man", "no cat")
    ]

    def repeated(model: Any, key: Any, inputs: dict[str, Tensor], run: Any) -> list[Tensor]:
        whole = (key, *((name, t.shape) for name, t in inputs.items()))
        if whole not in records:
            records[whole] = make_fx(lambda *values: list(run(dict(zip(inputs, values, strict=True)))))(
                *(t.clone() for t in inputs.values())
            )
        replayed.append(1)
        with torch.no_grad():
            return [t.clone() for t in records[whole](*inputs.values())]

    plain = [headviz.conductance(clf, text, "a cat runs", mask=mask, **how) for text, mask in cases]
    as_there(monkeypatch)
    monkeypatch.setattr(integration, "repeated", repeated)
    for (text, mask), expected in zip(cases, plain, strict=True):
        result = headviz.conductance(clf, text, "a cat runs", mask=mask, **how)
        assert result.target == expected.target
        np.testing.assert_allclose(result.attention, expected.attention, atol=1e-5)
        size = np.nanmax(np.abs(expected.attribution))
        np.testing.assert_allclose(result.attribution, expected.attribution, atol=1e-4 * size)
        np.testing.assert_allclose(result.head_error, expected.head_error, atol=1e-4 * size, rtol=1e-3)
    assert len(replayed) == len(cases)
    assert len(records) == 2  # widths
