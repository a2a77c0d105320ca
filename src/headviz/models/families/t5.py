"""T5: pre-norm layers without biases, and relative positions from a table that the first layer of a stack keeps."""

from __future__ import annotations

from ...heads import ENCODER
from .sheet import CROSS, DECODER, Attention, Family, Layers
from .shifted import WHY_NO_MAPS, shifted


def _attention(stack: str, block: str, table: bool = False) -> Attention:
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


def _layers(stack: str, count: str, attention: tuple[str, ...]) -> Layers:
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
        ENCODER: _attention("encoder", "0.SelfAttention", table=True),
        CROSS: _attention("decoder", "1.EncDecAttention"),
        DECODER: _attention("decoder", "0.SelfAttention", table=True),
    },
    layers={
        "encoder": _layers("encoder", "num_layers", ("layer.0.SelfAttention.o",)),
        "decoder": _layers("decoder", "num_decoder_layers", ("layer.0.SelfAttention.o", "layer.1.EncDecAttention.o")),
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
