"""A classifier in stages: embed, then layer after layer, then read out.

Evaluation under many masks starts in the middle of the model, from states that the mask cannot change. A stage
works on packed rows without padding (see ``packing``). The classifier is not edited; fused or converted weights are
copies.

The family's sheet decides: with ``post_norm`` it runs in the fast stages, with ``own_layers`` in its own modules one
by one, and with neither in whole passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from ...attention import Gate
from ...heads import TRANSLATION
from .own_layers import OwnLayerStages, WholePasses
from .packing import Chunk
from .post_norm import PostNormStages

if TYPE_CHECKING:
    from ..classifier import Classifier, Encoding

Gates = Sequence[Gate]  # one per layer, as ``Classifier.gates`` makes them


class Stages(Protocol):
    """What an evaluator needs of a model."""

    how: str  # how a mask is evaluated, in words
    splits: bool  # whether ``context`` and ``finish`` exist, so that a layer can be resumed behind its attention
    first_only: bool  # whether the last layer's states are those of the first tokens alone
    dtype: torch.dtype

    def embed(self, chunk: Chunk, encodings: Sequence[Encoding]) -> Tensor: ...

    def layer(self, layer: int, hidden: Tensor, chunk: Chunk, gates: Gates) -> Tensor: ...

    def context(self, layer: int, hidden: Tensor, chunk: Chunk) -> Tensor: ...

    def finish(self, layer: int, hidden: Tensor, context: Tensor, gates: Gates) -> Tensor: ...

    def entry(self, layer: int, hidden: Tensor, chunk: Chunk) -> Tensor: ...

    def read_out(self, hidden: Tensor, chunk: Chunk) -> Tensor: ...


def stages_for(clf: Classifier, dtype: torch.dtype | None = None) -> Stages:
    """The fastest stages that the family's sheet describes."""
    clf.require_described()
    dtype, family = clf.dtype if dtype is None else dtype, clf.family
    kind = _kind(clf)
    if kind is PostNormStages and family.post_norm is not None:
        return PostNormStages(clf, family.post_norm, dtype)
    if kind is OwnLayerStages and family.own_layers is not None:
        return OwnLayerStages(clf, family.own_layers, dtype)
    return WholePasses(clf, dtype)


def is_fast(clf: Classifier) -> bool:
    """Whether the fast stages know this model, which repairs and lower precision need."""
    return _kind(clf) is PostNormStages


def how_evaluated(clf: Classifier) -> str:
    """How this model is evaluated under a mask, in words."""
    return "every mask translates anew" if clf.kind == TRANSLATION else _kind(clf).how


def _kind(clf: Classifier) -> type[PostNormStages | OwnLayerStages | WholePasses]:
    family = clf.family
    if getattr(clf.config, "is_decoder", False):  # a causal mask, which the other two leave out
        return WholePasses
    if family.post_norm is not None:
        return PostNormStages
    return WholePasses if family.own_layers is None else OwnLayerStages
