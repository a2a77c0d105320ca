"""The kinds of model that headviz wraps: which class of transformers holds one, which class of ours wraps it."""

from __future__ import annotations

from typing import Any

from ..attention import NAME
from ..errors import ModelError
from ..heads import CLASSIFICATION, MASKED_LM, TRANSLATION, HeadMask
from .classifier import Classifier
from .families import family_of
from .families.own_attention import put_in
from .translator import Translator

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
    name, family = type(model).__name__, family_of(model.config.model_type)
    kinds = {part: kind for kind, part in NAMES.items() if kind != MASKED_LM or not family.has_decoder}
    if family.has_decoder:
        kinds |= dict.fromkeys(TRANSLATING_NAMES, TRANSLATION)
    for part, kind in kinds.items():
        if part in name:
            return kind
    if family.has_decoder:
        raise ModelError(
            f"{name} neither classifies nor translates. Use a …ForSequenceClassification or "
            "…ForConditionalGeneration model of its family."
        )
    raise ModelError(f"{name} has no classification head. Use a …ForSequenceClassification model.")


def wanted_kind(raw: dict[str, Any], name: object, head_asked: bool, masked_lm: bool) -> str:
    """The kind as which a folder with this configuration is loaded."""
    family = family_of(str(raw.get("model_type", "")))
    if not family.has_decoder:
        return MASKED_LM if masked_lm else CLASSIFICATION
    architectures = raw.get("architectures") or []
    if masked_lm or (head_asked and not family.classifies):
        raise ModelError(
            f"'{name}' is an encoder-decoder model ({family.title}): it translates, and takes no other head."
        )
    if head_asked or any(NAMES[CLASSIFICATION] in a for a in architectures):
        return CLASSIFICATION
    others = [a for a in architectures if not any(part in a for part in TRANSLATING_NAMES)]
    if others:
        raise ModelError(
            f"'{name}' is a {others[0]}, which neither classifies nor translates. Use a …ForSequenceClassification "
            "or …ForConditionalGeneration model."
        )
    return TRANSLATION


def wrapped(model: Any, tokenizer: Any, present: HeadMask, name: str, kind: str) -> Classifier | Translator:
    """Our class around it, with headviz's attention inside."""
    if kind == CLASSIFICATION and int(model.config.num_labels) > 1:
        _one_answer(model.config.problem_type, name)
    own = family_of(model.config.model_type).own_attention
    if own is not None:
        put_in(model, own)
    if kind == TRANSLATION:
        return Translator(model, tokenizer, present, name)
    return Classifier(model, tokenizer, present, name, kind)


def _one_answer(problem: str | None, name: str) -> None:
    """Refuse a model that gives a text several answers at once."""
    several = {
        "multi_label_classification": "says yes or no to each of its classes",
        "regression": "gives several numbers for a text",
    }
    if problem in several:
        raise ModelError(
            f"'{name}' {several[problem]} (problem_type '{problem}'), and headviz takes one answer for a text. If its "
            'classes do exclude each other, write "problem_type": "single_label_classification" into its config.json.'
        )


def use_our_attention(model: Any) -> None:
    """Make a transformers model call headviz's attention function, in place."""
    if family_of(model.config.model_type).own_attention is None:
        model.set_attn_implementation(NAME)
    else:  # transformers cannot set it here; our modules are put in by ``wrapped``
        model.config._attn_implementation = NAME
