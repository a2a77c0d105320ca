"""BART, Marian and mBART: an encoder and a decoder of BART's modules. mBART has its norms in front."""

from __future__ import annotations

from typing import Any

from ...heads import ENCODER
from .sheet import CROSS, DECODER, Attention, Family, Layers
from .shifted import WHY_NO_MAPS, shifted


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
    own, cross, masked = (
        ("final_layer_norm", "final_layer_norm", "encoder_attn_layer_norm")
        if pre_norm
        else ("self_attn_layer_norm", "encoder_attn_layer_norm", "self_attn_layer_norm")
    )
    return Family(
        title,
        model_type,
        attention={
            ENCODER: _attention(f"{layer}.self_attn", f"{layer}.{own}"),
            CROSS: _attention(f"{decoder}.encoder_attn", f"{decoder}.{cross}"),
            DECODER: _attention(f"{decoder}.self_attn", f"{decoder}.{masked}"),
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
