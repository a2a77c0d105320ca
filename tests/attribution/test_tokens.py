"""Token attributions: completeness, the same path as conductance, nothing left behind."""

import numpy as np
import pytest
import torch

import headviz
from headviz import HeadMask
from headviz.attribution.walk import Walk
from headviz.errors import OptionError, TaskError
from support.marks import classifiers
from support.tiny import FAMILY_NAMES, PAIRS, TEXTS, tiny_classifier


@pytest.fixture(scope="module")
def clf():
    return tiny_classifier("bert")


@pytest.mark.parametrize("family", classifiers(FAMILY_NAMES))
def test_they_sum_to_the_change_of_the_logit(family):
    """Conductance of the embedding layer is complete: it sums to F(x) − F(x')."""
    check_complete(tiny_classifier(family), steps=100)


@pytest.mark.parametrize(("family", "config"), [("gemma", {}), ("mbart", {"scale_embedding": True})])
def test_they_sum_to_it_where_the_model_scales_its_embeddings(family, config):
    clf = tiny_classifier(family, layers=1, **config)
    words, seven = clf.model.get_input_embeddings(), torch.tensor([7])
    assert not torch.allclose(words(seven), words.weight[seven])
    check_complete(clf, steps=100)


def check_complete(clf, steps):
    result = headviz.token_attributions(clf, TEXTS[1], PAIRS[1], steps=steps)
    walk = Walk(clf, clf.encode(TEXTS[1:2], PAIRS[1:2]), [None], None)
    with torch.no_grad():
        ends = [clf.forward(walk.rows(x), clf.call())[0, result.target] for x in (walk.end, walk.start)]
    change = float(ends[0] - ends[1])
    assert result.total == pytest.approx(change, rel=0.02, abs=1e-3)
    assert result.error < 0.02
    assert result.tokens[0] == "[CLS]"
    assert all(v == 0 for v, special in zip(result.values, result.special, strict=True) if special)
    assert np.abs(result.values).max() > 0


def test_by_plain_integrated_gradients(clf):
    walk = Walk(clf, clf.encode(TEXTS[1:2], PAIRS[1:2]), [1], None)
    places = (torch.arange(200) + 0.5)[:, None, None] / 200
    x = (walk.start + places * (walk.end - walk.start)).requires_grad_(True)
    with torch.enable_grad():
        logits = clf.forward(walk.rows(x), clf.call(None, "eager"))[:, 1]
    mean = torch.autograd.grad(logits.sum(), x)[0].mean(dim=0)
    slow = ((walk.end - walk.start)[0] * mean).sum(dim=-1).numpy()
    result = headviz.token_attributions(clf, TEXTS[1], PAIRS[1], target=1)
    np.testing.assert_allclose(result.values, slow, atol=1e-3)


def test_masks_targets_and_pruned_models(clf):
    mask = HeadMask.full(3, 4).without([(0, 0), (1, 2)])
    masked = headviz.token_attributions(clf, TEXTS[1], PAIRS[1], mask=mask, target="neutral")
    pruned = headviz.token_attributions(headviz.prune(clf, mask), TEXTS[1], PAIRS[1], target="neutral")
    np.testing.assert_allclose(masked.values, pruned.values, atol=1e-5)
    assert masked.target_label == "neutral"
    full = headviz.token_attributions(clf, TEXTS[1], PAIRS[1], target="neutral")
    assert np.abs(masked.values - full.values).max() > 1e-3


def test_bad_input(clf):
    with pytest.raises(OptionError, match="at least 1"):
        headviz.token_attributions(clf, "a dog", "a cat", steps=0)
    with pytest.raises(TaskError, match="empty"):
        headviz.token_attributions(clf, "", "a cat")
    with pytest.raises(OptionError, match="one text"):
        headviz.token_attributions(clf, ["a dog"], ["a cat"])
