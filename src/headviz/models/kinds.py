"""The kinds of model that headviz wraps: which class of transformers holds one, which class of ours wraps it."""

from __future__ import annotations

from typing import Any

from ..errors import ModelError
from ..heads import CLASSIFICATION, MASKED_LM, TRANSLATION, HeadMask
from .classifier import Classifier
from .families import family_of
from .translator import Translator, grid_of

# what a transformers class of each kind is called, and what the kind's trained part is
NAMES = {CLASSIFICATION: "ForSequenceClassification", MASKED_LM: "ForMaskedLM"}
TRANSLATING_NAMES = ("ForConditionalGeneration", "MTModel")
HEADS = {
    CLASSIFICATION: "classification head",
    MASKED_LM: "masked-language head",
    TRANSLATION: "output layer for translating",
}


def auto_class(kind: str) -> Any:
    """transformers' loader for a kind of model."""
    from ..attention import transformers

    return {
        CLASSIFICATION: transformers.AutoModelForSequenceClassification,
        MASKED_LM: transformers.AutoModelForMaskedLM,
        TRANSLATION: transformers.AutoModelForSeq2SeqLM,
    }[kind]


def kind_of(model: Any) -> str:
    """The kind of a transformers model, or an error that says what is needed."""
    name = type(model).__name__
    if family_of(model.config.model_type).translates:
        if any(part in name for part in TRANSLATING_NAMES):
            return TRANSLATION
        raise ModelError(
            f"{name} does not translate. Use a …ForConditionalGeneration model of its family; "
            "encoder-decoder models with a classification head are not supported."
        )
    for kind, part in NAMES.items():
        if part in name:
            return kind
    raise ModelError(f"{name} has no classification head. Use a …ForSequenceClassification model.")


def wanted_kind(raw: dict[str, Any], name: object, head_asked: bool, masked_lm: bool) -> str:
    """The kind as which a folder with this configuration is loaded."""
    family = family_of(str(raw.get("model_type", "")))
    if not family.translates:
        return MASKED_LM if masked_lm else CLASSIFICATION
    if head_asked or masked_lm:
        raise ModelError(
            f"'{name}' is an encoder-decoder model ({family.title}): it translates, and takes no other head."
        )
    others = [a for a in raw.get("architectures") or [] if not any(part in a for part in TRANSLATING_NAMES)]
    if others:
        raise ModelError(
            f"'{name}' is a {others[0]}, which does not translate. Use a …ForConditionalGeneration model; "
            "encoder-decoder models with a classification head are not supported."
        )
    return TRANSLATION


def full_grid(config: Any, kind: str) -> HeadMask:
    """Every head of a model with this configuration, but those that ``config.pruned_heads`` says are gone."""
    grid = grid_of(config) if kind == TRANSLATION else family_of(config.model_type).grid(config)
    gone = getattr(config, "pruned_heads", None) or {}
    return HeadMask.full(*grid).without([(int(row), head) for row, heads in gone.items() for head in heads])


def forget_pruned_heads(config: Any) -> None:
    """Our own models say in ``present`` which heads they have, so that equal weights have equal digests."""
    vars(config).pop("pruned_heads", None)


def wrapped(model: Any, tokenizer: Any, present: HeadMask, name: str, kind: str) -> Classifier | Translator:
    """Our class around it."""
    if kind == TRANSLATION:
        return Translator(model, tokenizer, present, name)
    return Classifier(model, tokenizer, present, name, kind)
