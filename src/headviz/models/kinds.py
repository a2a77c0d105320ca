"""The kinds of model that headviz wraps: which class of transformers holds one, which class of ours wraps it."""

from __future__ import annotations

from typing import Any

from .. import plugins
from ..answers import ANSWERS
from ..answers.answer import JOB, Answer
from ..answers.catalogue import answer_in, answer_named, kind_named
from ..attention import NAME, transformers
from ..errors import ModelError
from ..heads import CLASSIFICATION, MASKED_LM, VECTOR, HeadMask
from .base import TransformerModel
from .classifier import Classifier
from .families import family_of
from .families.own_attention import put_in
from .vector import Embedder

# what a model without a head that we read is good for
AS_IT_IS = "headviz.masked(model, mask) and headviz.prune_heads(model, heads) work on the transformers model itself."


def answer_to(kind: str) -> Answer | None:
    """The first of the answers of a kind: they share transformers' class and what its trained part is called."""
    return next((answer for answer in ANSWERS.values() if answer.kind == kind), None)


def trained_part(kind: str) -> str:
    """What a kind's trained part is called; empty for an unknown kind."""
    answer = answer_to(kind)
    return "" if answer is None else answer.trained


def auto_class(kind: str) -> Any:
    """transformers' loader for a kind of model."""
    answer = answer_to(kind)
    assert answer is not None
    return getattr(transformers, answer.auto_class)


def kind_of(model: Any) -> str:
    """The kind of a transformers model, or an error that says what is needed."""
    name, family = type(model).__name__, family_of(model.config.model_type)
    kind = kind_named(name, family.has_decoder)
    if kind is not None:
        return kind
    if family.has_decoder:
        _translation()
        raise ModelError(
            f"{name} neither classifies nor translates. Use a …ForSequenceClassification or "
            "…ForConditionalGeneration model of its family."
        )
    raise ModelError(f"{name} has no classification head. Use a …ForSequenceClassification model. {AS_IT_IS}")


def wanted_kind(raw: dict[str, Any], name: object, asked: Answer | None, head_asked: bool) -> str:
    """The kind as which a folder with this configuration is loaded: that of the job ``asked`` for, else its own."""
    family = family_of(str(raw.get("model_type", "")))
    architectures = raw.get("architectures") or []
    own = next((kind for a in architectures if (kind := kind_named(a, family.has_decoder)) is not None), None)
    if not family.has_decoder:
        if asked is None:
            return CLASSIFICATION if head_asked or own in (None, MASKED_LM) else own
        if not head_asked and own not in (None, asked.kind) and MASKED_LM not in (own, asked.kind):
            raise ModelError(
                f"'{name}' is a {architectures[0]}, which has no {asked.trained}: its job is not {asked.job}."
            )
        return asked.kind
    if (asked is not None and asked.decoder is False) or (head_asked and not family.classifies):
        raise ModelError(
            f"'{name}' is an encoder-decoder model ({family.title}): it translates, and takes no other head."
        )
    if head_asked or own == CLASSIFICATION:
        return CLASSIFICATION
    if own is None and architectures:
        raise ModelError(
            f"'{name}' is a {architectures[0]}, which neither classifies nor translates. Use a "
            "…ForSequenceClassification or …ForConditionalGeneration model."
        )
    return _translation()


def _translation() -> str:
    """The kind of an encoder-decoder model without a head; a ``ModelError`` where nothing can read it."""
    return answer_named("sentence").kind


def claimed(config: Any, kind: str, asked: Answer | None, name: object) -> None:
    """Write the job ``asked`` for into a configuration, if a model of this kind and size can have it."""
    if asked is None:
        return
    if asked.kind != kind or not asked.possible(int(config.num_labels)):
        fit = [a.job for a in ANSWERS.values() if a.kind == kind and a.possible(int(config.num_labels))]
        outputs = f"{config.num_labels} output{'s' if config.num_labels > 1 else ''}"
        raise ModelError(f"'{name}' has {outputs}: its job can be {' or '.join(fit)}, not {asked.job}.")
    if hasattr(config, JOB):
        delattr(config, JOB)
    asked.claim(config)
    if answer_in(kind, config.to_dict(), int(config.num_labels)) is not asked:
        setattr(config, JOB, asked.job)


def wrapped(model: Any, tokenizer: Any, present: HeadMask, name: str, kind: str) -> TransformerModel:
    """Our class around it, with headviz's attention inside."""
    if kind == CLASSIFICATION and int(model.config.num_labels) > 1:
        _one_answer(model.config.problem_type, name)
    own = family_of(model.config.model_type).own_attention
    if own is not None:
        put_in(model, own)
    answer = answer_to(kind)
    if answer is not None and "model" in answer.own:
        made: TransformerModel = plugins.function(answer.own["model"])(model, tokenizer, present, name)
        return made
    return (Embedder if kind == VECTOR else Classifier)(model, tokenizer, present, name, kind)


def _one_answer(problem: str | None, name: str) -> None:
    """Refuse a model that gives a text several numbers."""
    if problem == "regression":
        raise ModelError(
            f"'{name}' gives several numbers for a text (problem_type '{problem}'), and headviz takes one. If they are "
            "classes, name the job (--job class or --job labels, job='class' or job='labels')."
        )


def use_our_attention(model: Any) -> None:
    """Make a transformers model call headviz's attention function, in place."""
    if family_of(model.config.model_type).own_attention is None:
        model.set_attn_implementation(NAME)
    else:  # transformers cannot set it here; our modules are put in by ``wrapped``
        model.config._attn_implementation = NAME
