"""``headviz.contributions``: what each head itself adds to the class scores, and what the model loses without it.

In a post-norm encoder the class scores are read from the first token, whose state is a sum: the embedding, every head's
output through W_O, every feed-forward block, and biases. With the scale of each layer norm, and the slope of the
read-out's activations, frozen at their values for this text, each part has a share of each score, and the shares sum to
the score. This is the direct path alone: what later layers make of a head's output is in the ablation, not here.

``headviz.head_reading``: which words a head's queries and keys match (QK), and what it writes of each word (OV). For
families of BERT's kind a position is part of a token's state, so a match is of words and positions together.

Shapes: T tokens, D hidden size, C classes, h heads present, d head size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..answers.answer import FIRST
from ..attention import Filled, factor_of
from ..errors import MaskError, ModelError
from ..heads import HeadId, HeadMask, head_of
from ..models.fast.linear import gpu_products
from ..models.fast.stages import PostNormStages, has_fast_stages, stages_for
from ..models.network import require_model
from ..progress import Cancel, Progress
from ..results import Result
from ..storage.exchange import MaskLike
from .conductance import encode_one
from .patching import copies_of, without_each

if TYPE_CHECKING:
    from ..models.classifier import Classifier, Encoding


ACTIVATIONS = frozenset(
    {
        torch.tanh,
        Tensor.tanh,
        torch.relu,
        Tensor.relu,
        torch.sigmoid,
        nn.functional.relu,
        nn.functional.gelu,
        nn.functional.silu,
        nn.functional.tanh,
    }
)


class _Frozen(TorchFunctionMode):
    """Activations become straight lines that end at the value of the second row.

    They begin at that of the first row, the empty state, or with ``at_zero`` where the activation reads zero.
    """

    def __init__(self, at_zero: bool) -> None:
        super().__init__()
        self.at_zero = at_zero

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func not in ACTIVATIONS:
            return out
        into = args[0]
        begin = torch.zeros_like(into[:1]) if self.at_zero else into[:1].detach()
        value = func(begin, *args[1:], **(kwargs or {})).detach() if self.at_zero else out[:1].detach()
        step, rise = (into[1] - begin[0]).detach(), (out[1] - value[0]).detach()
        slope = torch.where(step == 0, torch.zeros_like(step), rise / torch.where(step == 0, 1.0, step))
        return value + slope * (into - begin)


def frozen_read_out(stages: PostNormStages, state: Tensor, at_zero: bool = False) -> tuple[Tensor, Tensor, np.ndarray]:
    """The weight [D, C] of the first token's last state [1, D] in each score, what an empty state scores [C], and the
    scores."""
    with torch.inference_mode(False), torch.enable_grad(), gpu_products(state.device):
        rows = torch.cat([torch.zeros_like(state), state]).to(stages.clf.dtype).clone().requires_grad_(True)
        with _Frozen(at_zero):
            logits = stages.layout.read_out(stages.clf.model, rows)  # [2, C]
        grads = [torch.autograd.grad(logits[1, c], rows, retain_graph=True)[0][1] for c in range(logits.shape[1])]
        weights = torch.stack(grads, dim=1).double()
        scores = stages.read_out(state, copies_of(1, 1), ())[0].double().cpu().numpy()
    return weights, logits[0].detach().double(), scores


EXACT = 1e-4  # of the sum against the model's own logits, as a share of their size


@dataclass(frozen=True, eq=False)
class Contributions(Result):
    """The parts of each class score: ``heads`` + ``feed_forward`` + ``embedding`` + ``biases`` = ``logits``.

    ``ablation`` is what each score loses without the head (full − without), through all paths; NaN for heads that are
    off or removed, whose ``heads`` are what stands in their place, or NaN.
    """

    heads: np.ndarray  # [L, H, C]
    feed_forward: np.ndarray  # [L, C], with its own bias
    embedding: np.ndarray  # [C]
    biases: np.ndarray  # [C] of W_O, the layer norms and the read-out
    logits: np.ndarray  # [C]
    ablation: np.ndarray  # [L, H, C]
    labels: tuple[str, ...]
    tokens: tuple[str, ...]
    mask: HeadMask

    @property
    def total(self) -> np.ndarray:
        """[C] the sum of all parts."""
        total: np.ndarray = np.nansum(self.heads, axis=(0, 1)) + self.feed_forward.sum(axis=0)
        return total + self.embedding + self.biases

    @property
    def predicted(self) -> int:
        return int(self.logits.argmax())

    def parts(self) -> list[tuple[str, float]]:
        """Those of the predicted class's score in order, from the embedding to the biases; heads summed by layer."""
        c = self.predicted
        parts = [("embedding", float(self.embedding[c]))]
        for layer in range(len(self.heads)):
            parts.append((f"L{layer} heads", float(np.nansum(self.heads[layer, :, c]))))
            parts.append((f"L{layer} feed-forward", float(self.feed_forward[layer, c])))
        return [*parts, ("biases", float(self.biases[c]))]

    def extra(self) -> dict[str, Any]:
        return {"total": self.total, "predicted": self.labels[self.predicted]}


