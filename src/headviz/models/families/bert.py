"""BERT and its kin: BERT's layers (ELECTRA, RoBERTa, CamemBERT, XLM-R, ERNIE), DistilBERT's under other names, ALBERT.

ModernBERT has layers of its own: norms in front, rotary positions, a sliding window in most, W_QKV in one matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ...attention import HeadCall
from ...heads import ENCODER
from ..places import each_token
from .sheet import Attention, Family, Layers, OwnLayers, PostNorm, fused

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
        post_norm=None if read_out is None else bert_post_norm(read_out, widen=widen),
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


def bert_post_norm(
    read_out: Callable[[Any, Tensor], Tensor], norm: str = "attention.output.LayerNorm", **facts: Any
) -> PostNorm:
    """The rest of a layer, named as BERT's; ``norm`` is where a layer has the attention's norm."""
    return PostNorm(
        attention_norm=f"{LAYER}.{norm}",
        inner=f"{LAYER}.intermediate.dense",
        activation=f"{LAYER}.intermediate.intermediate_act_fn",
        outer=f"{LAYER}.output.dense",
        output_norm=f"{LAYER}.output.LayerNorm",
        read_out=read_out,
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


ELECTRA = bert_like("ELECTRA", "electra", classifier_head, widen="embeddings_project", tiny={"embedding_size": 16})


ROBERTA_FACTS: dict[str, Any] = {
    "position_offset": True,
    "tiny": {"max_position_embeddings": 66, "type_vocab_size": 1, "pad_token_id": 1},
}

ROBERTA = bert_like("RoBERTa", "roberta", classifier_head, **ROBERTA_FACTS)
CAMEMBERT = bert_like("CamemBERT", "camembert", classifier_head, **ROBERTA_FACTS)
XLM_R = bert_like("XLM-R", "xlm-roberta", classifier_head, **ROBERTA_FACTS)


_LAYER = "transformer.layer.{i}"


def _read_out(model: Any, first: Tensor) -> Tensor:
    logits: Tensor = model.classifier(torch.relu(model.pre_classifier(first)))
    return logits


DISTILBERT = Family(
    "DistilBERT",
    "distilbert",
    attention={
        ENCODER: Attention(
            query=f"{_LAYER}.attention.q_lin",
            key=f"{_LAYER}.attention.k_lin",
            value=f"{_LAYER}.attention.v_lin",
            output=f"{_LAYER}.attention.out_lin",
        )
    },
    layers={
        ENCODER: Layers(
            modules="transformer.layer",
            count="n_layers",
            writes=("attention.out_lin", "ffn.lin2"),
            inner=("ffn.lin1",),
            outer="ffn.lin2",
            neurons="hidden_dim",
        )
    },
    embeddings="embeddings",
    post_norm=PostNorm(
        attention_norm=f"{_LAYER}.sa_layer_norm",
        inner=f"{_LAYER}.ffn.lin1",
        activation=f"{_LAYER}.ffn.activation",
        outer=f"{_LAYER}.ffn.lin2",
        output_norm=f"{_LAYER}.output_layer_norm",
        read_out=_read_out,
    ),
    tiny={"hidden_dim": 64},
)


# -----------------------------------------------------------------------------------------------
# ALBERT: one set of weights for all layers, or for groups of them. Heads can be masked layer by layer, not removed.


_ALBERT_LAYER = "encoder.albert_layer_groups.{g}.albert_layers.{j}"  # the group, and the layer inside it


def _place(config: Any, layer: int) -> dict[str, int]:
    outer, inner = divmod(layer, int(config.inner_group_num))
    return {"g": int(outer / (config.num_hidden_layers / config.num_hidden_groups)), "j": inner}


def _grid(config: Any) -> tuple[int, int]:
    return int(config.num_hidden_layers) * int(config.inner_group_num), int(config.num_attention_heads)


def _albert_read_out(model: Any, first: Tensor) -> Tensor:
    base = model.base_model
    logits: Tensor = model.classifier(base.pooler_activation(base.pooler(first)))
    return logits


ALBERT = Family(
    "ALBERT",
    "albert",
    attention={
        ENCODER: Attention(
            query=f"{_ALBERT_LAYER}.attention.query",
            key=f"{_ALBERT_LAYER}.attention.key",
            value=f"{_ALBERT_LAYER}.attention.value",
            output=f"{_ALBERT_LAYER}.attention.dense",
        )
    },
    layers={ENCODER: Layers("encoder.albert_layer_groups")},
    embeddings="embeddings",
    post_norm=PostNorm(
        attention_norm=f"{_ALBERT_LAYER}.attention.LayerNorm",
        inner=f"{_ALBERT_LAYER}.ffn",
        activation=f"{_ALBERT_LAYER}.activation",
        outer=f"{_ALBERT_LAYER}.ffn_output",
        output_norm=f"{_ALBERT_LAYER}.full_layer_layer_norm",
        read_out=_albert_read_out,
        widen="encoder.embedding_hidden_mapping_in",
    ),
    grid=_grid,
    place=_place,
    shared_layers=True,
    why_not_prunable="ALBERT uses one set of weights for all layers, so a head cannot leave one layer alone",
    why_layers_stay="its layers share weights",
    tiny={"embedding_size": 16},
)


def _modern_layer(base: Any, layer: int, rows: Tensor, call: HeadCall) -> Tensor:
    """[B, T, D]. Without padding only the sliding window needs a mask."""
    module = base.layers[layer]
    place = torch.arange(rows.shape[1], device=rows.device)
    angles = base.rotary_emb(rows, place[None], module.attention_type)
    window = module.attn.sliding_window
    near = None
    if window is not None and window <= len(place):
        near = _modern_near(window, place)[None, None]
    out: Tensor = module(rows, attention_mask=near, position_embeddings=angles, headviz=call)
    return out


def _modern_states(base: Any, rows: Tensor) -> Tensor:
    out: Tensor = base.final_norm(rows)
    return out


def _modern_read_out(model: Any, groups: Sequence[Tensor]) -> Tensor:
    states = [_modern_states(model.base_model, rows) for rows in groups]
    first = model.config.classifier_pooling == "cls"
    pooled = torch.cat([rows[:, 0] if first else rows.mean(dim=1) for rows in states])
    logits: Tensor = model.classifier(model.head(pooled))
    return logits


def _modern_each_token(model: Any, states: Tensor) -> Tensor:
    return each_token(model, _modern_states(model.base_model, states))


def _modern_near(window: int, place: Tensor) -> Tensor:
    """[T, T] what the sliding window lets each token see."""
    return (place[:, None] - place[None]).abs() < window


def _modern_apart(config: Any, apart: Tensor) -> dict[str, Tensor]:
    place = torch.arange(apart.shape[-1], device=apart.device)
    near = apart & _modern_near(int(config.sliding_window) + 1, place)  # as its attention modules count
    return {"full_attention": apart[:, None], "sliding_attention": near[:, None]}


MODERNBERT = Family(
    "ModernBERT",
    "modernbert",
    attention={ENCODER: fused("layers.{i}.attn.Wqkv", "layers.{i}.attn.Wo", reader="layers.{i}.mlp_norm")},
    layers={
        ENCODER: Layers(
            modules="layers",
            count="num_hidden_layers",
            writes=("attn.Wo", "mlp.Wo"),
            inner=("mlp.Wi",),
            outer="mlp.Wo",
            neurons="intermediate_size",
            gated=2,
            pre_norm=True,
            first_differs=True,
        )
    },
    embeddings="embeddings",
    own_layers=OwnLayers(_modern_layer, _modern_read_out, _modern_states),
    each_token=_modern_each_token,
    apart=_modern_apart,
    tiny={
        "cls_token_id": 2,
        "sep_token_id": 3,
        "bos_token_id": 2,
        "eos_token_id": 3,
        "global_attn_every_n_layers": 2,
        "local_attention": 8,
    },
)
