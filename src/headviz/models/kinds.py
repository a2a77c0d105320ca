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


def auto_class(kind: str) -> Any:
    """transformers' loader for a kind of model."""
    answer: Any = answer_to(kind)
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


def kind_to_load(raw: dict[str, Any], name: object, answer: Answer | None, new_head: bool) -> str:
    """The kind as which a folder with this configuration is loaded: that of the job asked for, else its own."""
    family = family_of(str(raw.get("model_type", "")))
    architectures = raw.get("architectures") or []
    saved_kind = next((kind for a in architectures if (kind := kind_named(a, family.has_decoder)) is not None), None)
    if not family.has_decoder:
        if answer is None:
            return CLASSIFICATION if new_head or saved_kind in (None, MASKED_LM) else saved_kind
        if not new_head and saved_kind not in (None, answer.kind) and MASKED_LM not in (saved_kind, answer.kind):
            raise ModelError(
                f"'{name}' is a {architectures[0]}, which has no {answer.trained}: its job is not {answer.job}."
            )
        return answer.kind
    if (answer is not None and answer.decoder is False) or (new_head and not family.classifies):
        raise ModelError(
            f"'{name}' is an encoder-decoder model ({family.title}): it translates, and takes no other head."
        )
    if new_head or saved_kind == CLASSIFICATION:
        return CLASSIFICATION
    translation = _translation()
    if saved_kind is None and architectures:
        raise ModelError(
            f"'{name}' is a {architectures[0]}, which neither classifies nor translates. Use a "
            "…ForSequenceClassification or …ForConditionalGeneration model."
        )
    return translation


def _translation() -> str:
    """The kind of an encoder-decoder model without a head; a ``ModelError`` where nothing can read it."""
    return answer_named("sentence").kind


def set_job(config: Any, kind: str, answer: Answer | None, name: object) -> None:
    """Write the job that was asked for into a configuration, if a model of this kind and size can have it."""
    if answer is None:
        return
    if answer.kind != kind or not answer.possible(int(config.num_labels)):
        jobs = [a.job for a in ANSWERS.values() if a.kind == kind and a.possible(int(config.num_labels))]
        outputs = f"{config.num_labels} output{'s' if config.num_labels > 1 else ''}"
        raise ModelError(f"'{name}' has {outputs}: its job can be {' or '.join(jobs)}, not {answer.job}.")
    if hasattr(config, JOB):
        delattr(config, JOB)
    answer.claim(config)
    if answer_in(kind, config.to_dict(), int(config.num_labels)) is not answer:
        setattr(config, JOB, answer.job)


def wrapped(model: Any, tokenizer: Any, present: HeadMask, name: str, kind: str) -> TransformerModel:
    """Our class around it, with headviz's attention inside."""
    config = model.config
    if kind == CLASSIFICATION and int(config.num_labels) > 1 and config.problem_type == "regression":
        raise ModelError(
            f"'{name}' gives several numbers for a text (problem_type 'regression'), and headviz takes one. If they "
            "are classes, name the job (--job class or --job labels, job='class' or job='labels')."
        )
    own_attention = family_of(config.model_type).own_attention
    if own_attention is not None:
        put_in(model, own_attention)
    answer = answer_to(kind)
    if answer is not None and "model" in answer.own:
        wrapper: TransformerModel = plugins.function(answer.own["model"])(model, tokenizer, present, name)
        return wrapper
    return (Embedder if kind == VECTOR else Classifier)(model, tokenizer, present, name, kind)


def use_our_attention(model: Any) -> None:
    """Make a transformers model call headviz's attention function, in place."""
    if family_of(model.config.model_type).own_attention is None:
        model.set_attn_implementation(NAME)
    else:  # transformers cannot set it here; our modules are put in by ``wrapped``
        model.config._attn_implementation = NAME
