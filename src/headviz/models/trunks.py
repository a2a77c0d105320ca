"""Where each family keeps its layers, and what in a layer writes to the residual stream.

One line per family; paths are relative to ``model.base_model`` and, behind ``layers``, to one layer. ``trimming``
removes whole layers and feed-forward blocks by it. *Pre-norm* layers are x + f(norm(x)): with everything that they
write at zero they are the identity. *Post-norm* layers are norm(x + f(x)): at zero they still normalise.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import ModelError


@dataclass(frozen=True)
class Trunk:
    """One stack of layers."""

    layers: str  # the module list
    count: str  # its length in the configuration
    writes: tuple[str, ...]  # linear maps whose output is added to the stream
    inner: tuple[str, ...]  # into the feed-forward block
    outer: str  # out of it
    pre_norm: bool = False
    own_count: str | None = None  # the same length in the stack's own configuration, where it has one
    first_differs: bool = False  # the first layer is built otherwise than the rest, so it cannot be removed


def _bert_like() -> dict[str, Trunk]:
    return {
        "encoder": Trunk(
            layers="encoder.layer",
            count="num_hidden_layers",
            writes=("attention.output.dense", "output.dense"),
            inner=("intermediate.dense",),
            outer="output.dense",
        )
    }


def _bart_like(pre_norm: bool = False) -> dict[str, Trunk]:
    own = ("self_attn.out_proj", "fc2")
    return {
        "encoder": Trunk("encoder.layers", "encoder_layers", own, ("fc1",), "fc2", pre_norm),
        "decoder": Trunk(
            "decoder.layers", "decoder_layers", (*own, "encoder_attn.out_proj"), ("fc1",), "fc2", pre_norm
        ),
    }


def _t5() -> dict[str, Trunk]:
    def inner(at: int) -> tuple[str, ...]:
        # one matrix in the first T5, two in the gated ones: those that are there count
        return tuple(f"layer.{at}.DenseReluDense.{name}" for name in ("wi", "wi_0", "wi_1"))

    return {
        "encoder": Trunk(
            layers="encoder.block",
            count="num_layers",
            writes=("layer.0.SelfAttention.o", "layer.1.DenseReluDense.wo"),
            inner=inner(1),
            outer="layer.1.DenseReluDense.wo",
            pre_norm=True,
            own_count="num_layers",
            first_differs=True,
        ),
        "decoder": Trunk(
            layers="decoder.block",
            count="num_decoder_layers",
            writes=("layer.0.SelfAttention.o", "layer.1.EncDecAttention.o", "layer.2.DenseReluDense.wo"),
            inner=inner(2),
            outer="layer.2.DenseReluDense.wo",
            pre_norm=True,
            own_count="num_layers",
            first_differs=True,
        ),
    }


TRUNKS: dict[str, dict[str, Trunk]] = {
    "bert": _bert_like(),
    "roberta": _bert_like(),
    "electra": _bert_like(),
    "camembert": _bert_like(),
    "xlm-roberta": _bert_like(),
    "ernie": _bert_like(),
    "distilbert": {
        "encoder": Trunk(
            layers="transformer.layer",
            count="n_layers",
            writes=("attention.out_lin", "ffn.lin2"),
            inner=("ffn.lin1",),
            outer="ffn.lin2",
        )
    },
    "modernbert": {
        "encoder": Trunk(
            layers="layers",
            count="num_hidden_layers",
            writes=("attn.Wo", "mlp.Wo"),
            inner=("mlp.Wi",),
            outer="mlp.Wo",
            pre_norm=True,
            first_differs=True,
        )
    },
    "marian": _bart_like(),
    "bart": _bart_like(),
    "mbart": _bart_like(pre_norm=True),
    "t5": _t5(),
}


def trunks_of(model_type: str, title: str) -> dict[str, Trunk]:
    """The stacks of a family by name, or an error for one whose layers cannot be taken out."""
    if model_type not in TRUNKS:
        raise ModelError(
            f"Layers and feed-forward blocks of {title} cannot be removed: "
            f"its layers share weights, or headviz does not know them. Possible: {', '.join(TRUNKS)}."
        )
    return TRUNKS[model_type]
