"""The table of supported model families, one sheet for each.

A new family is its sheet and one entry here; the contract tests then run over it. It needs transformers' attention
interface, or attention modules of ours. Plugins add their sheets by model type.
"""

from __future__ import annotations

from collections.abc import Mapping

from ... import plugins
from ...errors import ModelError
from .bert import ALBERT, BERT, CAMEMBERT, DISTILBERT, ELECTRA, ERNIE, MODERNBERT, ROBERTA, XLM_R
from .encoder_decoder import BART, MARIAN, MBART, T5
from .interface import INTERFACE
from .own_attention import DEBERTA, DEBERTA_V2, MPNET, PHI3
from .sheet import CROSS, DECODER, Family

__all__ = ["CROSS", "DECODER", "FAMILIES", "Family", "family_of", "family_rows"]

FAMILIES: Mapping[str, Family] = plugins.Entries(
    "families",
    (
        BERT,
        ROBERTA,
        ELECTRA,
        DISTILBERT,
        CAMEMBERT,
        XLM_R,
        ERNIE,
        ALBERT,
        MODERNBERT,
        MPNET,
        DEBERTA,
        DEBERTA_V2,
        *INTERFACE,
        PHI3,
        MARIAN,
        BART,
        MBART,
        T5,
    ),
)


def family_of(model_type: str) -> Family:
    """The family of a ``config.model_type``, or an error that names the supported ones."""
    if model_type not in FAMILIES:
        titles = ", ".join(family.title for family in FAMILIES.values())
        raise ModelError(
            f"Models of type '{model_type or 'unknown'}' are not supported: {REFUSED.get(model_type, UNKNOWN)}. "
            f"Supported families: {titles}."
        )
    return FAMILIES[model_type]


def family_rows() -> list[tuple[str, ...]]:
    """The catalogue for people: family, model type, real pruning, conductance maps, evaluation under a mask."""
    rows: list[tuple[str, ...]] = []
    for family in FAMILIES.values():
        how = "layer by layer" if family.post_norm or family.own_layers else "whole passes"
        rows.append(
            (
                family.title + ("" if family.classifies else " (translation only)"),
                family.model_type,
                f"no: {family.why_not_prunable}" if family.why_not_prunable else "yes",
                "no" if not family.classifies else f"no: {family.why_no_maps}" if family.why_no_maps else "yes",
                how if family.classifies else "-",
            )
        )
    return rows


_PASSES_OVER = "its attention does not pass through transformers' attention interface, so a mask would be passed over"
_WINDOWS = "its attention is cut into windows or blocks of its own, which do not call transformers' attention interface"
_NO_HEADS = "it mixes tokens without attention heads"

# model types that are refused, and why: their attention would pass a mask over, or is no grid of heads
REFUSED = {
    **dict.fromkeys(
        "layoutlmv3 lilt luke mluke roformer rembert megatron-bert ibert canine squeezebert bloom gptj gpt_neo falcon "
        "xlm flaubert xlnet nystromformer tapas funnel mpt codegen ctrl".split(),
        _PASSES_OVER,
    ),
    **dict.fromkeys("longformer big_bird bigbird_pegasus led reformer yoso mra".split(), _WINDOWS),
    **dict.fromkeys("fnet mamba mamba2 falcon_mamba rwkv xlstm".split(), _NO_HEADS),
    "convbert": "it mixes heads with convolutions in one layer",
    "gpt_oss": "its attention has sinks, which headviz's attention does not compute",
    "gemma3": "it reads images as well; the text model alone is supported (gemma3_text)",
}
UNKNOWN = "headviz does not know where its heads are"
