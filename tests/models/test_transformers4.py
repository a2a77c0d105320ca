"""The old helper functions give what transformers 4 gave, and together they remove heads as headviz does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from headviz.transformers4 import find_pruneable_heads_and_indices, get_head_mask, prune_heads, prune_linear_layer
from support.tiny import tiny_classifier

RECORDED = json.loads((Path(__file__).parents[1] / "recorded" / "transformers_4" / "helpers.json").read_text())


@pytest.mark.parametrize("case", RECORDED["find"], ids=lambda case: str(case["given"]))
def test_heads_and_indices_are_those_of_transformers_4(case):
    heads, n_heads, size, gone = case["given"]
    left, index = find_pruneable_heads_and_indices(heads, n_heads, size, set(gone))
    assert (sorted(left), index.tolist(), index.dtype) == (case["heads"], case["index"], torch.long)


@pytest.mark.parametrize("case", RECORDED["linear"], ids=lambda case: f"{case['dim']} {case['index']}")
def test_a_pruned_linear_layer_is_that_of_transformers_4(case):
    layer = torch.nn.Linear(4, 3, bias=case["bias"] is not None)
    layer.weight.data = torch.arange(12.0).view(3, 4)
    if layer.bias is not None:
        layer.bias.data = torch.arange(3.0)
    before = layer.weight.clone()
    new = prune_linear_layer(layer, torch.tensor(case["index"], dtype=torch.long), case["dim"])
    assert new.weight.tolist() == case["weight"]
    assert new.weight.requires_grad
    assert (None if new.bias is None else new.bias.tolist()) == case["bias"]
    assert (new.out_features, new.in_features) == tuple(new.weight.shape)
    assert torch.equal(layer.weight, before)


def test_a_pruned_linear_layer_keeps_its_precision():
    new = prune_linear_layer(torch.nn.Linear(4, 3).bfloat16(), torch.tensor([0]))
    assert new.weight.dtype == new.bias.dtype == torch.bfloat16


@pytest.mark.parametrize("case", RECORDED["masks"], ids=lambda case: str(case["shape"]))
def test_a_head_mask_has_the_shape_of_transformers_4(case):
    model = torch.nn.Linear(1, 1)
    model.dtype = torch.float32
    mask = None if case["mask"] is None else torch.tensor(case["mask"])
    out = get_head_mask(model, mask, 3, case["chunked"])
    if mask is None:
        assert out == case["values"]
        return
    assert list(out.shape) == case["shape"]
    assert out.dtype == torch.float32
    assert out.flatten().tolist() == case["values"]


def test_old_code_removes_the_heads_that_headviz_removes():
    """The method of transformers 4, written with the old functions, on one layer; ``prune_heads`` on another copy."""
    by_hand, ours = tiny_classifier().model, tiny_classifier().model
    attention = by_hand.bert.encoder.layer[0].attention
    size = attention.self.attention_head_size
    heads, index = find_pruneable_heads_and_indices([1], attention.self.num_attention_heads, size, set())
    for name in ("query", "key", "value"):
        setattr(attention.self, name, prune_linear_layer(getattr(attention.self, name), index))
    attention.output.dense = prune_linear_layer(attention.output.dense, index, dim=1)
    attention.self.num_attention_heads -= len(heads)
    attention.self.all_head_size = attention.self.num_attention_heads * size
    prune_heads(ours, {0: [1]})
    ids = torch.tensor([[2, 5, 6, 3]])
    with torch.no_grad():
        assert torch.allclose(by_hand(ids).logits, ours(ids).logits, atol=1e-6)
