"""Which module reads the residual stream right behind each attention of an encoder-decoder model.

What it is given is the sum that the attention's output was added to. Behind the sum stands the layer's own norm
(*post-norm*), or the norm of the block that comes next (*pre-norm*). Paths are relative to ``model.base_model``.
"""

from __future__ import annotations

from ..errors import ModelError
from ..heads import ENCODER
from .families import CROSS, DECODER

_POST_NORM = {
    ENCODER: "encoder.layers.{i}.self_attn_layer_norm",
    CROSS: "decoder.layers.{i}.encoder_attn_layer_norm",
    DECODER: "decoder.layers.{i}.self_attn_layer_norm",
}

SUMS: dict[str, dict[str, str]] = {
    "marian": _POST_NORM,
    "bart": _POST_NORM,
    "mbart": {
        ENCODER: "encoder.layers.{i}.final_layer_norm",
        CROSS: "decoder.layers.{i}.final_layer_norm",
        DECODER: "decoder.layers.{i}.encoder_attn_layer_norm",
    },
    "t5": {
        ENCODER: "encoder.block.{i}.layer.1.layer_norm",
        CROSS: "decoder.block.{i}.layer.2.layer_norm",
        DECODER: "decoder.block.{i}.layer.1.layer_norm",
    },
}


def reader_of(model_type: str, stack: str, layer: int) -> str:
    """The path of the module that reads the sum behind one attention."""
    if model_type not in SUMS:
        raise ModelError(
            f"headviz does not know where a '{model_type}' model adds its attention to the stream. "
            f"Known: {', '.join(SUMS)}."
        )
    return SUMS[model_type][stack].format(i=layer)
