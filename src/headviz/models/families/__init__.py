"""The table of supported model families, one sheet for each.

A new family is its sheet and one entry here; the contract tests then run over it. It needs transformers' attention
interface, or attention modules of ours. Plugins add their sheets under their ``model_type``.
"""

from __future__ import annotations

from collections.abc import Mapping

from ... import plugins
from ...errors import ModelError
from .albert import ALBERT
from .bart import BART, MARIAN, MBART
from .bert import BERT, ERNIE
from .deberta import DEBERTA, DEBERTA_V2
from .distilbert import DISTILBERT
from .electra import ELECTRA
from .interface import INTERFACE
from .modernbert import MODERNBERT
from .mpnet import MPNET
from .phi3 import PHI3
from .refused import REFUSED, UNKNOWN
from .roberta import CAMEMBERT, ROBERTA, XLM_R
from .sheet import CROSS, DECODER, Family
from .t5 import T5

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
