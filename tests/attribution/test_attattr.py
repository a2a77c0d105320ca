"""AttAttr against its definition, and against what the definition implies."""

import numpy as np
import pytest
import torch

import headviz
from headviz import HeadMask
from headviz.attribution import walk
from headviz.errors import OptionError
from headviz.models.fast.from_layer import starts_at_layers
from support.jobs import data_of, model_of
from support.tiny import PAIRS, TEXTS, tiny_classifier, worn_classifier


@pytest.fixture(scope="module")
def clf():
    return tiny_classifier("bert")


def one(clf, i=1, **options):
    return headviz.attattr(clf, TEXTS[i], PAIRS[i], **{"cache": False, **options})


def logits_with(clf, i, layer, factor, attention):
    """The logits when one layer's attention is a factor times its own."""
    batch = clf.collate(clf.encode([TEXTS[i]], [PAIRS[i]]))
    swap = torch.tensor(attention[layer])[None] * factor
    call = clf.call(None, "eager", edit_probs=lambda n, probs: swap if n == layer else probs)
    return clf.forward(batch, call)


@pytest.mark.parametrize("family", ["bert", "roberta", "albert", "modernbert"])
def test_a_layers_attributions_sum_to_what_its_attention_adds(family):
    """Scaling all heads of a layer from 0 to 1: the fundamental theorem."""
    clf = tiny_classifier(family)
    maps = one(clf, steps=32)
    for layer in range(3):
        with torch.no_grad():
            high, low = (logits_with(clf, 1, layer, f, maps.attention)[0, maps.target] for f in (1.0, 0.0))
        assert maps.attribution[layer].sum() == pytest.approx(float(high - low), abs=2e-3)


def test_of_the_probability_they_sum_to_what_the_attention_adds_to_it(clf):
    """The authors' code explains the probability; the logit's maps in the cache are others."""
    logit, maps = one(clf, steps=32, cache=True), one(clf, steps=32, of="probability", cache=True)
    for layer in range(3):
        with torch.no_grad():
            high, low = (logits_with(clf, 1, layer, f, maps.attention)[0].softmax(-1)[maps.target] for f in (1.0, 0.0))
        assert maps.attribution[layer].sum() == pytest.approx(float(high - low), abs=5e-4)
    assert np.abs(maps.attribution - logit.attribution).max() > 1e-4


def test_a_number_has_no_probability_to_explain():
    with pytest.raises(OptionError, match="no probability"):
        one(tiny_classifier("bert", num_labels=1), of="probability")


def test_against_many_midpoints(clf):
    maps = one(clf, steps=32)
    for layer in range(3):
        factors = ((torch.arange(200) + 0.5) / 200)[:, None, None, None]
        scaled = (torch.tensor(maps.attention[layer])[None] * factors).requires_grad_(True)
        call = clf.call(None, "eager", edit_probs=lambda n, p, s=scaled, at=layer: s if n == at else p)
        with torch.enable_grad():
            logits = clf.forward(clf.collate(clf.encode([TEXTS[1]] * 200, [PAIRS[1]] * 200)), call)
        gradients = torch.autograd.grad(logits[:, maps.target].sum(), scaled)[0]
        slow = maps.attention[layer] * gradients.mean(dim=0).numpy()
        np.testing.assert_allclose(maps.attribution[layer], slow, atol=2e-3 * np.abs(slow).max())


def test_the_published_rule_approaches_the_same(clf):
    fine = one(clf, steps=64).attribution
    errors = [np.linalg.norm(one(clf, rule="riemann", steps=n).attribution - fine) for n in (5, 20, 80)]
    assert errors[0] > errors[1] > errors[2]
    told = one(clf, rule="riemann", steps=20)
    assert told.error == pytest.approx(errors[1] / np.linalg.norm(fine), rel=0.5)


