"""A classifier in stages: embed, then layer after layer, then read out.

Evaluation under many masks starts in the middle of the model, from states that the mask cannot change. A stage
works on packed rows without padding (see ``packing``). The classifier is not edited; fused or converted weights are
copies.

The family's sheet decides: with ``post_norm`` it runs in the fast stages, with ``own_layers`` in its own modules one
by one, and with neither in whole passes.

Where the logits of a post-norm encoder depend on the first token alone, the last layer computes only that row, and its
keys and values are never formed: q·(W_K x) = (W_Kᵀ q)·x, and Σ p·(W_V x) = W_V·(Σ p·x).

Shapes: N rows of a chunk, n texts, D hidden size, h heads present, d head size, W = h·d, T tokens, B texts of a group,
I neurons of a feed-forward network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor, nn

from ...answers.answer import EACH, FIRST
from ...attention import Filled, Gate, HeadCall, factor_of, running
from ...heads import TRANSLATION
from ..classifier import Encoding
from ..families.sheet import OwnLayers, PostNorm
from .linear import attention, linear
from .packing import Chunk, Group, Placed, embed, placed, read_each

if TYPE_CHECKING:
    from ..classifier import Classifier


BIASES = 2**24  # numbers of position biases that are kept
Gates = Sequence[Gate]  # one per layer, as ``Classifier.gates`` makes them


@dataclass(frozen=True)
class _Weights:
    """One layer's weights in the working precision."""

    qkv: Tensor  # [3W, D], the scale of the scores folded into W_Q
    qkv_bias: Tensor
    out: Tensor  # [D, W]
    out_bias: Tensor
    attention_norm: nn.LayerNorm
    inner: Tensor
    inner_bias: Tensor
    outer: Tensor
    outer_bias: Tensor
    output_norm: nn.LayerNorm


