"""Masks applied per call: several threads, two dtypes, gates that differ. tests/models has every family."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import headviz
from headviz import HeadMask
from headviz.errors import MaskError
from support.tiny import PAIRS, TEXTS, tiny_classifier, tiny_model, tiny_tokenizer

MASK = HeadMask.full(3, 4).without([(0, 1), (1, 0), (1, 3), (2, 2)])


def batch_of(clf: headviz.Classifier) -> dict[str, torch.Tensor]:
    return clf.collate(clf.encode(TEXTS, PAIRS))


@pytest.mark.parametrize("family", ["bert", "albert", "modernbert"])
def test_bfloat16(family: str) -> None:
    model = tiny_model(family)
    half = headviz.wrap(model.bfloat16(), tiny_tokenizer(int(model.config.pad_token_id)))
    exact = tiny_classifier(family)
    batch = batch_of(exact)
    scale = exact.logits(batch, MASK).abs().max()
    assert half.dtype == torch.bfloat16
    assert torch.equal(half.logits(batch, HeadMask.full(3, 4)), half.logits(batch))
    assert (half.logits(batch, MASK) - exact.logits(batch, MASK)).abs().max() < 0.1 * scale


@pytest.mark.parametrize("family", ["bert", "albert"])
def test_threads_with_different_masks_are_bit_identical_to_running_alone(family: str) -> None:
    clf = tiny_classifier(family)
    batch = batch_of(clf)
    masks = [HeadMask.full(3, 4).without_random(k, seed=k) for k in range(13)] * 6
    alone = {mask: clf.logits(batch, mask) for mask in masks}
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda mask: clf.logits(batch, mask), masks))
    assert all(torch.equal(got, alone[mask]) for got, mask in zip(together, masks, strict=True))


def test_probabilities_are_those_of_transformers_eager_attention() -> None:
    model = tiny_model("bert")
    clf = headviz.wrap(model, tiny_tokenizer())
    batch = batch_of(clf)
    model.set_attn_implementation("eager")
    with torch.inference_mode():
        expected = model(**batch, output_attentions=True).attentions
        call = clf.call(keep_probs=True)
        clf.forward(batch, call)
    assert len(call.probs) == 3
    for ours, theirs in zip(call.probs, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=0)


def test_a_gate_may_differ_from_example_to_example() -> None:
    clf = tiny_classifier("bert")
    batch = batch_of(clf)
    masks = [HeadMask.full(3, 4).without_random(3, seed=i) for i in range(len(TEXTS))]
    gates = tuple(
        torch.stack([torch.tensor(m.array()[layer], dtype=torch.float32) for m in masks])[:, :, None, None]
        for layer in range(3)
    )
    call = clf.call()
    call.gates = gates
    with torch.inference_mode():
        mixed = clf.forward(batch, call)
    for i, mask in enumerate(masks):
        torch.testing.assert_close(mixed[i], clf.logits(batch, mask)[i], atol=1e-6, rtol=0)


def test_a_mask_of_another_grid() -> None:
    clf = tiny_classifier("bert")
    with pytest.raises(MaskError, match="12×12 heads, but 3×4 are needed"):
        clf.logits(batch_of(clf), HeadMask.full(12, 12))


def test_the_callers_model_is_left_alone() -> None:
    model = tiny_model("bert")
    before = {k: v.clone() for k, v in model.state_dict().items()}
    model.train()
    clf = headviz.wrap(model, tiny_tokenizer())
    clf.logits(batch_of(clf), MASK)
    assert model.training
    assert model.config._attn_implementation == "sdpa"
    assert all(p.requires_grad for p in model.parameters())
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
