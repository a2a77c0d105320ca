"""ModernBERT: pre-norm layers, rotary positions, a sliding window in most layers, and W_QKV in one matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ...attention import HeadCall
from ...heads import ENCODER
from ..places import each_token
from .sheet import Attention, Family, Layers, OwnLayers


def _layer(base: Any, layer: int, rows: Tensor, call: HeadCall) -> Tensor:
    """[B, T, D]. Without padding only the sliding window needs a mask."""
    module = base.layers[layer]
    length = rows.shape[1]
    place = torch.arange(length, device=rows.device)
    angles = base.rotary_emb(rows, place[None], module.attention_type)
    window = module.attn.sliding_window
    near = None
    if window is not None and window <= length:
        near = _near(window, place)[None, None]
    out: Tensor = module(rows, attention_mask=near, position_embeddings=angles, headviz=call)
    return out


def _states(base: Any, rows: Tensor) -> Tensor:
    out: Tensor = base.final_norm(rows)
    return out


def _read_out(model: Any, groups: Sequence[Tensor]) -> Tensor:
    states = [_states(model.base_model, rows) for rows in groups]
    first = model.config.classifier_pooling == "cls"
    pooled = torch.cat([rows[:, 0] if first else rows.mean(dim=1) for rows in states])
    logits: Tensor = model.classifier(model.head(pooled))
    return logits


def _each_token(model: Any, states: Tensor) -> Tensor:
    return each_token(model, _states(model.base_model, states))


def _near(window: int, place: Tensor) -> Tensor:
    """[T, T] what the sliding window lets each token see."""
    return (place[:, None] - place[None]).abs() < window


def _apart(config: Any, apart: Tensor) -> dict[str, Tensor]:
    place = torch.arange(apart.shape[-1], device=apart.device)
    near = apart & _near(int(config.sliding_window) + 1, place)  # as its attention modules count
    return {"full_attention": apart[:, None], "sliding_attention": near[:, None]}


MODERNBERT = Family(
    "ModernBERT",
    "modernbert",
    attention={
        ENCODER: Attention(
            query="layers.{i}.attn.Wqkv",
            key="layers.{i}.attn.Wqkv",
            value="layers.{i}.attn.Wqkv",
            output="layers.{i}.attn.Wo",
            reader="layers.{i}.mlp_norm",
        )
    },
    layers={
        ENCODER: Layers(
            modules="layers",
            count="num_hidden_layers",
            writes=("attn.Wo", "mlp.Wo"),
            inner=("mlp.Wi",),
            outer="mlp.Wo",
            neurons="intermediate_size",
            gated=2,
            pre_norm=True,
            first_differs=True,
        )
    },
    embeddings="embeddings",
    own_layers=OwnLayers(_layer, _read_out, _states),
    each_token=_each_token,
    apart=_apart,
    tiny={
        "cls_token_id": 2,
        "sep_token_id": 3,
        "bos_token_id": 2,
        "eos_token_id": 3,
        "global_attn_every_n_layers": 2,
        "local_attention": 8,
    },
)
