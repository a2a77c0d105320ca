"""Phi-3: one matrix of queries, keys and values, which transformers cuts by its configuration's number of heads."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ...attention import transformers
from ...heads import ENCODER
from .interface import last_token
from .own_attention import OwnAttention
from .sheet import Attention, Family, Layers

_LAYER = "layers.{i}"


class _Attention(OwnAttention):
    """The same, cut by the sizes of the matrices."""

    replaces = "Phi3Attention"

    def forward(
        self: Any,
        hidden_states: Tensor,
        position_embeddings: tuple[Tensor, Tensor],
        attention_mask: Tensor | None = None,
        past_key_values: Any = None,
        **keywords: Any,
    ) -> tuple[Tensor, Tensor | None]:
        theirs = transformers.models.phi3.modeling_phi3
        wide = self.o_proj.in_features
        narrow = (self.qkv_proj.out_features - wide) // 2
        query, key, value = (
            part.view(*part.shape[:2], part.shape[2] // self.head_dim, self.head_dim).transpose(1, 2)
            for part in self.qkv_proj(hidden_states).split([wide, narrow, narrow], dim=-1)
        )
        query, key = theirs.apply_rotary_pos_emb(query, key, *position_embeddings)
        if past_key_values is not None:
            key, value = past_key_values.update(key, value, self.layer_idx)
        attend = theirs.ALL_ATTENTION_FUNCTIONS.get_interface(
            self.config._attn_implementation, theirs.eager_attention_forward
        )
        dropout = self.attention_dropout if self.training else 0.0
        window = getattr(self.config, "sliding_window", None)
        options = {"dropout": dropout, "scaling": self.scaling, "sliding_window": window, **keywords}
        mixed, probs = attend(self, query, key, value, attention_mask, **options)
        return self.o_proj(mixed.flatten(2)), probs


PHI3 = Family(
    "Phi-3",
    "phi3",
    attention={
        ENCODER: Attention(
            query=f"{_LAYER}.self_attn.qkv_proj",
            key=f"{_LAYER}.self_attn.qkv_proj",
            value=f"{_LAYER}.self_attn.qkv_proj",
            output=f"{_LAYER}.self_attn.o_proj",
            reader=f"{_LAYER}.post_attention_layernorm",
        )
    },
    layers={
        ENCODER: Layers(
            modules="layers",
            count="num_hidden_layers",
            writes=("self_attn.o_proj", "mlp.down_proj"),
            inner=("mlp.gate_up_proj",),
            outer="mlp.down_proj",
            neurons="intermediate_size",
            gated=2,
            pre_norm=True,
        )
    },
    embeddings="embed_tokens",
    forward=last_token,
    own_attention=_Attention,
    tiny={"num_key_value_heads": 2, "sliding_window": 4},
)
