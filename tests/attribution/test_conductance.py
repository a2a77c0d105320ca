"""Conductance against a slow float64 integral, and against itself in other batches."""

import os
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

import headviz
from headviz import HeadMask
from headviz.attribution import conductance, integration
from headviz.attribution.conductance import Explainer
from headviz.attribution.integration import BUDGET, sweep
from headviz.attribution.rules import CAUTION, ENOUGH, TOLERANCE, PathOptions
from headviz.attribution.walk import ExampleMaps, Walk
from headviz.errors import MaskError, ModelError, OptionError, TaskError
from headviz.models.fast.linear import bfloat16_here
from headviz.storage.store import Store
from support import forked
from support.tiny import PAIRS, TEXTS, tiny_classifier, tiny_model


@pytest.fixture(scope="module")
def clf():
    return tiny_classifier("bert")


def one(clf, i=1, **options):
    return headviz.conductance(clf, TEXTS[i], PAIRS[i], **{"cache": False, **options})


def distance(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


# against the integral -----------------------------------------------------------------------------


def integral(clf, encoding, target, mask=None, nodes=24):
    """The definition in float64: Gauss-Legendre over ∂F/∂A · dA/da, the derivative by central differences."""
    walk = Walk(clf, [encoding], [target], mask)
    alphas, weights = np.polynomial.legendre.leggauss(nodes)
    total = [0.0] * clf.num_layers

    def run(a, grad):
        call = clf.call(mask, "eager", keep_probs=True)
        x = walk.start + a * (walk.end - walk.start)
        with torch.enable_grad():
            logits = clf.forward(walk.rows(x.requires_grad_(True)), call)
        if not grad:
            return [p.detach() for p in call.probs]
        return torch.autograd.grad(logits[0, target], call.probs)

    h = 1e-5
    for a, w in zip((alphas + 1) / 2, weights / 2, strict=True):
        gradients = run(a, True)
        above, below = run(a + h, False), run(a - h, False)
        for layer, g in enumerate(gradients):
            total[layer] = total[layer] + w * g[0] * (above[layer][0] - below[layer][0]) / (2 * h)
    return np.stack([t.numpy() for t in total])


@pytest.mark.parametrize(("family", "off"), [("bert", ((0, 1), (2, 3))), ("albert", ())])
def test_all_rules_approach_the_integral(family, off):
    clf = tiny_classifier(family)
    clf.model.double()
    mask = HeadMask.full(clf.num_layers, clf.num_heads).without(off)
    (encoding,) = clf.encode(TEXTS[1:2], PAIRS[1:2])
    exact = integral(clf, encoding, 1, mask)
    size = np.linalg.norm(exact)
    for rule, steps, bound in [("richardson", 64, 1e-4), ("trapezoid", 256, 1e-3), ("captum", 256, 0.02)]:
        result = sweep(clf, [encoding], [1], PathOptions(steps, rule), mask)[0]
        assert np.linalg.norm(result.attribution - exact) < bound * size, rule


def test_a_tolerance_refines_until_it_is_met(clf):
    rough = one(clf, steps=2)
    fine = one(clf, steps=2, tolerance=0.004)
    assert rough.error > 0.004 >= fine.error
    assert fine.steps > 2
    assert fine.notes == ()
    never = one(clf, steps=256, tolerance=1e-12)
    assert "above" in never.notes[0]


def test_a_flattering_estimate_does_not_pass_the_gate(clf):
    """What is told is 0 each time; only that doubling the steps still changes the maps gives it away."""
    asked = []

    def run(clf, encodings, targets, options, *_):
        asked.append(options.steps)
        value = {16: 1.0, 32: 1.5, 64: 1.51, 128: 1.51}[options.steps]
        maps = np.full((3, 4, 3, 3), value, np.float32)
        return [ExampleMaps(maps, maps, np.zeros((3, 4)), np.zeros(3, np.float32), 0) for _ in encodings]

    explainer = Explainer(clf, "conductance", run, None, BUDGET, None)
    maps = explainer.explain("a dog", "a cat", None, "predicted", PathOptions(16, "trapezoid"), tolerance=0.02)
    assert (maps.steps, asked, maps.notes) == (64, [16, 32, 64], ())
    asked.clear()
    explainer.explain("a dog", "a cat", None, "predicted", PathOptions(16))
    assert asked == [16]


def test_the_error_told_is_the_distance_from_half_the_steps(clf):
    fine, half = (one(clf, steps=n, budget=1) for n in (8, 4))
    change = (fine.attribution - half.attribution).astype(np.float64)
    np.testing.assert_allclose(fine.head_error, CAUTION * np.linalg.norm(change, axis=(2, 3)), rtol=2e-3, atol=1e-7)


def test_without_steps_they_are_doubled_until_the_error_is_small(clf):
    errors = {16: [0.05, 0.4, 0.3], 32: [None, 0.3, 0.08], 64: [None, 0.2, None], 128: [None, 0.15, None]}
    asked = []

    def run(clf, encodings, targets, options, *_):
        asked.append((options.steps, len(encodings)))
        result = []
        for e in encodings:
            maps = np.full((3, 4, len(e), len(e)), 1.0, np.float32)
            error = errors[options.steps][len(e) - 5] * np.linalg.norm(maps) / np.sqrt(12)
            result.append(ExampleMaps(maps, maps, np.full((3, 4), error), np.zeros(3, np.float32), 0))
        return result

    explainer = Explainer(clf, "conductance", run, None, BUDGET, None)
    texts = ["a", "a dog", "a small dog"]
    assert [len(e) for e in clf.encode(texts, ["dog"] * 3)] == [5, 6, 7]
    result = explainer.explain(texts, ["dog"] * 3, None, "predicted", PathOptions(16), TOLERANCE, ENOUGH)
    assert [maps.steps for maps in result] == [16, 128, 32]
    assert [len(maps.tokens) for maps in result] == [5, 6, 7]  # in the order of the texts
    assert asked == [(16, 3), (32, 2), (64, 1), (128, 1)]
    assert [bool(maps.notes) for maps in result] == [False, True, False]


def test_the_default_keeps_its_promise(clf):
    result = headviz.conductance(clf, TEXTS, PAIRS, cache=False)
    fine = headviz.conductance(clf, TEXTS, PAIRS, steps=128, cache=False)
    for maps, exact in zip(result, fine, strict=True):
        size = np.linalg.norm(exact.attribution)
        assert np.linalg.norm(maps.attribution - exact.attribution) / size <= maps.error <= TOLERANCE
    assert headviz.conductance(clf, TEXTS[0], PAIRS[0], steps=2, cache=False).steps == 2


def visits(monkeypatch):
    """How many points of the path each pass computes."""
    counted, point = [], Walk.point
    monkeypatch.setattr(Walk, "point", lambda walk, alphas: (counted.append(len(alphas)), point(walk, alphas))[1])
    return counted


@pytest.mark.parametrize(("rule", "off"), [("richardson", ((0, 1), (2, 3))), ("trapezoid", ())])
def test_doubling_the_steps_computes_only_the_points_between(clf, monkeypatch, rule, off):
    mask = HeadMask.full(clf.num_layers, clf.num_heads).without(off)
    told, progress = [], []
    monkeypatch.setattr(conductance, "MAX_STEPS", 64)
    monkeypatch.setattr(integration, "TOKENS_AT_ONCE", 200)
    counted = visits(monkeypatch)
    fine = one(
        clf,
        rule=rule,
        mask=mask,
        steps=4,
        tolerance=1e-9,
        rough=lambda maps: told.append(maps.steps),
        progress=lambda *at: progress.append(at),
    )
    assert (counted[:3], sum(counted)) == ([5, 4, 8], 65)
    assert max(counted) < 16  # the later ones in chunks
    assert told == [4, 8, 16, 32]
    assert [total for done, total in progress if done == total] == [n + 1 for n in (*told, 64)]
    plain = one(clf, rule=rule, mask=mask, steps=64)
    assert (fine.target, fine.tokens, fine.steps) == (plain.target, plain.tokens, 64)
    np.testing.assert_array_equal(fine.attention, plain.attention)
    np.testing.assert_allclose(fine.attribution, plain.attribution, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(fine.head_error, plain.head_error, rtol=1e-2, atol=1e-6)


def test_points_that_find_no_room_are_computed_anew(clf, monkeypatch):
    """A budget for a point at a time has no room; several texts that share a pass keep nothing."""
    monkeypatch.setattr(conductance, "MAX_STEPS", 16)
    counted = visits(monkeypatch)
    small = one(clf, steps=4, tolerance=1e-9, budget=1)
    assert sum(counted) == sum(n + 1 for n in (4, 8, 16))
    large = one(clf, steps=4, tolerance=1e-9)
    np.testing.assert_allclose(small.attribution, large.attribution, rtol=1e-4, atol=1e-7)


def test_points_of_the_cache_are_not_taken_for_visited(clf, monkeypatch, tmp_path):
    store = Store(tmp_path)
    one(clf, steps=4, cache=store)
    monkeypatch.setattr(conductance, "MAX_STEPS", 32)
    counted = visits(monkeypatch)
    fine = one(clf, steps=4, tolerance=1e-9, cache=store)
    assert counted == [9, 8, 16]
    np.testing.assert_allclose(fine.attribution, one(clf, steps=32).attribution, rtol=1e-4, atol=1e-7)


def test_several_texts_are_refined_as_one_by_one(clf):
    told = []
    many = headviz.conductance(clf, TEXTS, PAIRS, steps=4, tolerance=0.004, cache=False, rough=told.append)
    for i, result in enumerate(many):
        alone = one(clf, i, steps=4, tolerance=0.004)
        assert alone.steps == result.steps
        np.testing.assert_allclose(result.attribution, alone.attribution, rtol=1e-4, atol=1e-6)
    assert {maps.tokens for maps in told} <= {many[0].tokens}


# the definition's consequences --------------------------------------------------------------------


def test_the_last_layer_acts_through_the_first_row_only(clf):
    maps = one(clf)
    assert np.abs(maps.attribution[-1, :, 0]).max() > 0
    assert (maps.attribution[-1, :, 1:] == 0).all()
    assert (np.abs(maps.attribution[0]).max(axis=(0, 2)) > 0).all()


def test_attention_is_the_models_own(clf):
    maps = one(clf)
    np.testing.assert_allclose(maps.attention.sum(axis=-1), 1, rtol=1e-5)
    model = tiny_model("bert")
    model.set_attn_implementation("eager")
    batch = clf.collate(clf.encode(TEXTS[1:2], PAIRS[1:2]))
    with torch.no_grad():
        own = model(**batch, output_attentions=True)
    np.testing.assert_allclose(maps.attention, np.stack([a[0] for a in own.attentions]), atol=1e-6)
    np.testing.assert_allclose(maps.logits, own.logits[0], atol=1e-5)


@pytest.mark.parametrize("family", ["bert", "modernbert"])
def test_a_pruned_model_has_the_masked_models_maps(family):
    clf = tiny_classifier(family)
    mask = HeadMask.full(3, 4).without([(0, 1), (1, 0), (1, 1), (1, 2), (1, 3), (2, 2)])
    masked, pruned = one(clf, mask=mask), one(headviz.prune(clf, mask))
    kept = mask.array()
    for name in ("attention", "attribution"):
        a, b = getattr(masked, name), getattr(pruned, name)
        np.testing.assert_allclose(a[kept], b[kept], atol=3e-6)
        assert np.isnan(b[~kept]).all()
    assert (masked.attribution[~kept] == 0).all()
    assert masked.error == pytest.approx(pruned.error, rel=1e-3)


def test_the_target_is_the_class_predicted_under_the_mask(clf):
    full = one(clf)
    assert full.target == full.logits.argmax()
    for seed in range(40):
        mask = HeadMask.full(3, 4).without_random(6, seed)
        masked = one(clf, mask=mask)
        assert masked.target == masked.logits.argmax()
        if masked.target != full.target:
            return
    pytest.fail("no mask changed the prediction: the test shows nothing")


def test_targets_by_name_number_and_label(clf):
    by_number = one(clf, target=2)
    assert by_number.target_label == "contradiction"
    for same in ({"target": "contradiction"}, {"target": "gold", "label": 2}, {"target": "2"}):
        np.testing.assert_array_equal(one(clf, **same).attribution, by_number.attribution)
    assert distance(one(clf, target=0).attribution, by_number.attribution) > 0.1


# batches, chunks, padding, threads ----------------------------------------------------------------


@pytest.mark.parametrize("family", ["bert", "modernbert"])
def test_batch_order_padding_and_budget_do_not_matter(family):
    clf = tiny_classifier(family)
    how = {"steps": 8, "cache": False}
    together = headviz.conductance(clf, TEXTS, PAIRS, **how)
    backwards = headviz.conductance(clf, TEXTS[::-1], PAIRS[::-1], **how)[::-1]
    chunked = headviz.conductance(clf, TEXTS, PAIRS, **how, budget=1)
    for i, maps in enumerate(together):
        alone = one(clf, i, **how)
        size = np.abs(maps.attribution).max()
        for other in (alone, backwards[i], chunked[i]):
            np.testing.assert_allclose(other.attribution, maps.attribution, atol=2e-5 * size)
            np.testing.assert_allclose(other.attention, maps.attention, atol=3e-6)
            assert other.error == pytest.approx(maps.error, rel=1e-2)
            assert (other.tokens, other.target) == (maps.tokens, maps.target)


def test_progress_counts_every_point_once(clf):
    seen = []
    headviz.conductance(clf, TEXTS, PAIRS, steps=4, cache=False, budget=1, progress=lambda *at: seen.append(at))
    assert seen == [(n, 5 * len(TEXTS)) for n in range(5 * len(TEXTS) + 1)]  # the start is told, too


def test_chunks_do_not_change_captums_rule_either(clf):
    chunked, whole = (one(clf, rule="captum", steps=7, budget=budget).attribution for budget in (1, BUDGET))
    np.testing.assert_allclose(chunked, whole, atol=1e-6)


def test_bfloat16_is_close_enough_for_a_preview(clf):
    fine, fast = one(clf), one(clf, precision="bfloat16")
    apart = distance(fast.attribution, fine.attribution)
    assert apart < 0.1
    assert (apart > 0) == bfloat16_here(clf.device)


# bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"text": " "}, TaskError, "empty"),
        ({"pair": ""}, TaskError, "empty"),
        ({"text": "☃", "pair": "☃ ☃"}, TaskError, "has no word"),
        ({"text": "☃\u200d☃ "}, TaskError, "has no word of '☃☃ '"),  # without what joins them
        ({"text": "☃"}, TaskError, "has no word of '☃'"),  # although it knows the pair
        ({"pair": "☃ ☃"}, TaskError, "has no word of '☃ ☃'"),
        ({"text": "\u200b"}, TaskError, "left after tokenising"),
        ({"text": 3}, TaskError, "not int"),
        ({"text": None}, TaskError, "not NoneType"),
        ({"target": None}, OptionError, "no class None"),
        ({"target": [1]}, OptionError, "no class"),
        ({"target": True}, OptionError, "no class True"),
        ({"pair": None}, TaskError, "Give its pair"),
        ({"target": "maybe"}, OptionError, "entailment, neutral, contradiction"),
        ({"target": 3}, OptionError, "0 to 2"),
        ({"target": -1}, OptionError, "0 to 2"),
        ({"target": "gold"}, OptionError, "label"),
        ({"steps": 0}, OptionError, "from 1"),
        ({"steps": -4}, OptionError, "from 1"),
        ({"budget": 0}, OptionError, "at least 1 "),
        ({"steps": 2.5}, OptionError, "whole number"),
        ({"steps": 5}, OptionError, "use 6"),
        ({"rule": "simpson"}, OptionError, "richardson, trapezoid, captum"),
        ({"precision": "int8"}, OptionError, "float32, bfloat16"),
        ({"tolerance": 0}, OptionError, "0.02"),
        ({"mask": HeadMask.full(2, 2)}, MaskError, "2×2 heads"),
        ({"text": ["a", "b"], "pair": ["a"]}, TaskError, "2 texts but 1 pairs"),
        ({"text": []}, TaskError, "at least one"),
    ],
)
def test_bad_input_is_answered_in_one_line(clf, given, error, says):
    options = {"text": "a dog", "pair": "a cat", **given}
    with pytest.raises(error, match=says) as caught:
        headviz.conductance(clf, options.pop("text"), options.pop("pair"), cache=False, **options)
    assert "\n" not in str(caught.value)


