"""BERT, the models built of its modules, and ERNIE, which is BERT with task embeddings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from ...heads import ENCODER
from .sheet import Attention, Family, Layers, PostNorm

LAYER = "encoder.layer.{i}"


def bert_like(
    title: str,
    model_type: str,
    read_out: Callable[[Any, Tensor], Tensor] | None = None,
    widen: str | None = None,
    pre_norm: bool = False,
    **facts: Any,
) -> Family:
    """A family whose layers are named as BERT's; ``facts`` are further fields of its sheet.

    ``read_out`` is given where a layer also computes what BERT's does, so that it runs in the fast stages.
    """
    return Family(
        title,
        model_type,
        attention={
            ENCODER: Attention(
                query=f"{LAYER}.attention.self.query",
                key=f"{LAYER}.attention.self.key",
                value=f"{LAYER}.attention.self.value",
                output=f"{LAYER}.attention.output.dense",
            )
        },
        layers={ENCODER: bert_layers(pre_norm=pre_norm)},
        embeddings="embeddings",
        post_norm=None
        if read_out is None
        else PostNorm(
            attention_norm=f"{LAYER}.attention.output.LayerNorm",
            inner=f"{LAYER}.intermediate.dense",
            activation=f"{LAYER}.intermediate.intermediate_act_fn",
            outer=f"{LAYER}.output.dense",
            output_norm=f"{LAYER}.output.LayerNorm",
            read_out=read_out,
            widen=widen,
        ),
        **facts,
    )


def bert_layers(output: str = "attention.output.dense", pre_norm: bool = False) -> Layers:
    """A stack whose feed-forward blocks are named as BERT's; ``output`` is where a layer has W_O."""
    return Layers(
        modules="encoder.layer",
        count="num_hidden_layers",
        writes=(output, "output.dense"),
        inner=("intermediate.dense",),
        outer="output.dense",
        neurons="intermediate_size",
        pre_norm=pre_norm,
    )


def pooled(model: Any, first: Tensor) -> Tensor:
    """The base model's pooler, then the classifier."""
    logits: Tensor = model.classifier(model.base_model.pooler(first[:, None]))
    return logits


def classifier_head(model: Any, first: Tensor) -> Tensor:
    """A head of its own that picks the first token."""
    logits: Tensor = model.classifier(first[:, None])
    return logits


BERT = bert_like("BERT", "bert", pooled)
ERNIE = bert_like("ERNIE", "ernie", pooled)