def test_batches_masks_pruning_and_the_cache(clf):
    together = headviz.attattr(clf, TEXTS[:2], PAIRS[:2], steps=4, cache=False)
    for i, maps in enumerate(together):
        size = np.abs(maps.attribution).max()
        np.testing.assert_allclose(one(clf, i, steps=4, budget=1).attribution, maps.attribution, atol=2e-5 * size)
    mask = HeadMask.full(3, 4).without([(0, 1), (1, 0), (1, 1), (1, 2), (1, 3)])
    masked, pruned = one(clf, mask=mask, steps=4), one(headviz.prune(clf, mask), steps=4)
    kept = mask.array()
    np.testing.assert_allclose(masked.attribution[kept], pruned.attribution[kept], atol=3e-6)
    assert (masked.attribution[~kept] == 0).all()
    assert np.isnan(pruned.attribution[~kept]).all()
    first, again = (one(clf, steps=4, cache=True).attribution for _ in range(2))
    np.testing.assert_array_equal(first, again)


MASK = HeadMask.full(3, 4).without([(0, 1), (1, 0), (1, 3), (2, 2)])


@pytest.mark.parametrize(
    ("family", "texts"),
    [
        *(("bert", slice(0, 4)), ("mpnet", slice(0, 4)), ("electra", slice(0, 4)), ("distilbert", slice(0, 4))),
        *(("modernbert", slice(1, 2)), ("deberta-v2", slice(1, 2))),  # no padding there
    ],
)
@pytest.mark.parametrize("mask", [None, MASK])
def test_a_pass_that_starts_at_the_scaled_layer_gives_the_maps_of_whole_passes(family, texts, mask, monkeypatch):
    clf = worn_classifier(family)
    assert starts_at_layers(clf, clf.encode(TEXTS[texts], PAIRS[texts]))
    agree(clf, (TEXTS[texts], PAIRS[texts]), monkeypatch, mask=mask)


@pytest.mark.parametrize("job", ["tokens", "span"])
def test_so_do_jobs_whose_answers_stand_at_several_tokens(job, monkeypatch):
    data = data_of(job)
    agree(model_of(job), (data.texts[:3], data.pairs and data.pairs[:3]), monkeypatch)


def agree(clf, texts, monkeypatch, **options):
    """Maps of passes that start at the scaled layer against those of whole passes."""
    fast = headviz.attattr(clf, *map(list_of, texts), steps=4, cache=False, **options)
    with monkeypatch.context() as patched:
        patched.setattr(walk, "starts_at_layers", lambda clf, encodings: False)
        slow = headviz.attattr(clf, *map(list_of, texts), steps=4, cache=False, **options)
    for one, other in zip(fast, slow, strict=True):
        assert np.abs(other.attribution).max() > 1e-4
        for name in ("attribution", "attention", "head_error", "logits"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-6, rtol=1e-5)


def list_of(texts):
    return None if texts is None else list(texts)


def test_layers_below_the_scaled_one_run_once(clf, monkeypatch):
    layers, runs = list(clf.module("encoder.layer")), [0, 0, 0]
    kind = type(layers[0])
    forward = kind.forward

    def counted(module, *args, **keywords):
        runs[layers.index(module)] += 1
        return forward(module, *args, **keywords)

    monkeypatch.setattr(kind, "forward", counted)
    one(clf, steps=4)  # one chunk of points for each layer
    assert runs == [2, 3, 4]
    one(clf, steps=4, budget=1)  # five chunks
    assert [again - first for again, first in zip(runs, [2, 3, 4], strict=True)] == [6, 11, 16]


def test_what_cannot_start_at_a_layer(clf):
    """Padding for a family without a mask for it, a family of which only the attention is known, a causal mask."""
    modern = tiny_classifier("modernbert")
    assert not starts_at_layers(modern, modern.encode(TEXTS, PAIRS))
    for other in (tiny_classifier("deberta"), tiny_classifier("llama"), tiny_classifier("bert", is_decoder=True)):
        assert not starts_at_layers(other, other.encode(TEXTS[:1]))
    assert starts_at_layers(clf, clf.encode(TEXTS, PAIRS))


@pytest.mark.parametrize(
    ("given", "says"), [({"steps": 0}, "from 1"), ({"steps": 3}, "use 4"), ({"rule": "captum"}, "simpson, riemann")]
)
def test_bad_options(clf, given, says):
    with pytest.raises(OptionError, match=says):
        one(clf, **given)
