"""DeBERTa, v1 to v3: content and position are scored apart, in attention that we compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ...attention import HeadCall, running_call
from ...errors import ModelError
from ...heads import ENCODER
from .bert import LAYER, bert_layers
from .own_attention import OwnAttention
from .sheet import Attention, Family, OwnLayers


class _Attention(OwnAttention):
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
        asked = hidden_states if query_states is None else query_states
        size = self.attention_head_size

        def heads(states: Tensor) -> Tensor:
            return states.view(*states.shape[:2], -1, size).transpose(1, 2)

        query, key, value = (
            heads(self.query_proj(asked)),
            heads(self.key_proj(hidden_states)),
            heads(self.value_proj(hidden_states)),
        )
        call = running_call()
        if call is not None and call.edit_inputs is not None:  # positions are scored by queries and keys, too
            query, key, value = call.edit_inputs(call.layer, query, key, value)
        kinds = 1 + sum(kind in self.pos_att_type for kind in ("c2p", "p2c"))
        bias = None
        if self.relative_attention and query.shape[1]:
            bias = self.disentangled_attention_bias(  # transformers' own: [B · h, Q, K]
                query.flatten(0, 1), key.flatten(0, 1), relative_pos, self.pos_dropout(rel_embeddings), kinds
            ).unflatten(0, query.shape[:2])
        scaling = (size * kinds) ** -0.5
        mixed, probs = self.attend(query, key, value, attention_mask.bool(), scaling, bias, output_attentions)
        return (mixed, probs) if output_attentions else (mixed, None)


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


def _read_out(model: Any, groups: Sequence[Tensor]) -> Tensor:
    logits: Tensor = model.classifier(model.pooler(torch.cat([rows[:, :1] for rows in groups])))
    return logits


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
    own_attention=_Attention,
    tiny={
        "relative_attention": True,
        "position_buckets": 8,
        "max_relative_positions": -1,
        "pos_att_type": ["p2c", "c2p"],
        "share_att_key": True,
        "norm_rel_ebd": "layer_norm",
        "position_biased_input": False,
        "type_vocab_size": 0,
    },
)


class _First(OwnAttention):
    """v1: query, key and value of a head are neighbours in one matrix, and their biases are vectors beside it."""

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
        mixed, probs = self.attend(query, key, value, attention_mask.bool(), scaling, bias, output_attentions)
        return (mixed, probs) if output_attentions else (mixed, None)


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
        ENCODER: Attention(
            query=f"{LAYER}.attention.self.in_proj",
            key=f"{LAYER}.attention.self.in_proj",
            value=f"{LAYER}.attention.self.in_proj",
            output=f"{LAYER}.attention.output.dense",
            further=("pos_proj", "pos_q_proj"),
            side_by_side=True,
            vectors=("q_bias", "v_bias"),
        )
    },
    layers={ENCODER: bert_layers()},
    embeddings="embeddings",
    position_flops=_first_position_flops,
    own_attention=_First,
    tiny={
        "relative_attention": True,
        "max_relative_positions": -1,
        "pos_att_type": ["c2p", "p2c"],
        "position_biased_input": False,
        "type_vocab_size": 0,
    },
)
