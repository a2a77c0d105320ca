"""Where steps stop to be doubled if none are asked for."""

from __future__ import annotations

import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification

import headviz
from headviz.attribution import conductance as module


def test_steps_are_not_doubled_once_the_order_is_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = headviz.load("demo", device="cpu").tokenizer
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=64,
        initializer_range=0.8,
    )
    clf = headviz.wrap(BertForSequenceClassification(config).eval(), tokenizer)
    pair = "the small dog runs .", "the dog sleeps ."
    maps = headviz.conductance(clf, *pair, cache=False)
    assert maps.steps == 128  # neither is reached
    monkeypatch.setattr(module, "STABLE", 0.5)
    fewer = headviz.conductance(clf, *pair, cache=False)
    assert 32 <= fewer.steps < 128
    (note,) = fewer.notes
    assert "rank correlation 0." in note
    assert f"{fewer.error:.1%}" in note
    assert "tolerance=0.1" in note
    assert headviz.conductance(clf, *pair, cache=False, tolerance=0.1).steps > 128  # who asks for an error gets it
