"""Where each family keeps the rest of a layer: the table behind ``stages``.

All families here are *post-norm*: norm(x + attention(x)), then norm(y + W_2·act(W_1·y)). Paths are relative to
``model.base_model``, with the same placeholders as in ``families``. A family without a line here is evaluated
all the same, through its own modules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Layout:
    """Paths of one post-norm layer and the way from the first token's last state to the logits."""

    attention_norm: str
    inner: str  # W_1
    activation: str
    outer: str  # W_2
    output_norm: str
    read_out: Callable[[Any, Tensor], Tensor]  # (model, first tokens' states [n, D]) -> logits [n, C]
    widen: str | None = None  # projection of the embeddings to the hidden size, where the model has one


def _pooler(model: Any, first: Tensor) -> Tensor:
    return model.classifier(model.base_model.pooler(first[:, None]))


def _head(model: Any, first: Tensor) -> Tensor:
    return model.classifier(first[:, None])


def _distilbert(model: Any, first: Tensor) -> Tensor:
    return model.classifier(torch.relu(model.pre_classifier(first)))


def _albert(model: Any, first: Tensor) -> Tensor:
    return model.classifier(model.base_model.pooler_activation(model.base_model.pooler(first)))


def _bert_like(read_out: Callable[[Any, Tensor], Tensor], widen: str | None = None) -> Layout:
    layer = "encoder.layer.{i}"
    return Layout(
        attention_norm=f"{layer}.attention.output.LayerNorm",
        inner=f"{layer}.intermediate.dense",
        activation=f"{layer}.intermediate.intermediate_act_fn",
        outer=f"{layer}.output.dense",
        output_norm=f"{layer}.output.LayerNorm",
        read_out=read_out,
        widen=widen,
    )


_ALBERT_LAYER = "encoder.albert_layer_groups.{g}.albert_layers.{j}"

LAYOUTS: dict[str, Layout] = {
    "bert": _bert_like(_pooler),
    "ernie": _bert_like(_pooler),
    "roberta": _bert_like(_head),
    "camembert": _bert_like(_head),
    "xlm-roberta": _bert_like(_head),
    "electra": _bert_like(_head, widen="embeddings_project"),
    "distilbert": Layout(
        attention_norm="transformer.layer.{i}.sa_layer_norm",
        inner="transformer.layer.{i}.ffn.lin1",
        activation="transformer.layer.{i}.ffn.activation",
        outer="transformer.layer.{i}.ffn.lin2",
        output_norm="transformer.layer.{i}.output_layer_norm",
        read_out=_distilbert,
    ),
    "albert": Layout(
        attention_norm=f"{_ALBERT_LAYER}.attention.LayerNorm",
        inner=f"{_ALBERT_LAYER}.ffn",
        activation=f"{_ALBERT_LAYER}.activation",
        outer=f"{_ALBERT_LAYER}.ffn_output",
        output_norm=f"{_ALBERT_LAYER}.full_layer_layer_norm",
        read_out=_albert,
        widen="encoder.embedding_hidden_mapping_in",
    ),
}
