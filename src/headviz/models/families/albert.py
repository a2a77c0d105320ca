"""ALBERT: one set of weights for all layers, or for groups of them. Heads can be masked layer by layer, not removed."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ...heads import ENCODER
from .sheet import Attention, Family, Layers, PostNorm

_LAYER = "encoder.albert_layer_groups.{g}.albert_layers.{j}"  # the group, and the layer inside it


def _place(config: Any, layer: int) -> dict[str, int]:
    outer, inner = divmod(layer, int(config.inner_group_num))
    return {"g": int(outer / (config.num_hidden_layers / config.num_hidden_groups)), "j": inner}


def _grid(config: Any) -> tuple[int, int]:
    return int(config.num_hidden_layers) * int(config.inner_group_num), int(config.num_attention_heads)


def _read_out(model: Any, first: Tensor) -> Tensor:
    base = model.base_model
    logits: Tensor = model.classifier(base.pooler_activation(base.pooler(first)))
    return logits


ALBERT = Family(
    "ALBERT",
    "albert",
    attention={
        ENCODER: Attention(
            query=f"{_LAYER}.attention.query",
            key=f"{_LAYER}.attention.key",
            value=f"{_LAYER}.attention.value",
            output=f"{_LAYER}.attention.dense",
        )
    },
    layers={ENCODER: Layers("encoder.albert_layer_groups")},
    embeddings="embeddings",
    post_norm=PostNorm(
        attention_norm=f"{_LAYER}.attention.LayerNorm",
        inner=f"{_LAYER}.ffn",
        activation=f"{_LAYER}.activation",
        outer=f"{_LAYER}.ffn_output",
        output_norm=f"{_LAYER}.full_layer_layer_norm",
        read_out=_read_out,
        widen="encoder.embedding_hidden_mapping_in",
    ),
    grid=_grid,
    place=_place,
    shared_layers=True,
    why_not_prunable="ALBERT uses one set of weights for all layers, so a head cannot leave one layer alone",
    why_layers_stay="its layers share weights",
    tiny={"embedding_size": 16},
)
