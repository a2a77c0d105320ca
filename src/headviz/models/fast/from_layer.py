"""A classifier from one of its layers on, with gradients: for work in which nothing changes below a layer.

The evaluator's stages start in the middle of a model, too, but on packed rows and without gradients. Here the same
families run their layer modules on a padded batch, so every operation is one of the whole pass.

Shapes: B texts, T tokens of the longest, D hidden size, W places of an answer, C outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from ...answers.answer import EACH, FIRST
from ...attention import HeadCall, running
from ...errors import ModelError
from ..places import PLACES, at
from .stages import OwnLayerStages, PostNormStages, kind_of

if TYPE_CHECKING:
    from ..classifier import Classifier, Encoding


def starts_at_layers(clf: Classifier, encodings: Sequence[Encoding]) -> bool:
    """Whether the model can start at any of its layers with a batch of these texts.

    Families with ``own_layers`` run them without a mask for padding, so there all texts must have one length.
    """
    kind, lengths = kind_of(clf), {len(e) for e in encodings}
    runs = kind is PostNormStages or (kind is OwnLayerStages and len(lengths) == 1)
    return runs and clf.answer.read_at in (FIRST, EACH) and clf.in_stages(encodings)


def embedded(clf: Classifier, batch: Mapping[str, Tensor]) -> Tensor:
    """What enters the first layer, [B, T, D]."""
    inputs = {name: batch[name] for name in ("input_ids", "token_type_ids") if name in batch}
    base: Any = clf.model.base_model
    hidden: Tensor = clf.module(clf.family.embeddings)(**inputs)
    widen = None if clf.family.post_norm is None else clf.family.post_norm.widening(base)
    return hidden if widen is None else widen(hidden)


def states_from(
    clf: Classifier, layer: int, hidden: Tensor, batch: Mapping[str, Tensor], call: HeadCall
) -> list[Tensor]:
    """What enters this layer and each one behind it, and what the last one gives: [B, T, D] each."""
    base: Any = clf.model.base_model
    layout, own_layers = clf.family.post_norm, clf.family.own_layers
    mask = batch["attention_mask"]
    if mask.dim() == 2:
        mask = mask[:, None, None].bool()
    keywords: dict[str, Any] = {"headviz": call}
    if layout is not None and layout.bias is not None:
        keywords["position_bias"] = layout.bias(base, hidden[:1])
    states, call.layer = [hidden], layer
    with running(call):
        for number in range(layer, clf.num_layers):
            if layout is not None:
                module = clf.module(layout.layer.format(**clf.family.place(clf.config, number)))
                out = module(states[-1], mask, **keywords)
                states.append(out if isinstance(out, Tensor) else out[0])
            elif own_layers is not None:
                states.append(own_layers.layer(base, number, states[-1], call))
    if not call.finished:
        raise ModelError(f"{clf.family.title} ran {call.layer} of {clf.num_layers} layers through headviz.")
    return states


def outputs_of(clf: Classifier, states: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
    """The logits [B, C] or [B, W, C] of what the last layer gives."""
    family = clf.family
    if clf.answer.read_at == EACH:
        return at(family.each_token(clf.model, states), batch[PLACES])
    if family.post_norm is not None:
        return family.post_norm.read_out(clf.model, states[:, 0])
    assert family.own_layers is not None
    return family.own_layers.read_out(clf.model, [states])
