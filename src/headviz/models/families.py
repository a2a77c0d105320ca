"""The table of supported model families: where each keeps its attention.

A family needs transformers' attention interface. Adding one is one line here, and the contract
tests then run over it. Module paths are relative to ``model.base_model``; ``{i}`` is the layer.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import ModelError


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


def family_of(model_type: str) -> Family:
    """The family of a ``config.model_type``, or an error that names the supported ones."""
    if model_type not in FAMILIES:
        titles = ", ".join(f.title for f in FAMILIES.values())
        raise ModelError(
            f"Models of type '{model_type or 'unknown'}' are not supported: their attention does not pass through "
            f"transformers' attention interface in a way headviz can mask. Supported families: {titles}."
        )
    return FAMILIES[model_type]
