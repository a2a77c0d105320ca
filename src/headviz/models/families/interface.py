"""Families that call transformers' attention interface and need no more than their paths: one line each.

Most are evaluated in whole passes. The decoders among them read a text from left to right and answer from its last
token.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from ...attention import HeadCall, transformers
from ...heads import ENCODER
from ..places import logits_of
from .bert import ROBERTA_FACTS, bert_like, classifier_head, pooled
from .sheet import Attention, Family, Layers, OwnLayers, fused

_LAYER = "layers.{i}"
GATED, PLAIN = (("mlp.gate_proj", "mlp.up_proj"), "mlp.down_proj"), (("mlp.fc1",), "mlp.fc2")


def rotary(
    title: str,
    model_type: str,
    ffn: tuple[tuple[str, ...], str] = GATED,
    *,
    output: str = "o_proj",
    reader: str = f"{_LAYER}.post_attention_layernorm",
    embeddings: str = "embed_tokens",
    pre_norm: bool = True,
    **facts: Any,
) -> Family:
    """A family whose modules are named as Llama's."""
    inner, outer = ffn
    return Family(
        title,
        model_type,
        attention={
            ENCODER: Attention(
                query=f"{_LAYER}.self_attn.q_proj",
                key=f"{_LAYER}.self_attn.k_proj",
                value=f"{_LAYER}.self_attn.v_proj",
                output=f"{_LAYER}.self_attn.{output}",
                reader=reader,
            )
        },
        layers={
            ENCODER: Layers(
                modules="layers",
                count="num_hidden_layers",
                writes=(f"self_attn.{output}", outer),
                inner=inner,
                outer=outer,
                neurons="intermediate_size",
                pre_norm=pre_norm,
                reader="" if pre_norm else "post_mlp_layernorm",
            )
        },
        embeddings=embeddings,
        **facts,
    )


def layer_by_layer(read_out: Callable[[Any, Tensor], Tensor]) -> OwnLayers:
    """How the encoders among them run layer by layer; they answer from the first token."""

    def layer(base: Any, number: int, rows: Tensor, call: HeadCall) -> Tensor:
        place = torch.arange(rows.shape[1], device=rows.device)[None]
        out: Tensor = base.layers[number](
            rows, attention_mask=None, position_embeddings=base.rotary_emb(rows, place), headviz=call
        )
        return out

    return OwnLayers(layer, lambda model, groups: read_out(model, torch.cat([rows[:, 0] for rows in groups])))


def last_token(model: Any, batch: Mapping[str, Tensor], keywords: Mapping[str, Any]) -> Tensor:
    """The logits at each text's last token. transformers looks for it in the ids, which embeddings lack."""
    if not type(model).__name__.endswith("ForSequenceClassification"):  # answers from every token
        return logits_of(model(**batch, use_cache=False, **keywords))
    states = model.base_model(**batch, use_cache=False, **keywords).last_hidden_state
    last = batch["attention_mask"].sum(dim=1) - 1
    logits: Tensor = model.score(states[torch.arange(last.shape[0], device=states.device), last])
    return logits


def decoder(
    title: str, model_type: str, ffn: tuple[tuple[str, ...], str] = GATED, groups: int = 2, **facts: Any
) -> Family:
    """A decoder with a classification head of transformers' generic kind."""
    tiny = {"num_key_value_heads": groups, "head_dim": 8, **facts.pop("tiny", {})}
    return rotary(title, model_type, ffn, forward=last_token, tiny=tiny, **facts)


_POST_NORM: dict[str, Any] = {"embeddings": "embeddings", "pre_norm": False}


def _scaled(model: Any, batch: Mapping[str, Tensor], keywords: Mapping[str, Any]) -> Tensor:
    """ESM shrinks the embeddings of ids by its rate of hidden tokens in training, but takes embeddings as they are."""
    inputs = dict(batch)
    if model.config.token_dropout and "inputs_embeds" in inputs:
        inputs["inputs_embeds"] = inputs["inputs_embeds"] * (1 - 0.15 * 0.8)
    return logits_of(model(**inputs, **keywords))


