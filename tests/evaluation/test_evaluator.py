"""The evaluator gives plain evaluation's logits, whatever it reuses."""

import copy
import dataclasses
import json
import random
import threading
from collections.abc import Callable

import numpy as np
import pytest
import torch

import headviz
from headviz import HeadMask
from headviz.analyses.catalogue import ANALYSES
from headviz.errors import Cancelled, ModelError, OptionError, TaskError
from headviz.evaluation.evaluator import Evaluator, EvaluatorOptions
from headviz.evaluation.state_cache import plan
from headviz.models.fast import linear, packing, stages
from headviz.models.fast.linear import bfloat16_here
from headviz.models.fast.packing import pack
from headviz.models.fast.stages import stages_for
from headviz.tasks import Dataset
from headviz.tasks.catalogue import get_task
from support.plain import evaluate
from support.scored_data import made
from support.tiny import PRUNABLE, WORDS, worn_classifier
from support.together import together

CLOSE = {"rtol": 0, "atol": 1e-5}


def some_data(n: int = 40, seed: int = 0) -> Dataset:
    rng = random.Random(seed)

    def text() -> str:
        return " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 14)))

    return Dataset(
        get_task("mnli"),
        "dev",
        tuple(text() for _ in range(n)),
        tuple(text() for _ in range(n)),
        np.array([rng.randrange(3) for _ in range(n)]),
        slices=tuple(rng.choice(("fiction", "letters")) for _ in range(n)),
        slice_name="genre",
    )


def random_mask(rng: random.Random, layers: int, heads: int) -> HeadMask:
    return HeadMask.full(layers, heads).without_random(rng.randint(0, layers * heads), seed=rng.random())


def test_changed_weights_are_refused_not_mixed_with_what_was_kept() -> None:
    clf, data = worn_classifier(layers=2), some_data(8)
    evaluator, mask = Evaluator(clf, data), clf.full_mask.without([(1, 0)])
    evaluator.compare(mask)
    with torch.no_grad():
        next(clf.model.parameters()).mul_(2)
    for ask in (
        evaluator.evaluate,
        evaluator.predictions,
        evaluator.compare,
        lambda m: headviz.ablate(evaluator, base=m),
    ):
        with pytest.raises(ModelError, match="Make a new evaluator"):
            ask(mask)
    assert np.allclose(Evaluator(clf, data).evaluate(mask).logits, evaluate(clf, data, mask).logits, **CLOSE)


def test_many_random_masks() -> None:
    clf, data, rng = worn_classifier(layers=4, spread=0.15), some_data(8), random.Random(2)
    evaluator = Evaluator(clf, data, EvaluatorOptions(chunk_tokens=60))
    for _ in range(40):
        mask = random_mask(rng, 4, 4)
        np.testing.assert_allclose(evaluator.evaluate(mask).logits, evaluate(clf, data, mask).logits, **CLOSE)