def test_nan_weights_are_reported():
    clf = tiny_classifier("bert")
    clf.projections(1).value.weight.data[0, 0] = float("nan")
    with pytest.raises(ModelError, match="NaN"):
        one(clf)
    with pytest.raises(ModelError, match=r"'BertForSequenceClassification' has weights that are not finite.*value"):
        headviz.wrap(clf.model, clf.tokenizer)


# the cache ----------------------------------------------------------------------------------------


def test_a_second_call_reads_the_cache(clf, monkeypatch):
    first = one(clf, cache=True)
    monkeypatch.setattr(type(clf), "forward", lambda *_: pytest.fail("computed again"))
    again = one(clf, cache=True)
    for name in ("attention", "attribution", "logits", "head_error"):
        np.testing.assert_array_equal(getattr(again, name), getattr(first, name))
    for name in ("target", "error", "tokens", "steps", "mask", "rule"):
        assert getattr(again, name) == getattr(first, name)


def test_everything_that_matters_is_in_the_key(clf, tmp_path):
    store = Store(tmp_path / "store")
    masked = HeadMask.full(3, 4).without([(0, 0)])
    other = tiny_classifier("bert", seed=1)
    calls = [
        (clf, {}),
        (clf, {"steps": 8}),
        (clf, {"rule": "trapezoid"}),
        (clf, {"target": 0}),
        (clf, {"mask": masked}),
        (clf, {"precision": "bfloat16"}),
        (clf, {"i": 2}),
        (other, {}),
        (headviz.prune(clf, masked), {}),
    ]
    calls = [(c, {"steps": 4, **o}) for c, o in calls]
    kept = [one(c, cache=store, **o) for c, o in calls]
    assert store.usage().kinds == {"maps": len(calls)}
    for (c, o), maps in zip(calls, kept, strict=True):
        np.testing.assert_array_equal(one(c, **o).attribution, one(c, cache=store, **o).attribution)
        np.testing.assert_array_equal(maps.attribution, one(c, cache=store, **o).attribution)


