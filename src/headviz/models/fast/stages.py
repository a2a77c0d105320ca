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

from ...answers.answer import EACH
from ...attention import Filled, Gate, HeadCall, running
from ...heads import TRANSLATION
from ..classifier import Encoding
from ..families.sheet import OwnLayers
from .packing import Chunk, Group, embed, read_each
from .post_norm import PostNormStages

if TYPE_CHECKING:
    from ..classifier import Classifier


class _InOnePiece:
    """Stages whose layers cannot be resumed behind their attention. All rows are computed."""

    splits = False
    first_only = False

    def __init__(self, clf: Classifier, dtype: torch.dtype) -> None:
        if dtype != clf.dtype:
            raise ValueError(f"{clf.family.title} is evaluated in its own precision only")
        self.clf, self.dtype = clf, dtype

    def entry(self, layer: int, hidden: Tensor, chunk: Chunk) -> Tensor:
        return hidden

    def context(self, layer: int, hidden: Tensor, chunk: Chunk) -> Tensor:
        raise NotImplementedError("this family's layers are one piece; ask `splits` first")

    def finish(self, layer: int, hidden: Tensor, context: Tensor, gates: Sequence[Gate]) -> Tensor:
        raise NotImplementedError("this family's layers are one piece; ask `splits` first")


class OwnLayerStages(_InOnePiece):
    """The layer modules as they are; texts of equal length run as a batch without padding."""

    how = "the model's own layers, one by one"

    def __init__(self, clf: Classifier, own: OwnLayers, dtype: torch.dtype) -> None:
        super().__init__(clf, dtype)
        self.own = own

    @torch.inference_mode()
    def embed(self, chunk: Chunk, encodings: Sequence[Encoding]) -> Tensor:
        """[N, D]"""
        return embed(self.clf, chunk, encodings)

    @torch.inference_mode()
    def layer(self, layer: int, hidden: Tensor, chunk: Chunk, gates: Sequence[Gate]) -> Tensor:
        out = torch.empty_like(hidden)
        for g, rows in zip(chunk.groups, _groups(hidden, chunk), strict=True):
            call = HeadCall(_gates_of(gates, g), layer=layer)
            with running(call):
                out[g.start : g.stop] = self.own.layer(self.clf.model.base_model, layer, rows, call).flatten(0, 1)
        return out

    @torch.inference_mode()
    def read_out(self, hidden: Tensor, chunk: Chunk, encodings: Sequence[Encoding]) -> Tensor:
        """[n, C] or [n, W, C] in float32."""
        if self.clf.answer.read_at == EACH:
            return read_each(self.clf, hidden, chunk, encodings, self.clf.family.each_token)
        return self.own.read_out(self.clf.model, _groups(hidden, chunk)).float()


class WholePasses(_InOnePiece):
    """The model as a whole, for families of which headviz knows only the attention.

    The token ids take the place of hidden states: every layer hands them on, and the last one runs the model.
    Results are exact; nothing is reused from one mask to the next.
    """

    how = "whole passes, nothing is reused"

    def embed(self, chunk: Chunk, encodings: Sequence[Encoding]) -> Tensor:
        """Token ids and types, [N, 2]."""
        rows = [pair for i in chunk.index for pair in zip(encodings[i].ids, encodings[i].types, strict=True)]
        return torch.tensor(rows, dtype=torch.long, device=self.clf.device)

    @torch.inference_mode()
    def layer(self, layer: int, hidden: Tensor, chunk: Chunk, gates: Sequence[Gate]) -> Tensor:
        """The ids again; from the last layer the logits [n, C], or [N, C] of every token."""
        if layer < self.clf.num_layers - 1:
            return hidden
        logits = []
        for g, texts in zip(chunk.groups, _groups(hidden, chunk), strict=True):
            members = [Encoding(ids, types, False, []) for ids, types in texts.transpose(1, 2).tolist()]
            call = HeadCall(_gates_of(gates, g), order=self.clf.order)
            outputs = self.clf.outputs(self.clf.collate(members), call)
            logits.append(outputs if outputs.dim() == 2 else outputs.flatten(0, 1))
        return torch.cat(logits)

    def read_out(self, hidden: Tensor, chunk: Chunk, encodings: Sequence[Encoding]) -> Tensor:
        """[n, C] or [n, W, C] in float32."""
        return read_each(self.clf, hidden, chunk, encodings) if self.clf.answer.read_at == EACH else hidden.float()


def _groups(hidden: Tensor, chunk: Chunk) -> list[Tensor]:
    """One [B, T, D] for each length."""
    return [hidden[g.start : g.stop].view(g.count, g.length, -1) for g in chunk.groups]


def _gates_of(gates: Sequence[Gate], group: Group) -> tuple[Gate, ...]:
    """The gates for one group of texts: packed rows become [B, h, T, d]."""

    def own(gate: Gate) -> Gate:
        if not isinstance(gate, Filled) or gate.add.dim() > 2:
            return gate
        rows, heads = gate.add[group.start : group.stop], gate.factor.shape[1]
        return Filled(gate.factor, rows.view(group.count, group.length, heads, -1).transpose(1, 2))

    return tuple(map(own, gates))


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

    def read_out(self, hidden: Tensor, chunk: Chunk, encodings: Sequence[Encoding]) -> Tensor: ...


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
    return "every mask translates again" if clf.kind == TRANSLATION else _kind(clf).how


def _kind(clf: Classifier) -> type[PostNormStages | OwnLayerStages | WholePasses]:
    family = clf.family
    if getattr(clf.config, "is_decoder", False):  # a causal mask, which the other two leave out
        return WholePasses
    if family.post_norm is not None:
        return PostNormStages
    return WholePasses if family.own_layers is None else OwnLayerStages
