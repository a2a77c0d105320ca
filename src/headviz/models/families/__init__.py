"""The table of supported model families, one sheet for each.

A new family is one file with its sheet, and one entry here; the contract tests then run over it. It needs
transformers' attention interface. ``FAMILIES`` is a plain dict: a plugin adds its sheet under its ``model_type``.
"""

from __future__ import annotations

from ...errors import ModelError
from .albert import ALBERT
from .bart import BART, MARIAN, MBART
from .bert import BERT, ERNIE
from .distilbert import DISTILBERT
from .electra import ELECTRA
from .modernbert import MODERNBERT
from .roberta import CAMEMBERT, ROBERTA, XLM_R
from .sheet import CROSS, DECODER, Family
from .t5 import T5

__all__ = ["CROSS", "DECODER", "FAMILIES", "Family", "family_of"]

FAMILIES: dict[str, Family] = {
    family.model_type: family
    for family in (
        BERT,
        ROBERTA,
        ELECTRA,
        DISTILBERT,
        CAMEMBERT,
        XLM_R,
        ERNIE,
        ALBERT,
        MODERNBERT,
        MARIAN,
        BART,
        MBART,
        T5,
    )
}


def family_of(model_type: str) -> Family:
    """The family of a ``config.model_type``, or an error that names the supported ones."""
    if model_type not in FAMILIES:
        titles = ", ".join(family.title for family in FAMILIES.values())
        raise ModelError(
            f"Models of type '{model_type or 'unknown'}' are not supported: their attention does not pass through "
            f"transformers' attention interface in a way headviz can mask. Supported families: {titles}."
        )
    return FAMILIES[model_type]