def _bounded(model: Any, batch: Mapping[str, Tensor], keywords: Mapping[str, Any]) -> Tensor:
    """MobileBERT joins each token with its neighbours. Past the end of a text is nothing, also where padding stands.

    As transformers has it, the last token would change with the batch wherever the embedding of [PAD] is not 0.
    """
    inputs = dict(batch)
    ids = inputs.pop("input_ids", None)
    words = inputs["inputs_embeds"] if ids is None else model.get_input_embeddings()(ids)
    inputs["inputs_embeds"] = words * inputs["attention_mask"].unsqueeze(-1).to(words.dtype)
    return logits_of(model(**inputs, **keywords))


INTERFACE = (
    bert_like("Data2Vec-text", "data2vec-text", classifier_head, **ROBERTA_FACTS),
    bert_like("RoBERTa-PreLN", "roberta-prelayernorm", pre_norm=True, **ROBERTA_FACTS),
    bert_like("XLM-R-XL", "xlm-roberta-xl", pre_norm=True, **ROBERTA_FACTS),
    bert_like("LayoutLM (text only)", "layoutlm", tiny={"max_2d_position_embeddings": 16}),
    bert_like(
        "ESM",
        "esm",
        pre_norm=True,
        position_offset=True,
        forward=_scaled,
        tiny={**ROBERTA_FACTS["tiny"], "mask_token_id": 4, "position_embedding_type": "rotary", "token_dropout": True},
    ),
    bert_like(
        "MobileBERT",
        "mobilebert",
        head_size=lambda config: int(config.true_hidden_size) // int(config.num_attention_heads),
        forward=_bounded,
        why_layers_stay="its layers hold several feed-forward blocks each",
        tiny={"embedding_size": 16, "intra_bottleneck_size": 16, "num_feedforward_networks": 2},
    ),
    rotary("NomicBERT", "nomic_bert", own_layers=layer_by_layer(pooled), **_POST_NORM),
    rotary("GTE", "gte", own_layers=layer_by_layer(pooled), **_POST_NORM),
    rotary(
        "Jina v3",
        "jina_embeddings_v3",
        PLAIN,
        own_layers=layer_by_layer(classifier_head),
        **_POST_NORM,
        tiny={"pad_token_id": 1},
    ),
    rotary("EuroBERT", "eurobert", tiny={"num_key_value_heads": 2, "head_dim": 8}),
    Family(
        "GPT-2",
        "gpt2",
        attention={ENCODER: fused("h.{i}.attn.c_attn", "h.{i}.attn.c_proj", reader="h.{i}.ln_2")},
        layers={
            ENCODER: Layers(
                modules="h",
                count="num_hidden_layers",
                writes=("attn.c_proj", "mlp.c_proj"),
                inner=("mlp.c_fc",),
                outer="mlp.c_proj",
                pre_norm=True,
            )
        },
        embeddings="wte",
        forward=last_token,
        matrix=transformers.pytorch_utils.Conv1D,
        why_layers_stay="its matrices are Conv1D modules, which do not run without inputs",
        why_not_empty="GPT-2 cannot cut a matrix without heads into query, key and value",
    ),
    decoder("Llama", "llama"),
    decoder("Mistral", "mistral", tiny={"sliding_window": 4}),
    decoder("Qwen2", "qwen2", tiny={"layer_types": ["full_attention"] * 3, "vocab_size": 96}),
    decoder("Qwen3", "qwen3"),
    decoder("Gemma", "gemma"),
    decoder("Gemma 2", "gemma2", reader="", tiny={"sliding_window": 4, "query_pre_attn_scalar": 8}),
    decoder("Gemma 3 (text only)", "gemma3_text", reader="", tiny={"sliding_window": 4, "query_pre_attn_scalar": 8}),
    decoder("SmolLM3", "smollm3"),
    decoder(
        "OLMo-2",
        "olmo2",
        reader="",
        why_not_prunable="its queries and keys are normalised over all heads of a layer together",
    ),
    Family(
        "GPT-NeoX",
        "gpt_neox",
        attention={
            ENCODER: fused(f"{_LAYER}.attention.query_key_value", f"{_LAYER}.attention.dense", side_by_side=True)
        },
        layers={
            ENCODER: Layers(
                modules="layers",
                count="num_hidden_layers",
                writes=("attention.dense", "mlp.dense_4h_to_h"),
                inner=("mlp.dense_h_to_4h",),
                outer="mlp.dense_4h_to_h",
                neurons="intermediate_size",
                pre_norm=True,
            )
        },
        embeddings="embed_in",
        forward=last_token,
        why_not_empty="GPT-NeoX cannot cut a matrix without heads into query, key and value",
    ),
    decoder("Ministral", "ministral"),
)
