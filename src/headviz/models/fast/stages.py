"""A classifier taken apart into stages: embed, then layer after layer, then read out.

Evaluation under many masks starts in the middle of the model, from states that the mask cannot touch. A stage
works on packed rows (see ``packing``): no padding anywhere. Nothing of the classifier is edited; fused or
converted weights are copies.

Where the logits depend on the first token alone, the last layer computes only that row, and its keys and values
are never formed: q·(W_K x) = (W_Kᵀ q)·x, and Σ p·(W_V x) = W_V·(Σ p·x).

Shapes: N rows of a chunk, n texts, D hidden size, h heads present, d head size, W = h·d, T tokens, B texts of a group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ...attention import Gate, HeadCall
from .kernels import attention, linear
from .layouts import LAYOUTS, Layout
from .packing import Chunk, by_group, rows_of

if TYPE_CHECKING:
    from ..classifier import Classifier, Encoding

Gates = tuple[Gate, ...]  # one per layer, as ``Classifier.gates`` makes them


class Stages(Protocol):
    """What an evaluator needs of a model."""

    splits: (
        bool  # whether ``context`` and ``finish`` exist, so that a layer can be resumed behind its attention
    )
    first_only: bool  # whether the last layer's states are those of the first tokens alone
    dtype: torch.dtype

    def embed(self, chunk: Chunk, encodings: Sequence[Encoding]) -> Tensor: ...

    def layer(self, layer: int, hidden: Tensor, chunk: Chunk, gates: Gates) -> Tensor: ...

    def context(self, layer: int, hidden: Tensor, chunk: Chunk) -> Tensor: ...

    def finish(self, layer: int, hidden: Tensor, context: Tensor, gates: Gates) -> Tensor: ...

    def entry(self, layer: int, hidden: Tensor, chunk: Chunk) -> Tensor: ...

    def read_out(self, hidden: Tensor, chunk: Chunk) -> Tensor: ...


def stages_for(clf: Classifier, dtype: torch.dtype | None = None) -> Stages:
    """The fast stages where the family has a layout, else its own modules one by one."""
    dtype = clf.dtype if dtype is None else dtype
    layout = LAYOUTS.get(clf.config.model_type)
    if layout is None or getattr(clf.config, "is_decoder", False):
        return ModuleStages(clf, dtype)
    return PostNormStages(clf, layout, dtype)


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
    """BERT and its relatives."""

    splits = True
    first_only = True

    def __init__(self, clf: Classifier, layout: Layout, dtype: torch.dtype) -> None:
        self.clf, self.layout, self.dtype = clf, layout, dtype
        self.size = clf.head_size
        made: dict[int, _Weights] = {}  # families that share a layer share its copy
        self.weights = []
        for layer in range(clf.num_layers):
            key = id(clf.projections(layer).output)
            if key not in made:
                made[key] = self._weights(layer)
            self.weights.append(made[key])
        activation = self._module(layout.activation, 0)
        exact = type(activation).__name__ == "GELUActivation"
        self.fused_gelu = exact or (isinstance(activation, nn.GELU) and activation.approximate == "none")
        self.activation = activation

    def _module(self, path: str, layer: int) -> Any:
        return self.clf.module(path.format(**self.clf._place(layer)))

    def _weights(self, layer: int) -> _Weights:
        query, key, value, output = self.clf.projections(layer)
        scale = self.size**-0.5
        inner, outer = self._module(self.layout.inner, layer), self._module(self.layout.outer, layer)

        def cast(tensor: Tensor) -> Tensor:
            return tensor.detach().to(self.dtype)

        return _Weights(
            qkv=cast(torch.cat([query.weight * scale, key.weight, value.weight])),
            qkv_bias=cast(torch.cat([query.bias * scale, key.bias, value.bias])),
            out=cast(output.weight),
            out_bias=cast(output.bias),
            attention_norm=self._module(self.layout.attention_norm, layer),
            inner=cast(inner.weight),
            inner_bias=cast(inner.bias),
            outer=cast(outer.weight),
            outer_bias=cast(outer.bias),
            output_norm=self._module(self.layout.output_norm, layer),
        )

    @torch.inference_mode()
    def embed(self, chunk: Chunk, encodings: Sequence[Encoding]) -> Tensor:
        """[N, D]"""
        hidden = _embed(self.clf, chunk, encodings)
        widen = self.layout.widen
        base = self.clf.model.base_model
        if widen is not None and (widen != "embeddings_project" or hasattr(base, widen)):
            hidden = self.clf.module(widen)(hidden)
        return hidden.to(self.dtype)

    def entry(self, layer: int, hidden: Tensor, chunk: Chunk) -> Tensor:
        """What ``finish`` of this layer reads of the states: all rows, or the first tokens' in the last layer."""
        if layer < self.clf.num_layers - 1:
            return hidden
        return hidden[rows_of(chunk, hidden)]

    @torch.inference_mode()
    def context(self, layer: int, hidden: Tensor, chunk: Chunk) -> Tensor:
        """The heads' outputs side by side, before any mask: [N, W], in the last layer [n, W]."""
        weights = self.weights[layer]
        if weights.out.shape[1] == 0:
            return hidden.new_empty(len(self.entry(layer, hidden, chunk)), 0)
        if layer == self.clf.num_layers - 1:
            return self._first_context(weights, hidden, chunk)
        d, width = self.size, weights.out.shape[1]
        qkv = linear(hidden, weights.qkv, weights.qkv_bias)
        out = hidden.new_empty(hidden.shape[0], width)
        for g in chunk.groups:
            parts = qkv[g.start : g.stop].view(g.count, g.length, 3, -1, d)
            query, key, value = parts.permute(2, 0, 3, 1, 4).contiguous()  # each [B, h, T, d]
            mixed = attention(query, key, value)
            out[g.start : g.stop].view(g.count, g.length, -1, d).copy_(mixed.transpose(1, 2))
        return out

    def _first_context(self, weights: _Weights, hidden: Tensor, chunk: Chunk) -> Tensor:
        d, width, hidden_size = self.size, weights.out.shape[1], hidden.shape[1]
        heads = width // d
        first = hidden[rows_of(chunk, hidden)]
        query = linear(first, weights.qkv[:width], weights.qkv_bias[:width]).view(-1, heads, d)  # [n, h, d]
        w_key = weights.qkv[width : 2 * width].view(heads, d, hidden_size)
        w_value = weights.qkv[2 * width :].view(heads, d, hidden_size)
        # a query's product with the key bias is the same for all keys, and the softmax removes it
        asked = torch.bmm(query.transpose(0, 1), w_key).transpose(0, 1)  # [n, h, D]
        pooled = torch.empty_like(asked)
        for g in chunk.groups:
            rows = hidden[g.start : g.stop].view(g.count, g.length, hidden_size)
            here = slice(g.first, g.first + g.count)
            probs = torch.softmax(torch.bmm(asked[here], rows.transpose(1, 2)), dim=-1)  # [B, h, T]
            pooled[here] = torch.bmm(probs, rows)
        mixed = torch.bmm(pooled.transpose(0, 1), w_value.transpose(1, 2)).transpose(0, 1)  # [n, h, d]
        return mixed.reshape(-1, width) + weights.qkv_bias[2 * width :]

    @torch.inference_mode()
    def finish(self, layer: int, hidden: Tensor, context: Tensor, gates: Gates) -> Tensor:
        """The rest of the layer: mask, W_O, both norms and the feed-forward network. ``hidden`` is the ``entry``."""
        weights = self.weights[layer]
        gate = gates[layer]
        if gate is not None:
            context = context * gate.to(context.dtype).view(-1).repeat_interleave(self.size)
        mixed = linear(context, weights.out, weights.out_bias) if context.shape[1] else weights.out_bias
        hidden = _norm(weights.attention_norm, hidden + mixed)
        inner = linear(hidden, weights.inner, weights.inner_bias, gelu=self.fused_gelu)
        if not self.fused_gelu:
            inner = self.activation(inner)
        return _norm(weights.output_norm, linear(inner, weights.outer, weights.outer_bias).add_(hidden))

    def layer(self, layer: int, hidden: Tensor, chunk: Chunk, gates: Gates) -> Tensor:
        """A whole layer. The last one returns the first tokens' rows only."""
        return self.finish(layer, self.entry(layer, hidden, chunk), self.context(layer, hidden, chunk), gates)

    @torch.inference_mode()
    def read_out(self, hidden: Tensor, chunk: Chunk) -> Tensor:
        """Logits [n, C] in float32 from the last layer's output."""
        return self.layout.read_out(self.clf.model, hidden.to(self.clf.dtype)).float()