@pytest.mark.parametrize(
    ("family", "spread"), [("bert", 1.0), ("distilbert", 1.25), ("albert", 1.25), ("mpnet", 100.0)]
)
def test_texts_of_similar_length_padded_as_on_a_gpu(
    family: str, spread: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There one batch for each length would be hundreds of small kernels."""
    clf, data, rng, seen = worn_classifier(family, spread=0.15), some_data(), random.Random(3), []
    gpu = torch.device("cuda")

    def there(chunk: packing.Chunk, device: torch.device, dtype: torch.dtype) -> packing.Placed:
        groups = tuple(packing._padded(chunk.groups, device, dtype))
        seen.append((len(chunk.groups), len(groups)))
        return dataclasses.replace(packing.placed(chunk, device, dtype), groups=groups)

    monkeypatch.setattr(packing, "UNEVEN", spread)
    monkeypatch.setattr(linear, "SHORT", 0)  # the kernel that a GPU takes at any length
    monkeypatch.setattr(stages, "placed", there)
    evaluator = Evaluator(clf, data, EvaluatorOptions(chunk_tokens=150))
    for mask in (None, *(random_mask(rng, 3, 4) for _ in range(6))):
        np.testing.assert_allclose(evaluator.evaluate(mask).logits, evaluate(clf, data, mask).logits, **CLOSE)
    assert sum(few < many for many, few in seen) == (0 if spread == 1 else len(seen))
    assert spread < 100 or {few for _, few in seen} == {1}
    assert EvaluatorOptions().tokens_at_once(gpu) > EvaluatorOptions().tokens_at_once(clf.device)
    assert EvaluatorOptions(chunk_tokens=7).tokens_at_once(gpu) == 7


@pytest.mark.parametrize("family", PRUNABLE)
def test_really_pruned_models_and_empty_layers(family: str) -> None:
    clf, data = worn_classifier(family, spread=0.15), some_data()
    gone = HeadMask.full(3, 4).without([(0, 1), *((1, h) for h in range(4)), (2, 3)])
    small = headviz.prune(clf, gone)
    evaluator = Evaluator(small, data)
    for extra in ([], [(0, 0)], [(2, 0)], [(1, 1)], [(2, h) for h in range(4)]):
        mask = gone.without(extra)
        np.testing.assert_allclose(evaluator.evaluate(mask).logits, evaluate(clf, data, mask).logits, **CLOSE)


def test_masking_a_removed_head_is_the_same_mask() -> None:
    clf, data = worn_classifier(), some_data()
    small = headviz.prune(clf, HeadMask.full(3, 4).without([(1, 1)]))
    evaluator = Evaluator(small, data)
    first = evaluator.evaluate()
    again = evaluator.evaluate(HeadMask.full(3, 4).without([(1, 1)]))
    assert again.logits is first.logits


@pytest.mark.parametrize("activation", ["gelu_new", "relu"])
def test_other_activations(activation: str) -> None:
    clf, data = worn_classifier(hidden_act=activation, spread=0.15), some_data()
    mask = HeadMask.full(3, 4).without([(1, 2)])
    np.testing.assert_allclose(Evaluator(clf, data).evaluate(mask).logits, evaluate(clf, data, mask).logits, **CLOSE)


@pytest.mark.parametrize(("name", "value"), [("SHORT", 4), ("_onednn", lambda: None)], ids=["long texts", "no onednn"])
def test_other_kernels(name: str, value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    clf, data = worn_classifier(spread=0.15), some_data()
    expected = evaluate(clf, data).logits
    monkeypatch.setattr(linear, name, value)
    np.testing.assert_allclose(Evaluator(clf, data).evaluate().logits, expected, **CLOSE)


def test_only_layers_that_a_mask_can_change_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    clf, data = worn_classifier(layers=4), some_data()
    evaluator = Evaluator(clf, data, EvaluatorOptions(chunk_tokens=10**6))
    seen: list[tuple[str, int]] = []
    stages = evaluator._stages
    for name in ("context", "finish"):
        original: Callable = getattr(stages, name)

        def spy(layer: int, *args: object, name: str = name, original: Callable = original) -> torch.Tensor:
            seen.append((name, layer))
            return original(layer, *args)

        monkeypatch.setattr(stages, name, spy)
    full = HeadMask.full(4, 4)

    def work(mask: HeadMask) -> list[tuple[str, int]]:
        seen.clear()
        evaluator.evaluate(mask)
        return list(seen)

    assert len(work(full)) == 8
    assert work(full.without([(2, 1)])) == [("finish", 2), ("context", 3), ("finish", 3)]
    assert work(full.without([(3, 1)])) == [("finish", 3)]
    assert work(full.without([(2, 1)])) == []
    # a mask built on the one before starts where they differ, not at the full model
    assert work(full.without([(2, 1), (3, 0)])) == [("finish", 3)]


def test_a_sweep_leaves_only_the_full_models_states() -> None:
    clf, data = worn_classifier(layers=4), some_data()
    evaluator = Evaluator(clf, data)
    evaluator.evaluate()
    held = evaluator._cache.held
    for head in range(4):
        evaluator.evaluate(HeadMask.full(4, 4).without([(1, head)]), keep=False)
    assert evaluator._cache.held == held


def test_tight_budgets_keep_evenly_spaced_layers() -> None:
    keep = plan(budget=0, layers=12, state=100, context=100, first_only=True)
    assert keep.states == frozenset()
    assert plan(6 * 100, 12, 100, 100, True).states == frozenset({3, 6, 8})
    roomy = plan(22 * 100, 12, 100, 100, True)
    assert roomy.states == frozenset(range(11))
    assert roomy.contexts == frozenset()
    assert plan(10**9, 12, 100, 100, True).all_contexts


@pytest.mark.slow
def test_memory_stays_under_its_budget_and_is_really_used() -> None:
    clf, data, rng = worn_classifier(layers=4), some_data(60), random.Random(3)
    for budget in (10_000, 100_000, 400_000, 4_000_000):
        evaluator = Evaluator(clf, data, EvaluatorOptions(budget=budget))
        for _ in range(12):
            evaluator.evaluate(random_mask(rng, 4, 4))
            held = sum(
                tensor.element_size() * tensor.nelement()
                for entry in evaluator._cache._entries.values()
                for pair in entry.value
                for tensor in pair
                if tensor is not None
            )
            assert held <= evaluator._cache.held <= evaluator.memory <= budget
    assert evaluator.memory > 400_000


@pytest.mark.slow
def test_four_threads_with_different_masks() -> None:
    clf, data = worn_classifier(layers=4, spread=0.15), some_data(16)
    evaluator = Evaluator(clf, data, EvaluatorOptions(budget=100_000, chunk_tokens=60))
    rng = random.Random(4)
    lists = [[random_mask(rng, 4, 4) for _ in range(3)] for _ in range(4)]
    expected = [[evaluate(clf, data, m).logits for m in masks] for masks in lists]
    result: list[list[np.ndarray]] = [[] for _ in lists]
    start = threading.Barrier(4)

    def work(number: int) -> None:
        start.wait()
        for mask in lists[number]:
            result[number].append(evaluator.evaluate(mask).logits)

    together(4, work)
    for mine, theirs in zip(result, expected, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(a, b, **CLOSE)
    assert evaluator.memory <= 100_000
    assert all(entry.users == 0 for entry in evaluator._cache._entries.values())


def test_cancelling_leaves_nothing_behind() -> None:
    clf, data = worn_classifier(), some_data()
    evaluator = Evaluator(clf, data, EvaluatorOptions(chunk_tokens=100))
    calls = iter(range(100))
    with pytest.raises(Cancelled):
        evaluator.evaluate(cancel=lambda: next(calls) >= 2)
    assert evaluator.memory == 0
    np.testing.assert_allclose(evaluator.evaluate().logits, evaluate(clf, data).logits, **CLOSE)


def test_making_an_evaluator_can_be_stopped_while_it_encodes_the_texts() -> None:
    clf, data = worn_classifier(), some_data(3000)
    asked = iter(range(100))
    with pytest.raises(Cancelled):
        headviz.evaluator_of(clf, data, cancel=lambda: next(asked) >= 1)
    assert next(asked) == 2


def test_results_are_handed_out_read_only() -> None:
    evaluator = Evaluator(worn_classifier(), some_data())
    with pytest.raises(ValueError, match="read-only"):
        evaluator.evaluate().logits[0, 0] = 1.0


def test_comparison_of_a_mask() -> None:
    clf, data = worn_classifier(), some_data()
    evaluator = Evaluator(clf, data)
    mask = HeadMask.full(3, 4).without([(0, 0), (1, 3)])
    result = evaluator.compare(mask)
    full, masked = evaluate(clf, data), evaluate(clf, data, mask)
    assert result.primary.full == full.metrics["accuracy"]
    assert result.primary.masked == masked.metrics["accuracy"]
    assert {d.name for d in result.slices} == {"fiction", "letters"}
    assert result.flips is not None
    np.testing.assert_array_equal(
        result.flips.worse, np.flatnonzero((full.predictions == full.gold) & (masked.predictions != full.gold))
    )
    same = evaluator.compare(HeadMask.full(3, 4))
    assert (same.primary.p_value, same.primary.delta) == (1.0, 0.0)
    assert same.primary.interval_low == -same.primary.interval_high < 0  # no flip is no proof of no loss


@pytest.mark.skipif(not bfloat16_here(torch.device("cpu")), reason="this processor has no bfloat16")
def test_bfloat16_says_how_far_it_agrees() -> None:
    clf, data = worn_classifier(spread=0.1), some_data()
    evaluator = Evaluator(clf, data, EvaluatorOptions(precision="bfloat16"))
    result = evaluator.agreement(HeadMask.full(3, 4).without([(1, 1)]))
    exact = evaluate(clf, data, HeadMask.full(3, 4).without([(1, 1)]))
    rough = evaluator.evaluate(HeadMask.full(3, 4).without([(1, 1)]))
    assert result.same == int((exact.predictions == rough.predictions).sum())
    assert result.largest == pytest.approx(float(np.abs(exact.logits - rough.logits).max()), abs=1e-5)
    assert 0 < result.largest < 0.3
    assert result.share > 0.8


def test_every_comparison_names_its_precision() -> None:
    exact, data, mask = worn_classifier(), some_data(), HeadMask.full(3, 4).without([(1, 1)])
    for dtype, name in ((torch.float32, "float32"), (torch.bfloat16, "bfloat16")):
        clf = dataclasses.replace(exact, model=copy.deepcopy(exact.model).to(dtype))
        evaluator = Evaluator(clf, data)
        steps = [step.comparison for step in evaluator.growing(mask)]
        assert {c.precision for c in (*steps, evaluator.compare(mask))} == {name}
        assert json.loads(evaluator.compare(mask).to_json())["precision"] == name
        about = dict(ANALYSES["ablation"].view(headviz.ablate(evaluator)).about)
        assert about.get("computed in", "float32") == name


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_models_of_other_precisions(dtype: torch.dtype) -> None:
    exact, data = worn_classifier(spread=0.1), some_data()
    clf = dataclasses.replace(exact, model=copy.deepcopy(exact.model).to(dtype))
    mask = HeadMask.full(3, 4).without([(1, 1)])
    evaluator = Evaluator(clf, data)
    assert evaluator.precision == str(dtype).removeprefix("torch.")
    loose = {torch.bfloat16: 0.2, torch.float16: 0.03, torch.float64: 1e-5}[dtype]
    result = evaluator.evaluate(mask).logits
    np.testing.assert_allclose(result, evaluate(exact, data, mask).logits, rtol=0, atol=loose)
    agreement = evaluator.agreement(mask)
    assert agreement.largest < loose
    assert (agreement.largest > 1e-4) == (dtype != torch.float64)


def test_bad_options_are_answered() -> None:
    with pytest.raises(OptionError, match="bfloat16"):
        EvaluatorOptions(precision="bf16")
    with pytest.raises(OptionError, match="budget"):
        EvaluatorOptions(budget=-1)
    with pytest.raises(TaskError, match="no examples"):
        Evaluator(worn_classifier(), some_data().subset([]))


def test_packing_covers_every_text_once_without_padding() -> None:
    rng = random.Random(0)
    lengths = [rng.randint(1, 40) for _ in range(200)]
    chunks = pack(lengths, 300)
    assert sorted(i for c in chunks for i in c.index) == list(range(200))
    assert sum(c.tokens for c in chunks) == sum(lengths)
    assert max(c.tokens for c in chunks) < 2 * 300
    for chunk in chunks:
        for g in chunk.groups:
            assert {lengths[i] for i in chunk.index[g.first : g.first + g.count]} == {g.length}
            assert g.stop - g.start == g.count * g.length
    assert [c.index for c in pack([5, 3], 1)] == [(1,), (0,)]


def test_modernbert_refuses_bfloat16() -> None:
    clf = worn_classifier("modernbert")
    with pytest.raises(headviz.UserError, match="float32 only"):
        Evaluator(clf, some_data(), EvaluatorOptions(precision="bfloat16"))
    with pytest.raises(ValueError, match="own precision"):
        stages_for(clf, torch.bfloat16)


@pytest.mark.parametrize("family", ["bert", "distilbert", "modernbert"])
def test_models_without_some_feed_forward_blocks_and_layers(family: str) -> None:
    from headviz.extras.distillation.layer_removal import remove
    from headviz.extras.distillation.removal import Removal

    data = some_data()
    clf = remove(worn_classifier(family, layers=4, spread=0.15), Removal.parse("ffn:1+layers:2")).student
    evaluator = Evaluator(clf, data)
    for off in ([], [(1, 2)], [(2, 0), (0, 1)]):
        mask = HeadMask.full(3, 4).without(off)
        np.testing.assert_allclose(evaluator.evaluate(mask).logits, evaluate(clf, data, mask).logits, **CLOSE)


def test_a_regression_without_heads_follows_nothing() -> None:
    """Its answers differ in the last bits, by the batch, and so by the length of a text."""
    clf = worn_classifier(labels=("score",), layers=2)
    data = made(39, seed=3, task="stsb")
    lengths = np.array([len(e) for e in clf.encode(data.texts, data.pairs)], dtype=float)
    data = Dataset(data.task, "dev", data.texts, data.pairs, lengths)
    none = clf.full_mask.inverted()
    assert np.ptp(headviz.evaluate(clf, data, mask=none).logits) > 0
    assert set(headviz.evaluate(clf, data, mask=none).metrics.values()) == {0.0}
    compared = Evaluator(clf, data).compare(none).primary
    assert (compared.masked, compared.undefined) == (0.0, "")
    assert compared.interval_low < compared.delta < compared.interval_high