def test_renaming_a_model_keeps_its_entries(clf, tmp_path):
    store = Store(tmp_path / "store")
    one(clf, cache=store)
    one(replace(clf, name="another name"), cache=store)
    assert store.usage().entries == 1
    one(clf, cache=store, mask=HeadMask.full(3, 4))  # the same as no mask
    assert store.usage().entries == 1


# memory -------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in other units elsewhere")
def test_a_third_of_bert_base_keeps_to_its_budget_with_512_tokens(tmp_path):
    running = forked.module("attribution.long_text", [], dict(os.environ), tmp_path / "log")
    running.wait(280)
    assert int((tmp_path / "log").read_text()) < 1.6 * 2**20  # KiB; 1.3 as a rule


# where steps stop to be doubled if none are asked for -----------------------------------------------


def test_steps_are_not_doubled_once_the_order_is_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = headviz.load("demo", device="cpu").tokenizer
    clf = headviz.wrap(tiny_model(vocab_size=len(tokenizer), spread=0.8), tokenizer)
    pair = "the small dog runs .", "the dog sleeps ."
    maps = headviz.conductance(clf, *pair, cache=False)
    assert maps.steps == 128  # neither is reached
    monkeypatch.setattr(conductance, "STABLE", 0.5)
    fewer = headviz.conductance(clf, *pair, cache=False)
    assert 32 <= fewer.steps < 128
    assert "rank correlation" in fewer.notes[0]
    assert headviz.conductance(clf, *pair, cache=False, tolerance=0.1).steps > 128  # who asks for an error gets it