class ModuleStages:
    """Any other family, through its own layer modules. A layer is one piece, and all rows are computed.

    Written for ModernBERT, the one supported family that is not post-norm: texts of a group run as a batch
    without padding, so that only its sliding window needs a mask.
    """

    splits = False
    first_only = False

    def __init__(self, clf: Classifier, dtype: torch.dtype) -> None:
        self.clf, self.dtype = clf, dtype
        if dtype != clf.dtype:
            raise ValueError(f"{clf.family.title} is evaluated in its own precision only")

    @torch.inference_mode()
    def embed(self, chunk: Chunk, encodings: Sequence[Encoding]) -> Tensor:
        return _embed(self.clf, chunk, encodings)

    def entry(self, layer: int, hidden: Tensor, chunk: Chunk) -> Tensor:
        return hidden

    def context(self, layer: int, hidden: Tensor, chunk: Chunk) -> Tensor:
        raise NotImplementedError("this family's layers are one piece; ask `splits` first")

    def finish(self, layer: int, hidden: Tensor, context: Tensor, gates: Gates) -> Tensor:
        raise NotImplementedError("this family's layers are one piece; ask `splits` first")

    @torch.inference_mode()
    def layer(self, layer: int, hidden: Tensor, chunk: Chunk, gates: Gates) -> Tensor:
        base: Any = self.clf.model.base_model
        module = base.layers[layer]
        out = torch.empty_like(hidden)
        for g in chunk.groups:
            rows = hidden[g.start : g.stop].view(g.count, g.length, -1)
            place = torch.arange(g.length, device=hidden.device)
            angles = base.rotary_emb(rows, place[None], module.attention_type)
            window = module.attn.sliding_window
            near = None
            if window is not None and window <= g.length:
                near = ((place[:, None] - place[None]).abs() < window)[None, None]
            call = HeadCall(gates, layer=layer)
            out[g.start : g.stop] = module(
                rows, attention_mask=near, position_embeddings=angles, headviz=call
            ).flatten(0, 1)
        return out

    @torch.inference_mode()
    def read_out(self, hidden: Tensor, chunk: Chunk) -> Tensor:
        model: Any = self.clf.model
        hidden = model.base_model.final_norm(hidden)
        if self.clf.config.classifier_pooling == "cls":
            pooled = hidden[rows_of(chunk, hidden)]
        else:
            pooled = torch.cat(
                [hidden[g.start : g.stop].view(g.count, g.length, -1).mean(dim=1) for g in chunk.groups]
            )
        return model.classifier(model.head(pooled)).float()


def _embed(clf: Classifier, chunk: Chunk, encodings: Sequence[Encoding]) -> Tensor:
    embeddings = clf.module(clf.family.embeddings)
    parts = []
    for members in by_group(chunk, encodings):
        batch = clf.collate(members)
        batch.pop("attention_mask")
        parts.append(embeddings(**batch).flatten(0, 1))
    return torch.cat(parts)


def _norm(module: nn.LayerNorm, x: Tensor) -> Tensor:
    weight: Tensor = module.weight
    bias: Tensor = module.bias
    if x.dtype != weight.dtype:
        weight, bias = weight.to(x.dtype), bias.to(x.dtype)
    return F.layer_norm(x, module.normalized_shape, weight, bias, module.eps)
