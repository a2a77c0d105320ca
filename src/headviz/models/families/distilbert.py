"""DistilBERT: post-norm layers under names of its own, and no pooler."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ...heads import ENCODER
from .sheet import Attention, Family, Layers, PostNorm

_LAYER = "transformer.layer.{i}"


def _read_out(model: Any, first: Tensor) -> Tensor:
    logits: Tensor = model.classifier(torch.relu(model.pre_classifier(first)))
    return logits


DISTILBERT = Family(
    "DistilBERT",
    "distilbert",
    attention={
        ENCODER: Attention(
            query=f"{_LAYER}.attention.q_lin",
            key=f"{_LAYER}.attention.k_lin",
            value=f"{_LAYER}.attention.v_lin",
            output=f"{_LAYER}.attention.out_lin",
        )
    },
    layers={
        ENCODER: Layers(
            modules="transformer.layer",
            count="n_layers",
            writes=("attention.out_lin", "ffn.lin2"),
            inner=("ffn.lin1",),
            outer="ffn.lin2",
            neurons="hidden_dim",
        )
    },
    embeddings="embeddings",
    post_norm=PostNorm(
        attention_norm=f"{_LAYER}.sa_layer_norm",
        inner=f"{_LAYER}.ffn.lin1",
        activation=f"{_LAYER}.ffn.activation",
        outer=f"{_LAYER}.ffn.lin2",
        output_norm=f"{_LAYER}.output_layer_norm",
        read_out=_read_out,
    ),
    tiny={"hidden_dim": 64},
)
