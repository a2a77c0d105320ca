"""BART, Marian and mBART, which has its norms in front: an encoder and a decoder of BART's modules; and T5.

T5's layers are pre-norm, without biases, and have relative positions from a table that the first layer of a stack
keeps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ...heads import ENCODER
from .sheet import CROSS, DECODER, Attention, Family, Forward, Layers

WHY_NO_MAPS = "its decoder reads the text one place later, so its maps have other tokens at their sides"


def shifted(last_in_front: bool = False) -> Forward:
    """How to run one: transformers takes token ids only, so with embeddings we shift these ourselves.

    A decoder begins with a token of its own, or with the text's last one (``last_in_front``, mBART).
    """

    def forward(model: Any, batch: Mapping[str, Tensor], keywords: Mapping[str, Any]) -> Tensor:
        if "inputs_embeds" not in batch:
            logits: Tensor = model(**batch, use_cache=False, **keywords).logits
            return logits
        words = batch["inputs_embeds"]
        rows = torch.arange(len(words), device=words.device)
        last = batch["attention_mask"].sum(dim=1) - 1
        if last_in_front:
            first = words[rows, last]
        else:
            start = torch.full_like(last, model.config.decoder_start_token_id)
            first = model.get_input_embeddings()(start)
        shifted_words = torch.cat([first[:, None], words[:, :-1]], dim=1)
        states = model.base_model(**batch, decoder_inputs_embeds=shifted_words, use_cache=False, **keywords)[0]
        result: Tensor = model.classification_head(states[rows, last])
        return result

    return forward


def _attention(module: str, reader: str) -> Attention:
    return Attention(
        query=f"{module}.q_proj",
        key=f"{module}.k_proj",
        value=f"{module}.v_proj",
        output=f"{module}.out_proj",
        reader=reader,
    )


def _layers(stack: str, crossing: tuple[str, ...], pre_norm: bool) -> Layers:
    return Layers(
        modules=f"{stack}.layers",
        count=f"{stack}_layers",
        writes=("self_attn.out_proj", "fc2", *crossing),
        inner=("fc1",),
        outer="fc2",
        neurons=f"{stack}_ffn_dim",
        pre_norm=pre_norm,
    )


def _bart_like(title: str, model_type: str, pre_norm: bool = False, **facts: Any) -> Family:
    layer, decoder = "encoder.layers.{i}", "decoder.layers.{i}"
    # behind a sum stands the attention's own norm, or with norms in front that of the next block
    encoder_norm, cross_norm, decoder_norm = (
        ("final_layer_norm", "final_layer_norm", "encoder_attn_layer_norm")
        if pre_norm
        else ("self_attn_layer_norm", "encoder_attn_layer_norm", "self_attn_layer_norm")
    )
    return Family(
        title,
        model_type,
        attention={
            ENCODER: _attention(f"{layer}.self_attn", f"{layer}.{encoder_norm}"),
            CROSS: _attention(f"{decoder}.encoder_attn", f"{decoder}.{cross_norm}"),
            DECODER: _attention(f"{decoder}.self_attn", f"{decoder}.{decoder_norm}"),
        },
        layers={
            "encoder": _layers("encoder", (), pre_norm),
            "decoder": _layers("decoder", ("encoder_attn.out_proj",), pre_norm),
        },
        embeddings="shared",
        why_no_maps=WHY_NO_MAPS,
        **facts,
        tiny={
            "encoder_layers": 2,
            "decoder_layers": 3,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 48,
            "decoder_ffn_dim": 48,
            "max_position_embeddings": 64,
            "forced_eos_token_id": None,
            "forced_bos_token_id": None,
        },
    )


MARIAN = _bart_like("Marian", "marian", classifies=False)
BART = _bart_like("BART", "bart", forward=shifted())
MBART = _bart_like("mBART", "mbart", pre_norm=True, forward=shifted(last_in_front=True))


def _t5_attention(stack: str, block: str, table: bool = False) -> Attention:
    module = f"{stack}.block.{{i}}.layer.{block}"
    number = int(block[0])
    return Attention(
        query=f"{module}.q",
        key=f"{module}.k",
        value=f"{module}.v",
        output=f"{module}.o",
        # the first layer's table serves all layers of its stack
        position_table=f"{stack}.block.0.layer.{block}.relative_attention_bias" if table else "",
        reader=f"{stack}.block.{{i}}.layer.{number + 1}.layer_norm",
    )


def _t5_layers(stack: str, count: str, attention: tuple[str, ...]) -> Layers:
    feed_forward = f"layer.{len(attention)}.DenseReluDense"
    return Layers(
        modules=f"{stack}.block",
        count=count,
        writes=(*attention, f"{feed_forward}.wo"),
        # one matrix in the first T5, two in the gated ones
        inner=tuple(f"{feed_forward}.{name}" for name in ("wi", "wi_0", "wi_1")),
        outer=f"{feed_forward}.wo",
        neurons="d_ff",
        pre_norm=True,
        own_count="num_layers",
        first_differs=True,
    )


T5 = Family(
    "T5",
    "t5",
    attention={
        ENCODER: _t5_attention("encoder", "0.SelfAttention", table=True),
        CROSS: _t5_attention("decoder", "1.EncDecAttention"),
        DECODER: _t5_attention("decoder", "0.SelfAttention", table=True),
    },
    layers={
        "encoder": _t5_layers("encoder", "num_layers", ("layer.0.SelfAttention.o",)),
        "decoder": _t5_layers(
            "decoder", "num_decoder_layers", ("layer.0.SelfAttention.o", "layer.1.EncDecAttention.o")
        ),
    },
    embeddings="shared",
    why_no_maps=WHY_NO_MAPS,
    forward=shifted(),
    tiny={
        "num_layers": 2,
        "num_decoder_layers": 3,
        "num_heads": 4,
        "d_kv": 8,
        "d_ff": 48,
        "relative_attention_num_buckets": 8,
        "relative_attention_max_distance": 12,
        "dropout_rate": 0.1,
    },
)
