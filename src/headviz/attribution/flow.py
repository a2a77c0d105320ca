"""One pass of a post-norm encoder in float64, from which rollout, value-weighted norms and AttnLRP are read.

Shapes: T tokens, D hidden size, h heads present, d head size, W = h·d, C classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from ..attention import Filled, factor_of
from ..errors import ModelError
from ..heads import HeadMask
from ..models.fast.packing import Chunk, Group
from ..models.fast.post_norm import PostNormStages
from ..models.fast.stages import is_fast, stages_for
from .contributions import EXACT, frozen_read_out

if TYPE_CHECKING:
    from ..models.classifier import Classifier, Encoding


class Flow:
    """What each token's state becomes, layer by layer, in a graph whose gradients are AttnLRP's relevance.

    The rules of AttnLRP (Achtibat et al. 2024, arXiv 2402.05602) are those of gradient × input in a graph with four
    changes: a layer norm divides by a constant, an activation multiplies with its own output divided by its input, a
    product gives each factor half, and the softmax is its own tangent. Every constant of that graph (biases, and what
    the tangents leave) is kept, so that relevance and constants must sum to the logit.
    """

    def __init__(self, clf: Classifier, text: Encoding, mask: HeadMask) -> None:
        clf.check_classes()
        if not is_fast(clf):
            raise ModelError(
                f"{clf.title} does not answer from the first token's state behind layers of BERT's kind, so what flows "
                "to the answer cannot be followed. Integrated gradients work."
            )
        clf = clf.in_float32()
        stages = stages_for(clf, torch.float64)
        assert isinstance(stages, PostNormStages)
        self.stages, self.gates = stages, clf.gates(mask)
        self._constants: list[tuple[Tensor, Tensor]] = []  # where one is added in the graph, and its value
        self.probs: list[Tensor] = []  # per layer [h, T, T] of heads that are on
        self.written: list[Tensor] = []  # per layer [h, T, D]: W_O · value of each token
        with torch.enable_grad():
            chunk = Chunk((0,), (Group(0, len(text), 1, len(text), 0),))
            self.start = stages.embed(chunk, [text]).clone().requires_grad_(True)  # [T, D]
            hidden = self.start
            for layer in range(clf.num_layers):
                hidden = self._layer(layer, hidden)
            self.last = hidden[:1]

    def relevance(self, target: int) -> tuple[np.ndarray, float, float]:
        """AttnLRP: the relevance [T] of each token, what the constants have, and the logit."""
        weights, rest, logits = frozen_read_out(self.stages, self.last.detach(), at_zero=True)
        leaves = [leaf for leaf, _ in self._constants]
        score = (self.last[0] * weights[:, target]).sum()
        own, *found = torch.autograd.grad(score, [self.start, *leaves], allow_unused=True, retain_graph=True)
        constants = float(rest[target]) + sum(
            float((value * grad).sum())
            for (_, value), grad in zip(self._constants, found, strict=True)
            if grad is not None
        )
        values = (self.start * own).sum(dim=1).detach().cpu().numpy()
        logit = float(logits[target])
        if abs(values.sum() + constants - logit) > EXACT * (1 + abs(logit)):
            raise ModelError(
                f"AttnLRP is not exact for {self.stages.clf.title}: its read-out has a part that cannot be taken apart."
            )
        return values, constants, logit

    def rollout(self) -> np.ndarray:
        """Attention rollout (Abnar and Zuidema 2020, arXiv 2005.00928): [T] of the first token."""
        return _rolled([probs.mean(dim=0) for probs in self.probs], len(self.start))

    def norms(self) -> np.ndarray:
        """The same with the size of what is written, ‖Σ_h α_ij W_O v_j‖ (Kobayashi et al. 2020, arXiv 2004.10102)."""
        maps = []
        for probs, written in zip(self.probs, self.written, strict=True):
            rows = [torch.einsum("hj,hjo->jo", probs[:, i], written).norm(dim=1) for i in range(len(self.start))]
            maps.append(torch.stack(rows))
        return _rolled(maps, len(self.start))

    def _constant(self, value: Tensor) -> Tensor:
        leaf = value.detach().double().clone().requires_grad_(True)
        self._constants.append((leaf, leaf.detach()))
        return leaf

    def _layer(self, layer: int, hidden: Tensor) -> Tensor:
        weights = self.stages.weights[layer]
        mixed = self._constant(weights.out_bias)
        if weights.out.shape[1]:
            mixed = self._heads(layer, hidden).transpose(0, 1).flatten(1) @ weights.out.T + mixed
        else:
            self.probs.append(hidden.new_zeros(0, len(hidden), len(hidden)))
            self.written.append(hidden.new_zeros(0, *hidden.shape))
        hidden = self._norm(weights.attention_norm, hidden + mixed)
        inner = hidden @ weights.inner.T + self._constant(weights.inner_bias)
        fed = self._activated(inner) @ weights.outer.T + self._constant(weights.outer_bias)
        return self._norm(weights.output_norm, hidden + fed)

    def _heads(self, layer: int, hidden: Tensor) -> Tensor:
        """The heads' outputs [h, T, d] under the mask."""
        weights, size, length = self.stages.weights[layer], self.stages.size, len(hidden)
        qkv = hidden @ weights.qkv.T + self._constant(weights.qkv_bias)
        query, key, value = qkv.view(length, 3, -1, size).permute(1, 2, 0, 3)  # each [h, T, d]
        scores = _halved(query) @ _halved(key).transpose(1, 2)
        bias = self.stages.position_bias(layer, length, hidden.detach())
        if bias is not None:
            scores = scores + self._constant(bias[0])
        probs = torch.softmax(scores, dim=-1)
        tangent = probs * (scores - (probs * scores).sum(dim=-1, keepdim=True))
        left = torch.zeros_like(probs).requires_grad_(True)  # the constant is in probs already
        self._constants.append((left, (probs - tangent).detach()))
        out = _halved(probs + left) @ _halved(value)
        factor = factor_of(self.gates[layer])
        on = torch.ones(len(out), dtype=torch.bool)
        if factor is not None:
            factor = factor.double().view(-1, 1, 1)
            on = factor.view(-1) != 0
            out, value = out * factor, value * factor
        gate = self.gates[layer]
        if isinstance(gate, Filled):
            out = out + self._constant(gate.add[0].double().expand(-1, length, -1))
        into = weights.out.view(weights.out.shape[0], -1, size)[:, on]  # [D, h, d]
        self.probs.append(probs.detach()[on])
        self.written.append(torch.einsum("htd,ohd->hto", value.detach()[on], into))
        return out

    def _norm(self, module: nn.LayerNorm, state: Tensor) -> Tensor:
        scale = module.weight.double() / torch.sqrt(
            state.detach().var(dim=1, unbiased=False, keepdim=True) + module.eps
        )
        return (state - state.mean(dim=1, keepdim=True)) * scale + self._constant(module.bias)

    def _activated(self, inner: Tensor) -> Tensor:
        """The activation as a straight line through its value at zero."""
        with torch.no_grad():
            out, zero = self.stages.activation(inner), self.stages.activation(torch.zeros_like(inner[:1]))
            slope = torch.where(inner == 0, 0.0, (out - zero) / torch.where(inner == 0, 1.0, inner))
        return inner * slope + self._constant(zero)


def _halved(factor: Tensor) -> Tensor:
    """The same value with half the gradient."""
    return (factor + factor.detach()) / 2


def _rolled(maps: list[Tensor], length: int) -> np.ndarray:
    """The first token's row of the product of all layers, each half itself and half its map with rows of sum 1."""
    row = torch.zeros(length, dtype=torch.float64, device=maps[0].device)
    row[0] = 1.0
    for one in reversed(maps):
        total = one.sum(dim=1, keepdim=True)
        if bool((total > 0).all()):  # a layer without heads passes on what it reads
            row = row / 2 + row @ (one / total) / 2
    found: np.ndarray = row.cpu().numpy()
    return found