class PostNormStages:
    """Fused and converted copies of the weights, on packed rows."""

    how = "fast, layer by layer"
    splits = True

    def __init__(self, clf: Classifier, layout: PostNorm, dtype: torch.dtype) -> None:
        self.clf, self.layout, self.dtype = clf, layout, dtype
        base: Any = clf.model.base_model
        self.widen = layout.widening(base)
        self.size = clf.head_size
        self.first_only = clf.answer.read_at == FIRST
        self.last = clf.num_layers - 1 if self.first_only else -1  # the layer whose first rows alone are computed
        self.biases: dict[int, Tensor] = {}  # by length; what position_bias keeps
        self._placed: dict[int, tuple[Chunk, Placed]] = {}  # by the chunk's id, which holds while the chunk is kept
        copies: dict[int, _Weights] = {}  # families that share a layer share its copy
        self.weights = []
        for layer in range(clf.num_layers):
            key = id(clf.projections(layer).output)
            if key not in copies:
                copies[key] = self._weights(layer)
            self.weights.append(copies[key])
        activation = clf.module(layout.activation.format(**clf.family.place(clf.config, 0)))
        exact = type(activation).__name__ == "GELUActivation"
        self.fused_gelu = exact or (isinstance(activation, nn.GELU) and activation.approximate == "none")
        self.activation = activation

    def _module(self, path: str, layer: int, kind: type[nn.Module]) -> Any:
        return self.clf.plain(path.format(**self.clf.family.place(self.clf.config, layer)), kind)

    def _weights(self, layer: int) -> _Weights:
        query, key, value, output = self.clf.projections(layer)
        scale = self.size**-0.5
        inner, outer = (
            self._module(path, layer, self.clf.family.matrix) for path in (self.layout.inner, self.layout.outer)
        )

        def cast(tensor: Tensor) -> Tensor:
            return tensor.detach().to(self.dtype)

        return _Weights(
            qkv=cast(torch.cat([query.weight * scale, key.weight, value.weight])),
            qkv_bias=cast(torch.cat([query.bias * scale, key.bias, value.bias])),
            out=cast(output.weight),
            out_bias=cast(output.bias),
            attention_norm=self._module(self.layout.attention_norm, layer, nn.LayerNorm),
            inner=cast(inner.weight),
            inner_bias=cast(inner.bias),
            outer=cast(outer.weight),
            outer_bias=cast(outer.bias),
            output_norm=self._module(self.layout.output_norm, layer, nn.LayerNorm),
        )

    @torch.inference_mode()
    def embed(self, chunk: Chunk, encodings: Sequence[Encoding]) -> Tensor:
        """[N, D]"""
        hidden = embed(self.clf, chunk, encodings, self.placed(chunk).groups)
        if self.widen is not None:
            hidden = self.widen(hidden)
        return hidden.to(self.dtype)

    def entry(self, layer: int, hidden: Tensor, chunk: Chunk) -> Tensor:
        """What ``finish`` of this layer reads of the states: all rows, or the first tokens' in the last layer."""
        if layer != self.last:
            return hidden
        return hidden[self.placed(chunk).first_rows]

    def placed(self, chunk: Chunk) -> Placed:
        if id(chunk) not in self._placed:
            self._placed[id(chunk)] = chunk, placed(chunk, self.clf.device, self.dtype)
        return self._placed[id(chunk)][1]

    @torch.inference_mode()
    def context(self, layer: int, hidden: Tensor, chunk: Chunk) -> Tensor:
        """The heads' outputs side by side, before any mask: [N, W], in the last layer [n, W]."""
        weights = self.weights[layer]
        if weights.out.shape[1] == 0:
            return hidden.new_empty(len(self.entry(layer, hidden, chunk)), 0)
        if layer == self.last:
            return self._first_context(layer, hidden, chunk)
        d, width = self.size, weights.out.shape[1]
        qkv = linear(hidden, weights.qkv, weights.qkv_bias)
        out = hidden.new_empty(hidden.shape[0], width)
        for g in self.placed(chunk).groups:
            bias = g.biased(self.position_bias(layer, g.length, hidden))
            if bias is not None and g.padding is not None:
                bias = bias.transpose(0, 1)
            g.put(out, attention(*g.heads_of(qkv, d), bias))
        return out

    def position_bias(self, layer: int, length: int, hidden: Tensor) -> Tensor | None:
        """What the family adds to the scores of a layer's heads by position, [1, h, T, T]; None for most."""
        if self.layout.bias is None:
            return None
        if length not in self.biases:
            base: Any = self.clf.model.base_model
            whole = self.layout.bias(base, hidden[None, :length]).to(self.dtype)
            if sum(kept.numel() for kept in self.biases.values()) + whole.numel() > BIASES:
                self.biases.clear()
            self.biases[length] = whole
        index: Tensor | None = getattr(self.clf.attention_module(layer), "bias_heads", None)
        return self.biases[length] if index is None else self.biases[length][:, index]

    def _first_context(self, layer: int, hidden: Tensor, chunk: Chunk) -> Tensor:
        weights = self.weights[layer]
        d, width, hidden_size = self.size, weights.out.shape[1], hidden.shape[1]
        heads = width // d
        place = self.placed(chunk)
        first = hidden[place.first_rows]
        query = linear(first, weights.qkv[:width], weights.qkv_bias[:width]).view(-1, heads, d)  # [n, h, d]
        w_key = weights.qkv[width : 2 * width].view(heads, d, hidden_size)
        w_value = weights.qkv[2 * width :].view(heads, d, hidden_size)
        # a query's product with the key bias is the same for all keys, and the softmax removes it
        key_query = torch.bmm(query.transpose(0, 1), w_key).transpose(0, 1)  # W_Kᵀ q, [n, h, D]
        pooled = torch.empty_like(key_query)
        for g in place.groups:
            rows = g.rows_of(hidden)
            texts = slice(g.first, g.first + g.count)
            scores = torch.bmm(key_query[texts], rows.transpose(1, 2))  # [B, h, T]
            bias = self.position_bias(layer, g.length, hidden)
            bias = g.biased(None if bias is None else bias[:, :, :1])
            probs = torch.softmax(scores if bias is None else scores + bias[:, :, 0], dim=-1)
            pooled[texts] = torch.bmm(probs, rows)
        mixed = torch.bmm(pooled.transpose(0, 1), w_value.transpose(1, 2)).transpose(0, 1)  # [n, h, d]
        return mixed.reshape(-1, width) + weights.qkv_bias[2 * width :]

    def finish(self, layer: int, hidden: Tensor, context: Tensor, gates: Gates) -> Tensor:
        """The rest of the layer: mask, W_O, both norms and the feed-forward network. ``hidden`` is the ``entry``."""
        hidden = self.between(layer, hidden, context, gates)
        return self.end(layer, hidden, self.neurons(layer, hidden))

    @torch.inference_mode()
    def between(self, layer: int, hidden: Tensor, context: Tensor, gates: Gates) -> Tensor:
        """What enters the feed-forward network: mask, W_O and the first norm. ``hidden`` is the ``entry``."""
        weights = self.weights[layer]
        gate, bias = gates[layer], weights.out_bias
        factor = factor_of(gate)
        if factor is not None:
            context = context * factor.to(context.dtype).view(-1).repeat_interleave(self.size)
        if isinstance(gate, Filled):
            add = gate.add.to(context.dtype)
            if add.dim() == 2:  # rows of their own
                context = context + add
            else:  # the same at every place: W_O reads it once
                bias = linear(add.view(1, -1), weights.out, bias)[0]
        mixed = linear(context, weights.out, bias) if context.shape[1] else bias
        return _norm(weights.attention_norm, hidden + mixed)

    @torch.inference_mode()
    def neurons(self, layer: int, hidden: Tensor) -> Tensor:
        """The neurons' activations [N, I] of what enters the feed-forward network."""
        weights = self.weights[layer]
        inner = linear(hidden, weights.inner, weights.inner_bias, gelu=self.fused_gelu)
        return inner if self.fused_gelu else self.activation(inner)

    @torch.inference_mode()
    def end(self, layer: int, hidden: Tensor, neurons: Tensor) -> Tensor:
        """W_2 and the second norm."""
        return _norm(self.weights[layer].output_norm, self.fed(layer, neurons).add_(hidden))

    def fed(self, layer: int, neurons: Tensor) -> Tensor:
        """What the feed-forward network adds to these rows."""
        weights = self.weights[layer]
        return linear(neurons, weights.outer, weights.outer_bias)

    def layer(self, layer: int, hidden: Tensor, chunk: Chunk, gates: Gates) -> Tensor:
        """A whole layer. The last one returns the first tokens' rows only."""
        return self.finish(layer, self.entry(layer, hidden, chunk), self.context(layer, hidden, chunk), gates)

    @torch.inference_mode()
    def read_out(self, hidden: Tensor, chunk: Chunk, encodings: Sequence[Encoding]) -> Tensor:
        """Logits [n, C] or [n, W, C] in float32 from the last layer's output."""
        hidden = hidden.to(self.clf.dtype)
        if self.clf.answer.read_at == EACH:
            return read_each(self.clf, hidden, chunk, encodings, self.clf.family.each_token)
        if not self.first_only and (logits := self.clf.read_out(_groups(hidden, chunk))) is not None:
            return logits.float()
        return self.layout.read_out(self.clf.model, hidden).float()