def contributions(
    clf: Classifier,
    text: str,
    pair: str | None = None,
    *,
    mask: MaskLike | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Contributions:
    """The direct contribution of every head to the class scores of one text, next to what ablation says.

    A model in half precision is computed in float32: its own rounding would be larger than many parts. Raises
    ``ModelError`` for families whose states are not such a sum (pre-norm layers, translation models).

    >>> import headviz
    >>> clf = headviz.load("demo", device="cpu")
    >>> result = headviz.contributions(clf, "The dog is not sleeping.", "The dog is sleeping.")
    >>> bool(abs(result.total - result.logits).max() < 1e-5)
    True
    """
    parts, encoding, heads_on = parts_of(clf, text, pair, mask)
    heads = np.full((clf.num_layers, clf.num_heads, clf.num_labels), np.nan)
    for layer, values in enumerate(parts.heads):
        heads[layer, list(clf.present.kept_in(layer))] = values
    without = without_each(parts.stages.clf, encoding, heads_on, progress, cancel)
    return Contributions(
        heads,
        np.array(parts.feed_forward),
        parts.embedding,
        parts.biases,
        parts.logits,
        parts.logits - without,
        clf.labels,
        tuple(clf.tokens(encoding)),
        heads_on,
    )


def _require_first(clf: Classifier) -> None:
    """Refuse a model whose answer is more than a sum over the first token's states."""
    clf.check_classes()
    if clf.answer.read_at != FIRST:
        raise ModelError(
            f"'{clf.name}' answers from the states of all tokens, not of the first alone, so its answer cannot be "
            "taken apart into what flows there. Conductance and integrated gradients work."
        )


def parts_of(clf: Classifier, text: str, pair: str | None, mask: MaskLike | None) -> tuple[Parts, Encoding, HeadMask]:
    """The parts of one text's scores, its tokens, and the heads that are on."""
    require_model(clf)
    _require_first(clf)
    if not isinstance(stages_for(clf), PostNormStages):
        raise ModelError(
            f"The class scores of {clf.title} are not a sum over the first token's states that headviz can take apart: "
            "that needs layer norms behind each block, and positions that do not depend on what a query or key says. "
            "Choose a model of BERT's kind."
        )
    encoding, heads_on = encode_one(clf, text, pair), clf.under(mask)
    return Parts(clf.in_float32(), encoding, heads_on), encoding, heads_on


class Parts:
    """One pass in float64 that keeps the first token's parts, and a walk back that weighs them.

    ``states`` are what each layer reads [T, D]; ``weights`` [D, C] are what its attention's output has in each score.
    """

    @torch.inference_mode()
    def __init__(self, clf: Classifier, text: Encoding, mask: HeadMask) -> None:
        stages = stages_for(clf, torch.float64)
        assert isinstance(stages, PostNormStages)
        self.stages, self.states = stages, list[Tensor]()
        chunk = copies_of(1, len(text))
        hidden = stages.embed(chunk, [text])
        start = hidden[0]
        layers = []
        for layer in range(clf.num_layers):
            self.states.append(hidden)
            context, entry = stages.context(layer, hidden, chunk), stages.entry(layer, hidden, chunk)
            layers.append(_Layer(stages, clf, mask, layer, entry[0], context[0]))
            hidden = stages.finish(layer, entry, context, clf.gates(mask))
        weights, biases, self.logits = frozen_read_out(stages, hidden[:1])
        self.heads: list[np.ndarray] = []
        self.feed_forward: list[np.ndarray] = []
        self.weights: list[Tensor] = []
        for passed in reversed(layers):
            heads, feed_forward, layer_biases, weights = passed.back(weights)
            self.heads.insert(0, heads.cpu().numpy())
            self.feed_forward.insert(0, feed_forward.cpu().numpy())
            self.weights.insert(0, weights)
            biases = biases + layer_biases
        self.embedding = (start @ weights).cpu().numpy()
        self.biases = biases.cpu().numpy()
        total = sum(np.nansum(h, axis=0) for h in self.heads) + sum(self.feed_forward) + self.embedding + self.biases
        if np.abs(total - self.logits).max() > EXACT * (1 + np.abs(self.logits).max()):
            raise ModelError(
                f"The read-out of {clf.title} has a part that headviz cannot freeze, so its class scores cannot be "
                "taken apart."
            )


class _Layer:
    """The first token's parts of one layer, and its two layer norms with their scale frozen."""

    def __init__(
        self, stages: PostNormStages, clf: Classifier, mask: HeadMask, layer: int, entry: Tensor, context: Tensor
    ) -> None:
        weights, size = stages.weights[layer], clf.head_size
        gate = clf.gates(mask)[layer]
        heads = context.view(-1, size)  # [h, d]
        factor = factor_of(gate)
        if factor is not None:
            heads = heads * factor.double().view(-1, 1)
        if isinstance(gate, Filled):
            heads = heads + gate.add.double().view(-1, size)
        out = weights.out.view(weights.out.shape[0], -1, size)  # [D, h, d]
        self.written = torch.einsum("hd,ohd->ho", heads, out)  # [h, D]
        self.out_bias = weights.out_bias
        summed = entry + self.written.sum(dim=0) + self.out_bias
        self.first = _Norm(weights.attention_norm, summed)
        state = self.first(summed)
        self.fed = stages.fed(layer, stages.neurons(layer, state[None]))[0]
        self.second = _Norm(weights.output_norm, state + self.fed)

    def back(self, weights: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """From the weight [D, C] of the layer's output in the scores: heads [h, C], feed-forward [C], biases [C], and
        the weight of the layer's input."""
        biases = self.second.bias @ weights
        weights = self.second.back(weights)
        feed_forward = self.fed @ weights
        biases = biases + self.first.bias @ weights
        weights = self.first.back(weights)
        return self.written @ weights, feed_forward, biases + self.out_bias @ weights, weights


class _Norm:
    """A layer norm whose scale stays that of one state: linear in everything that is summed in it."""

    def __init__(self, module: nn.LayerNorm, state: Tensor) -> None:
        variance = state.var(unbiased=False)
        self.scale = module.weight.double() / torch.sqrt(variance + module.eps)  # [D]
        self.bias: Tensor = module.bias.double()

    def __call__(self, state: Tensor) -> Tensor:
        return (state - state.mean()) * self.scale + self.bias

    def back(self, weights: Tensor) -> Tensor:
        scaled = self.scale[:, None] * weights
        return scaled - scaled.mean(dim=0)


@dataclass(frozen=True, eq=False)
class Reading(Result):
    """One head on one text. ``attention`` is the softmax of ``match`` over each row.

    ``written`` is the length of what goes from a key to a query through W_O: ‖p·W_O·v‖. ``scores`` is what the first
    token's row of that adds directly to each class score, by the token that is read; its sum over tokens is the head's
    contribution.
    """

    head: HeadId
    match: np.ndarray  # [T, T] q·k/√d, and the position's part where attention has one of its own (MPNet)
    attention: np.ndarray  # [T, T]
    written: np.ndarray  # [T, T]
    scores: np.ndarray  # [T, C]
    tokens: tuple[str, ...]
    labels: tuple[str, ...]


def head_reading(
    clf: Classifier, text: str, pair: str | None, head: HeadId | tuple[int, int] | str, *, mask: MaskLike | None = None
) -> Reading:
    """What a head reads and writes in a text. ``mask`` is of the other heads.

    Raises ``MaskError`` for a head that is off or removed, and ``ModelError`` for families without such states.

    >>> import headviz
    >>> clf = headviz.load("demo", device="cpu")
    >>> result = headviz.head_reading(clf, "The dog is not sleeping.", "The dog is sleeping.", "3.5")
    >>> result.scores.shape[1]
    3
    """
    chosen = head_of(head)
    parts, encoding, heads_on = parts_of(clf, text, pair, mask)
    if chosen not in heads_on.kept:
        raise MaskError(f"Head {chosen.dotted} is off or was removed; it reads nothing. Choose one that is on.")
    match, attention, value, out = _pieces(clf, parts, chosen)
    carried = value @ out  # [T, D]
    return Reading(
        chosen,
        match.float().cpu().numpy(),
        attention.float().cpu().numpy(),
        (attention * carried.norm(dim=1)).float().cpu().numpy(),
        (attention[0][:, None] * (carried @ parts.weights[chosen.layer])).cpu().numpy(),
        tuple(clf.tokens(encoding)),
        clf.labels,
    )


@torch.inference_mode()
def _pieces(clf: Classifier, parts: Parts, head: HeadId) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Scores and attention [T, T], values [T, d] and the head's part of W_O [d, D], in float64."""
    weights, size = parts.stages.weights[head.layer], clf.head_size
    row = clf.present.kept_in(head.layer).index(head.head)
    width = weights.out.shape[1]
    hidden = parts.states[head.layer]
    columns = [slice(n * width + row * size, n * width + (row + 1) * size) for n in range(3)]
    query, key, value = (hidden @ weights.qkv[of].T + weights.qkv_bias[of] for of in columns)
    match = query @ key.T  # the scale is folded into W_Q
    bias = parts.stages.position_bias(head.layer, len(hidden), hidden)
    if bias is not None:
        match = match + bias[0, row].to(match)
    return match, match.softmax(dim=-1), value, weights.out[:, row * size : (row + 1) * size].T


# -----------------------------------------------------------------------------------------------
# One pass of a post-norm encoder in float64, from which rollout, value-weighted norms and AttnLRP are read.
#
# Shapes: T tokens, D hidden size, h heads present, d head size, W = h·d, C classes.


class Flow:
    """What each token's state becomes, layer by layer, in a graph whose gradients are AttnLRP's relevance.

    The rules of AttnLRP (Achtibat et al. 2024, arXiv 2402.05602) are those of gradient × input in a graph with four
    changes: a layer norm divides by a constant, an activation multiplies with its own output divided by its input, a
    product gives each factor half, and the softmax is its own tangent. Every constant of that graph (biases, and what
    the tangents leave) is kept, so that relevance and constants must sum to the logit.
    """

    def __init__(self, clf: Classifier, text: Encoding, mask: HeadMask) -> None:
        _require_first(clf)
        if not has_fast_stages(clf):
            raise ModelError(
                f"The layers of {clf.title} are not of BERT's kind, so what flows to the answer cannot be followed. "
                "Integrated gradients work."
            )
        clf = clf.in_float32()
        stages = stages_for(clf, torch.float64)
        assert isinstance(stages, PostNormStages)
        self.stages, self.gates = stages, clf.gates(mask)
        self._constants: list[tuple[Tensor, Tensor]] = []  # where one is added in the graph, and its value
        self.probs: list[Tensor] = []  # per layer [h, T, T] of heads that are on
        self.written: list[Tensor] = []  # per layer [h, T, D]: W_O · value of each token
        with torch.enable_grad():
            self.start = stages.embed(copies_of(1, len(text)), [text]).clone().requires_grad_(True)  # [T, D]
            hidden = self.start
            for layer in range(clf.num_layers):
                hidden = self._layer(layer, hidden)
            self.last = hidden[:1]

    def relevance(self, target: int) -> tuple[np.ndarray, float, float]:
        """AttnLRP: the relevance [T] of each token, what the constants have, and the logit."""
        weights, empty, logits = frozen_read_out(self.stages, self.last.detach(), at_zero=True)
        leaves = [leaf for leaf, _ in self._constants]
        score = (self.last[0] * weights[:, target]).sum()
        slope, *gradients = torch.autograd.grad(score, [self.start, *leaves], allow_unused=True, retain_graph=True)
        constants = float(empty[target]) + sum(
            float((value * grad).sum())
            for (_, value), grad in zip(self._constants, gradients, strict=True)
            if grad is not None
        )
        values = (self.start * slope).sum(dim=1).detach().cpu().numpy()
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
        remainder = torch.zeros_like(probs).requires_grad_(True)  # the constant is in probs already
        self._constants.append((remainder, (probs - tangent).detach()))
        out = _halved(probs + remainder) @ _halved(value)
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
    for weights in reversed(maps):
        total = weights.sum(dim=1, keepdim=True)
        if bool((total > 0).all()):  # a layer without heads passes on what it reads
            row = row / 2 + row @ (weights / total) / 2
    rolled: np.ndarray = row.cpu().numpy()
    return rolled
