"""Attention of headviz's own, for families whose modules never call transformers' attention interface.

A class of ours goes in front of the module's own class, so that weights, names and everything but ``forward`` stay.
A model in which such a module would be passed over raises: the number of calls is checked after every pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, cast

import torch
from torch import Tensor, nn

from ...attention import HeadCall, headviz_attention, running_call, transformers
from ...errors import ModelError
from ...heads import ENCODER
from .bert import LAYER, bert_layers, bert_post_norm, classifier_head
from .interface import last_token
from .sheet import Attention, Family, Layers, OwnLayers, fused


class OwnAttention:
    """What attention modules of ours share. ``replaces`` names transformers' class."""

    replaces: str
    along: tuple[Any, ...] = ()  # further classes of the family's modules that ours go in front of

    def heads_of(self: Any, states: Tensor) -> Tensor:
        """[B, T, heads · d] -> [B, h, T, d]"""
        return states.view(*states.shape[:2], -1, self.attention_head_size).transpose(1, 2)

    def attend(
        self: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        scaling: float,
        bias: Tensor | None,
        output_attentions: bool,
    ) -> tuple[Tensor, Tensor | None]:
        """([B, Q, heads · d], probabilities if they are asked for) of [B, h, T, d] under the call that is running."""
        dropout = self.dropout.p if self.training else 0.0
        call = running_call() or (HeadCall((None,), "eager") if output_attentions else None)
        out, probs = headviz_attention(
            self, query, key, value, mask, scaling, dropout, headviz=call, position_bias=bias
        )
        return out.flatten(2), probs if output_attentions else None


def put_in(model: nn.Module, own: type[OwnAttention]) -> None:
    """Give every attention module of a model our ``forward``. In place; a second time changes nothing."""
    for kind in (own, *own.along):
        for module in model.modules():
            if type(module).__name__ == kind.replaces and not isinstance(module, kind):
                theirs: Any = type(module)
                module.__class__ = _joined(cast(Any, kind), theirs)


@cache
def _joined(own: type[OwnAttention], theirs: type) -> type:
    return type(theirs.__name__, (own, theirs), {})


class _DebertaEmbeddings:
    """Zeroes padding by a mask of one value per token, also where the mask says which tokens see each other."""

    replaces = "DebertaV2Embeddings"

    def forward(self, *args: Any, mask: Tensor | None = None, **keywords: Any) -> Tensor:
        if mask is not None and mask.dim() == 4:
            mask = mask[:, 0].diagonal(dim1=1, dim2=2)
        out: Tensor = super().forward(*args, mask=mask, **keywords)  # type: ignore[misc]
        return out


