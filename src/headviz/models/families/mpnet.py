"""MPNet: BERT's layers, with a table of relative positions that all layers share, and attention that we compute."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ...heads import ENCODER
from .bert import LAYER, bert_layers, classifier_head
from .own_attention import OwnAttention
from .sheet import Attention, Family, PostNorm


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
            query=f"{LAYER}.attention.attn.q",
            key=f"{LAYER}.attention.attn.k",
            value=f"{LAYER}.attention.attn.v",
            output=f"{LAYER}.attention.attn.o",
            position_table="encoder.relative_attention_bias",
        )
    },
    layers={ENCODER: bert_layers("attention.attn.o")},
    embeddings="embeddings",
    post_norm=PostNorm(
        attention_norm=f"{LAYER}.attention.LayerNorm",
        inner=f"{LAYER}.intermediate.dense",
        activation=f"{LAYER}.intermediate.intermediate_act_fn",
        outer=f"{LAYER}.output.dense",
        output_norm=f"{LAYER}.output.LayerNorm",
        read_out=classifier_head,
        bias=lambda base, states: base.encoder.compute_position_bias(states),
    ),
    own_attention=_Attention,
    position_offset=True,
    tiny={"max_position_embeddings": 66, "pad_token_id": 1, "relative_attention_num_buckets": 32},
)
