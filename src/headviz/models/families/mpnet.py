"""MPNet: BERT's layers, with a table of relative positions that all layers share, and attention that we compute."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ...heads import ENCODER
from .bert import classifier_head
from .own_attention import OwnAttention
from .sheet import Attention, Family, Layers, PostNorm

_LAYER = "encoder.layer.{i}"


class _Attention(OwnAttention):
    replaces = "MPNetSelfAttention"

    def forward(
        self: Any,
        hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        position_bias: Tensor | None = None,
        output_attentions: bool = False,
        **_: Any,
    ) -> tuple[Tensor | None, ...]:
        size = self.attention_head_size

        def heads(states: Tensor) -> Tensor:
            return states.view(*states.shape[:2], -1, size).transpose(1, 2)

        query, key, value = (heads(m(hidden_states)) for m in (self.q, self.k, self.v))
        mixed, probs = self.attend(query, key, value, attention_mask, size**-0.5, position_bias, output_attentions)
        return (self.o(mixed), probs) if output_attentions else (self.o(mixed),)


MPNET = Family(
    "MPNet",
    "mpnet",
    attention={
        ENCODER: Attention(
            query=f"{_LAYER}.attention.attn.q",
            key=f"{_LAYER}.attention.attn.k",
            value=f"{_LAYER}.attention.attn.v",
            output=f"{_LAYER}.attention.attn.o",
            position_table="encoder.relative_attention_bias",
        )
    },
    layers={
        ENCODER: Layers(
            modules="encoder.layer",
            count="num_hidden_layers",
            writes=("attention.attn.o", "output.dense"),
            inner=("intermediate.dense",),
            outer="output.dense",
            neurons="intermediate_size",
        )
    },
    embeddings="embeddings",
    post_norm=PostNorm(
        attention_norm=f"{_LAYER}.attention.LayerNorm",
        inner=f"{_LAYER}.intermediate.dense",
        activation=f"{_LAYER}.intermediate.intermediate_act_fn",
        outer=f"{_LAYER}.output.dense",
        output_norm=f"{_LAYER}.output.LayerNorm",
        read_out=classifier_head,
        bias=lambda base, states: base.encoder.compute_position_bias(states),
    ),
    own_attention=_Attention,
    position_offset=True,
    tiny={"max_position_embeddings": 66, "pad_token_id": 1, "relative_attention_num_buckets": 32},
)