class _DebertaAttention(OwnAttention):
    replaces, along = "DisentangledSelfAttention", (_DebertaEmbeddings,)

    def forward(
        self: Any,
        hidden_states: Tensor,
        attention_mask: Tensor,
        output_attentions: bool = False,
        query_states: Tensor | None = None,
        relative_pos: Tensor | None = None,
        rel_embeddings: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        query = self.heads_of(self.query_proj(hidden_states if query_states is None else query_states))
        key, value = self.heads_of(self.key_proj(hidden_states)), self.heads_of(self.value_proj(hidden_states))
        call = running_call()
        if call is not None and call.edit_inputs is not None:  # positions are scored by queries and keys, too
            query, key, value = call.edit_inputs(call.layer, query, key, value)
        kinds = 1 + sum(kind in self.pos_att_type for kind in ("c2p", "p2c"))
        bias = None
        if self.relative_attention and query.shape[1]:
            bias = self.disentangled_attention_bias(  # transformers' own: [B · h, Q, K]
                query.flatten(0, 1), key.flatten(0, 1), relative_pos, self.pos_dropout(rel_embeddings), kinds
            ).unflatten(0, query.shape[:2])
        scaling = (self.attention_head_size * kinds) ** -0.5
        return self.attend(query, key, value, attention_mask.bool(), scaling, bias, output_attentions)


def _layer(base: Any, layer: int, rows: Tensor, call: HeadCall) -> Tensor:
    """[B, T, D]. Texts of equal length need no mask; the call reaches our attention through ``running``."""
    encoder = base.encoder
    ones = rows.new_ones(rows.shape[:2], dtype=torch.long)
    out: Tensor = encoder.layer[layer](
        rows,
        encoder.get_attention_mask(ones),
        relative_pos=encoder.get_rel_pos(rows),
        rel_embeddings=encoder.get_rel_embedding(),
    )[0]
    return encoder.conv(rows, out, ones) if layer == 0 and encoder.conv is not None else out


def _position_flops(config: Any, length: int, width: int) -> int:
    """Projecting the table of distances, and its products with queries and keys: as much less as heads are removed."""
    if not config.relative_attention:
        return 0
    most = config.max_relative_positions if config.max_relative_positions > 0 else config.max_position_embeddings
    distances = 2 * (config.position_buckets if config.position_buckets > 0 else most)
    kinds = sum(kind in config.pos_att_type for kind in ("c2p", "p2c"))
    # matrices shared with the content project both; those of its own were counted over the tokens
    projected = 2 * distances if config.share_att_key else kinds * (distances - length)
    return 2 * width * (projected * config.hidden_size + kinds * distances * length)


def _apart(config: Any, apart: Tensor) -> Tensor:
    if getattr(config, "conv_kernel_size", 0):
        raise ModelError("This DeBERTa-v2 has a convolution over neighbouring tokens, which joins the texts of a pair.")
    return apart[:, None]


def _read_out(model: Any, groups: Sequence[Tensor]) -> Tensor:
    logits: Tensor = model.classifier(model.pooler(torch.cat([rows[:, :1] for rows in groups])))
    return logits


_TINY = {"relative_attention": True, "max_relative_positions": -1, "position_biased_input": False, "type_vocab_size": 0}

DEBERTA_V2 = Family(
    "DeBERTa-v2",
    "deberta-v2",
    attention={
        ENCODER: Attention(
            query=f"{LAYER}.attention.self.query_proj",
            key=f"{LAYER}.attention.self.key_proj",
            value=f"{LAYER}.attention.self.value_proj",
            output=f"{LAYER}.attention.output.dense",
            further=("pos_key_proj", "pos_query_proj"),  # where the model does not share the matrices of the content
        )
    },
    layers={ENCODER: bert_layers()},
    embeddings="embeddings",
    own_layers=OwnLayers(_layer, _read_out),
    position_flops=_position_flops,
    own_attention=_DebertaAttention,
    apart=_apart,
    tiny={
        **_TINY,
        "position_buckets": 8,
        "pos_att_type": ["p2c", "c2p"],
        "share_att_key": True,
        "norm_rel_ebd": "layer_norm",
    },
)


class _FirstDebertaAttention(OwnAttention):
    """v1: query, key and value of a head are neighbours in one matrix, and their biases are vectors next to it."""

    replaces = "DisentangledSelfAttention"

    def forward(
        self: Any,
        hidden_states: Tensor,
        attention_mask: Tensor,
        output_attentions: bool = False,
        query_states: Tensor | None = None,
        relative_pos: Tensor | None = None,
        rel_embeddings: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        if query_states is not None or self.head_logits_proj is not None or self.head_weights_proj is not None:
            raise ModelError("A DeBERTa that mixes its heads' scores, or asks with other states, is not supported.")
        size, heads = self.attention_head_size, self.num_attention_heads
        joined = self.in_proj(hidden_states).view(*hidden_states.shape[:2], heads, 3 * size).transpose(1, 2)
        query, key, value = joined.chunk(3, dim=-1)
        query, value = query + self.q_bias.view(heads, 1, size), value + self.v_bias.view(heads, 1, size)
        call = running_call()
        if call is not None and call.edit_inputs is not None:
            query, key, value = call.edit_inputs(call.layer, query, key, value)
        kinds = 1 + len(self.pos_att_type)
        scaling = (size * kinds) ** -0.5
        bias = None
        if self.relative_attention and heads:
            table = self.pos_dropout(rel_embeddings)
            bias = self.disentangled_att_bias(query * scaling, key, relative_pos, table, kinds)  # transformers' own
        return self.attend(query, key, value, attention_mask.bool(), scaling, bias, output_attentions)


def _first_position_flops(config: Any, length: int, width: int) -> int:
    """The same for v1, which projects as many distances as the text has, by matrices of their own."""
    if not config.relative_attention:
        return 0
    most = config.max_relative_positions if config.max_relative_positions > 0 else config.max_position_embeddings
    distances, kinds = 2 * min(length, most), len(config.pos_att_type)
    return 2 * width * kinds * ((distances - length) * config.hidden_size + distances * length)


DEBERTA = Family(
    "DeBERTa",
    "deberta",
    attention={
        ENCODER: fused(
            f"{LAYER}.attention.self.in_proj",
            f"{LAYER}.attention.output.dense",
            further=("pos_proj", "pos_q_proj"),
            side_by_side=True,
            vectors=("q_bias", "v_bias"),
        )
    },
    layers={ENCODER: bert_layers()},
    embeddings="embeddings",
    position_flops=_first_position_flops,
    own_attention=_FirstDebertaAttention,
    tiny={**_TINY, "pos_att_type": ["c2p", "p2c"]},
)


class _MPNetAttention(OwnAttention):
    replaces = "MPNetSelfAttention"

    def forward(
        self: Any,
        hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        position_bias: Tensor | None = None,
        output_attentions: bool = False,
        **_: Any,
    ) -> tuple[Tensor | None, ...]:
        query, key, value = (self.heads_of(matrix(hidden_states)) for matrix in (self.q, self.k, self.v))
        scaling = self.attention_head_size**-0.5
        mixed, probs = self.attend(query, key, value, attention_mask, scaling, position_bias, output_attentions)
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
    post_norm=bert_post_norm(
        classifier_head,
        norm="attention.LayerNorm",
        bias=lambda base, states: base.encoder.compute_position_bias(states),
    ),
    own_attention=_MPNetAttention,
    position_offset=True,
    tiny={"max_position_embeddings": 66, "pad_token_id": 1, "relative_attention_num_buckets": 32},
)


class _Phi3Attention(OwnAttention):
    """Phi-3: one matrix of queries, keys and values, cut by its size, not by the configuration's number of heads."""

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
        ENCODER: fused(
            "layers.{i}.self_attn.qkv_proj", "layers.{i}.self_attn.o_proj", reader="layers.{i}.post_attention_layernorm"
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
    own_attention=_Phi3Attention,
    tiny={"num_key_value_heads": 2, "sliding_window": 4},
)