def _norm(module: nn.LayerNorm, x: Tensor) -> Tensor:
    weight: Tensor = module.weight
    bias: Tensor = module.bias
    if x.dtype != weight.dtype:
        weight, bias = weight.to(x.dtype), bias.to(x.dtype)
    return nn.functional.layer_norm(x, module.normalized_shape, weight, bias, module.eps)


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

    def finish(self, layer: int, hidden: Tensor, context: Tensor, gates: Gates) -> Tensor:
        raise NotImplementedError("this family's layers are one piece; ask `splits` first")


class OwnLayerStages(_InOnePiece):
    """The layer modules as they are; texts of equal length run as a batch without padding."""

    how = "the model's own layers, one by one"

    def __init__(self, clf: Classifier, own_layers: OwnLayers, dtype: torch.dtype) -> None:
        super().__init__(clf, dtype)
        self.own_layers = own_layers

    @torch.inference_mode()
    def embed(self, chunk: Chunk, encodings: Sequence[Encoding]) -> Tensor:
        """[N, D]"""
        return embed(self.clf, chunk, encodings)

    @torch.inference_mode()
    def layer(self, layer: int, hidden: Tensor, chunk: Chunk, gates: Gates) -> Tensor:
        out = torch.empty_like(hidden)
        for g, rows in zip(chunk.groups, _groups(hidden, chunk), strict=True):
            call = HeadCall(_gates_of(gates, g), layer=layer)
            with running(call):
                states = self.own_layers.layer(self.clf.model.base_model, layer, rows, call)
            out[g.start : g.stop] = states.flatten(0, 1)
        return out

    @torch.inference_mode()
    def read_out(self, hidden: Tensor, chunk: Chunk, encodings: Sequence[Encoding]) -> Tensor:
        """[n, C] or [n, W, C] in float32."""
        if self.clf.answer.read_at == EACH:
            return read_each(self.clf, hidden, chunk, encodings, self.clf.family.each_token)
        groups = _groups(hidden, chunk)
        logits = self.clf.read_out(groups)
        return (self.own_layers.read_out(self.clf.model, groups) if logits is None else logits).float()


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
    def layer(self, layer: int, hidden: Tensor, chunk: Chunk, gates: Gates) -> Tensor:
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


def _gates_of(gates: Gates, group: Group) -> tuple[Gate, ...]:
    """The gates for one group of texts: packed rows become [B, h, T, d]."""

    def unpacked(gate: Gate) -> Gate:
        if not isinstance(gate, Filled) or gate.add.dim() > 2:
            return gate
        rows, heads = gate.add[group.start : group.stop], gate.factor.shape[1]
        return Filled(gate.factor, rows.view(group.count, group.length, heads, -1).transpose(1, 2))

    return tuple(map(unpacked, gates))


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
    kind = kind_of(clf)
    if kind is PostNormStages and family.post_norm is not None:
        return PostNormStages(clf, family.post_norm, dtype)
    if kind is OwnLayerStages and family.own_layers is not None:
        return OwnLayerStages(clf, family.own_layers, dtype)
    return WholePasses(clf, dtype)


def has_fast_stages(clf: Classifier) -> bool:
    """Whether the model runs in ``PostNormStages``; repairs and lower precision need that."""
    return kind_of(clf) is PostNormStages


def how_evaluated(clf: Classifier) -> str:
    """How this model is evaluated under a mask, in words."""
    return "every mask translates again" if clf.kind == TRANSLATION else kind_of(clf).how


def kind_of(clf: Classifier) -> type[PostNormStages | OwnLayerStages | WholePasses]:
    """The stages that the family's sheet describes."""
    family = clf.family
    if getattr(clf.config, "is_decoder", False):  # a causal mask, which the other two leave out
        return WholePasses
    if family.post_norm is not None:
        return PostNormStages
    return WholePasses if family.own_layers is None else OwnLayerStages
