"""The table of supported model families: where each keeps its attention.

A family needs transformers' attention interface. Adding one is one line here, and the contract
tests then run over it. Module paths are relative to ``model.base_model``; ``{i}`` is the layer.
Encoder-decoder models have a table of their own, with the paths of three stacks of heads.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import ModelError
from ..heads import ENCODER

CROSS, DECODER = "cross", "decoder"  # with ENCODER the stacks of heads, in the order of the grid's rows


@dataclass(frozen=True)
class Paths:
    """Where one stack keeps the matrices of a layer."""

    query: str
    key: str
    value: str
    output: str


@dataclass(frozen=True)
class Family:
    """What headviz knows of one ``model_type``."""

    title: str
    query: str  # path of W_Q; for a fused matrix, the path of W_QKV
    key: str
    value: str
    output: str  # path of W_O
    layers_path: str  # the list of layers
    embeddings: str  # the embedding module
    position_offset: bool = False  # positions start behind the padding index, which costs two places
    fused_qkv: bool = False
    shared_layers: bool = False  # one module serves several layers: masks yes, real pruning no
    # encoder-decoder models only; the paths above are then the encoder's
    cross: Paths | None = None  # the decoder's attention to the encoder
    decoder: Paths | None = None  # the decoder's attention to itself
    decoder_layers_path: str | None = None
    position_tables: tuple[
        str, ...
    ] = ()  # modules with a column for each head, one for each self-attending stack

    @property
    def translates(self) -> bool:
        """Whether it is an encoder-decoder model."""
        return self.decoder is not None

    @property
    def layers_paths(self) -> tuple[str, ...]:
        """Every list of layers."""
        return (self.layers_path, *((self.decoder_layers_path,) if self.decoder_layers_path else ()))

    def paths(self, stack: str) -> Paths:
        """The matrices of one stack."""
        found = {ENCODER: Paths(self.query, self.key, self.value, self.output)}
        if self.cross is not None and self.decoder is not None:
            found |= {CROSS: self.cross, DECODER: self.decoder}
        return found[stack]

    @property
    def prunable(self) -> bool:
        """Whether heads can really be removed, not only masked."""
        return not (self.fused_qkv or self.shared_layers)

    @property
    def why_not_prunable(self) -> str:
        if self.shared_layers:
            return (
                f"{self.title} uses one set of weights for all layers, so a head cannot leave one layer alone"
            )
        return f"{self.title} keeps query, key and value in one matrix, which headviz cannot slice"


def _bert_like(title: str, position_offset: bool = False) -> Family:
    attention = "encoder.layer.{i}.attention"
    return Family(
        title,
        query=f"{attention}.self.query",
        key=f"{attention}.self.key",
        value=f"{attention}.self.value",
        output=f"{attention}.output.dense",
        layers_path="encoder.layer",
        embeddings="embeddings",
        position_offset=position_offset,
    )


def _albert() -> Family:
    # {g} and {j} are the group and the layer inside it, filled in by the classifier
    attention = "encoder.albert_layer_groups.{g}.albert_layers.{j}.attention"
    return Family(
        "ALBERT",
        query=f"{attention}.query",
        key=f"{attention}.key",
        value=f"{attention}.value",
        output=f"{attention}.dense",
        layers_path="encoder.albert_layer_groups",
        embeddings="embeddings",
        shared_layers=True,
    )


def _bart_like(title: str) -> Family:
    def paths(attention: str) -> Paths:
        return Paths(*(f"{attention}.{name}_proj" for name in ("q", "k", "v", "out")))

    own = paths("encoder.layers.{i}.self_attn")
    return Family(
        title,
        query=own.query,
        key=own.key,
        value=own.value,
        output=own.output,
        layers_path="encoder.layers",
        embeddings="shared",
        cross=paths("decoder.layers.{i}.encoder_attn"),
        decoder=paths("decoder.layers.{i}.self_attn"),
        decoder_layers_path="decoder.layers",
    )


def _t5() -> Family:
    def paths(attention: str) -> Paths:
        return Paths(*(f"{attention}.{name}" for name in "qkvo"))

    own = paths("encoder.block.{i}.layer.0.SelfAttention")
    return Family(
        "T5",
        query=own.query,
        key=own.key,
        value=own.value,
        output=own.output,
        layers_path="encoder.block",
        embeddings="shared",
        cross=paths("decoder.block.{i}.layer.1.EncDecAttention"),
        decoder=paths("decoder.block.{i}.layer.0.SelfAttention"),
        decoder_layers_path="decoder.block",
        # the first layer's table serves all layers of its stack
        position_tables=(
            "encoder.block.0.layer.0.SelfAttention.relative_attention_bias",
            "decoder.block.0.layer.0.SelfAttention.relative_attention_bias",
        ),
    )


FAMILIES: dict[str, Family] = {
    "bert": _bert_like("BERT"),
    "roberta": _bert_like("RoBERTa", position_offset=True),
    "electra": _bert_like("ELECTRA"),
    "distilbert": Family(
        "DistilBERT",
        query="transformer.layer.{i}.attention.q_lin",
        key="transformer.layer.{i}.attention.k_lin",
        value="transformer.layer.{i}.attention.v_lin",
        output="transformer.layer.{i}.attention.out_lin",
        layers_path="transformer.layer",
        embeddings="embeddings",
    ),
    "camembert": _bert_like("CamemBERT", position_offset=True),
    "xlm-roberta": _bert_like("XLM-R", position_offset=True),
    "ernie": _bert_like("ERNIE"),
    "albert": _albert(),
    "modernbert": Family(
        "ModernBERT",
        query="layers.{i}.attn.Wqkv",
        key="layers.{i}.attn.Wqkv",
        value="layers.{i}.attn.Wqkv",
        output="layers.{i}.attn.Wo",
        layers_path="layers",
        embeddings="embeddings",
        fused_qkv=True,
    ),
}

TRANSLATION_FAMILIES: dict[str, Family] = {
    "marian": _bart_like("Marian"),
    "bart": _bart_like("BART"),
    "mbart": _bart_like("mBART"),
    "t5": _t5(),
}


def family_of(model_type: str) -> Family:
    """The family of a ``config.model_type``, or an error that names the supported ones."""
    known = FAMILIES | TRANSLATION_FAMILIES
    if model_type not in known:
        titles = ", ".join(f.title for f in known.values())
        raise ModelError(
            f"Models of type '{model_type or 'unknown'}' are not supported: their attention does not pass through "
            f"transformers' attention interface in a way headviz can mask. Supported families: {titles}."
        )
    return known[model_type]
