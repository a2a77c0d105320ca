"""BERT, the models built of its modules, and ERNIE, which is BERT with task embeddings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from ...heads import ENCODER
from .sheet import Attention, Family, Layers, PostNorm

_LAYER = "encoder.layer.{i}"


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
                query=f"{_LAYER}.attention.self.query",
                key=f"{_LAYER}.attention.self.key",
                value=f"{_LAYER}.attention.self.value",
                output=f"{_LAYER}.attention.output.dense",
            )
        },
        layers={
            ENCODER: Layers(
                modules="encoder.layer",
                count="num_hidden_layers",
                writes=("attention.output.dense", "output.dense"),
                inner=("intermediate.dense",),
                outer="output.dense",
                neurons="intermediate_size",
                pre_norm=pre_norm,
            )
        },
        embeddings="embeddings",
        post_norm=None
        if read_out is None
        else PostNorm(
            attention_norm=f"{_LAYER}.attention.output.LayerNorm",
            inner=f"{_LAYER}.intermediate.dense",
            activation=f"{_LAYER}.intermediate.intermediate_act_fn",
            outer=f"{_LAYER}.output.dense",
            output_norm=f"{_LAYER}.output.LayerNorm",
            read_out=read_out,
            widen=widen,
        ),
        **facts,
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
