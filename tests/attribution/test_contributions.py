"""What each head itself adds to the class scores: the sum, a literal walk forward, and ablation."""

from typing import Any

import numpy as np
import pytest
import torch

import headviz
from headviz import UserError
from headviz.models.families import FAMILIES
from support.tiny import tiny_classifier, tiny_model, tiny_tokenizer

TEXT, PAIR = "a dog sleeps .", "the red cat sees two birds in the garden"
POST_NORM = tuple(name for name, family in FAMILIES.items() if family.post_norm is not None)


@pytest.mark.parametrize("family", POST_NORM)
def test_the_parts_sum_to_the_scores(family: str) -> None:
    clf = tiny_classifier(family)
    for off in ([], [(0, 1), (2, 0), (2, 1), (2, 2), (2, 3)]):
        mask = clf.full_mask.without(off)
        result = headviz.contributions(clf, TEXT, PAIR, mask=mask)
        logits = clf.logits(clf.collate(clf.encode([TEXT], [PAIR])), mask)[0].numpy()
        np.testing.assert_allclose(result.total, logits, atol=1e-5)
        assert all((result.heads[h] == 0).all() for h in off)
        assert sum(v for _, v in result.parts()) == pytest.approx(float(logits.max()), abs=1e-5)


def test_a_head_equals_a_literal_walk() -> None:
    """BERT: a head's output is carried up through layer norms with the scale that they had, by hooks."""
    clf, model = tiny_classifier(), tiny_model().double()
    batch = clf.collate(clf.encode([TEXT], [PAIR]))
    seen: dict[Any, torch.Tensor] = {}
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.LayerNorm) or name.endswith("attention.output.dense"):
            module.register_forward_hook(lambda m, given, out, name=name: seen.__setitem__(name, given[0][0, 0]))
    with torch.no_grad():
        model(**batch)

    def through(name: str, vector: torch.Tensor) -> torch.Tensor:
        norm, state = model.get_submodule(name), seen[name]
        return norm.weight * (vector - vector.mean()) / torch.sqrt(state.var(unbiased=False) + norm.eps)

    result = headviz.contributions(clf, TEXT, PAIR)
    for layer, head in ((0, 1), (1, 3), (2, 2)):
        path = f"bert.encoder.layer.{layer}.attention.output.dense"
        at = slice(head * 8, (head + 1) * 8)
        vector = model.get_submodule(path).weight[:, at] @ seen[path][at]
        for above in range(layer, 3):
            vector = through(f"bert.encoder.layer.{above}.attention.output.LayerNorm", vector)
            vector = through(f"bert.encoder.layer.{above}.output.LayerNorm", vector)
        pooler, state = (
            model.bert.pooler.dense,
            model.bert.encoder(model.bert.embeddings(batch["input_ids"], batch["token_type_ids"])).last_hidden_state[
                0, 0
            ],
        )
        empty, whole = pooler.bias, pooler(state)
        slope = (torch.tanh(whole) - torch.tanh(empty)) / (whole - empty)
        wanted = model.classifier.weight @ (slope * (pooler.weight @ vector))
        np.testing.assert_allclose(result.heads[layer, head], wanted.detach().numpy(), atol=1e-5)


@pytest.mark.parametrize("family", ["bert", "distilbert", "mpnet"])
def test_what_a_head_reads_and_writes(family: str) -> None:
    """The tokens' shares sum to the head's contribution; the attention is the model's own."""
    clf = tiny_classifier(family)
    with torch.no_grad():
        for name, weights in clf.model.named_parameters():
            if "relative_attention_bias" in name:
                weights.mul_(20)  # random ones are too small to be missed
    mask = clf.full_mask.without([(0, 1)])
    result = headviz.contributions(clf, TEXT, PAIR, mask=mask)
    call = clf.call(mask, "eager", keep_probs=True)
    with torch.no_grad():
        clf.forward(clf.collate(clf.encode([TEXT], [PAIR])), call)
    for h in ((0, 0), (1, 2), (2, 3)):
        one = headviz.head_reading(clf, TEXT, PAIR, h, mask=mask)
        np.testing.assert_allclose(one.scores.sum(axis=0), result.heads[h], atol=1e-8)
        np.testing.assert_allclose(one.attention, call.probs[h[0]][0, h[1]].numpy(), atol=1e-5)
    with pytest.raises(UserError, match=r"Head 0\.1 is off"):
        headviz.head_reading(clf, TEXT, PAIR, "0.1", mask=mask)


def test_half_precision_is_its_weights_in_float32() -> None:
    dtype = torch.bfloat16
    half, full = (headviz.wrap(tiny_model().to(dtype).to(to), tiny_tokenizer()) for to in (dtype, torch.float32))
    result, wanted = (headviz.contributions(clf, TEXT, PAIR) for clf in (half, full))
    np.testing.assert_array_equal(result.heads, wanted.heads)
    np.testing.assert_array_equal(result.ablation, wanted.ablation)
    np.testing.assert_allclose(result.total, result.logits, atol=1e-5)
    np.testing.assert_allclose(result.logits, half.logits(half.collate(half.encode([TEXT], [PAIR])))[0], atol=0.05)
    one, other = (headviz.head_reading(clf, TEXT, PAIR, "1.2") for clf in (half, full))
    np.testing.assert_array_equal(one.scores, other.scores)
    assert half.dtype == dtype
