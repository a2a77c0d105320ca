"""How big and how expensive a model is, before and after heads are removed."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from ..heads import HeadMask
from .network import Network
from .position_tables import removed_parameters


@dataclass(frozen=True)
class Cost:
    """Parameters, and floating-point operations for one text of ``length`` tokens.

    A multiply-add counts as two operations. Only matrix products are counted: they take most of
    the time. Embedding look-ups, norms, activations and the classification head are left out
    of the FLOPs; the parameters are all of them. For a translation model ``length`` is that of both
    sentences, and the decoder runs over the whole translation once.
    """

    parameters: int
    flops: int
    length: int


def cost(clf: Network, mask: HeadMask | None = None, length: int = 128) -> Cost:
    """The cost once the heads that ``mask`` switches off are really removed."""
    total = sum(p.numel() for p in clf.model.parameters())
    flops = 0
    under = clf.under(mask)
    for layer in range(clf.num_layers):
        matrices = clf.projections(layer)
        hidden = matrices.output.out_features
        kept = len(under.kept_in(layer))
        if not clf.family.shared_layers:
            total -= (clf.heads_per_layer[layer] - kept) * parameters_per_head(clf, layer)
        width = kept * clf.head_size
        flops += 2 * length * hidden * width * 4  # W_Q, W_K, W_V, W_O
        flops += 2 * length * length * width * 2  # scores and the weighted sum
    flops += _feed_forward_flops(clf, length)
    total -= removed_parameters(clf, under)
    return Cost(total, flops, length)


def parameters_per_head(clf: Network, layer: int) -> int:
    """What removing one head of a layer frees: rows of W_Q, W_K, W_V with bias, columns of W_O."""
    query, _, _, output = clf.projections(layer)
    rows = clf.head_size * (query.in_features + (query.bias is not None))
    return 3 * rows + clf.head_size * output.out_features


def _feed_forward_flops(clf: Network, length: int) -> int:
    """The linear layers of the stack that are not attention, as often as they run."""
    attention = {id(m) for layer in range(clf.num_layers) for m in clf.projections(layer)}
    stacks = [clf.module(stack.modules) for stack in clf.family.layers.values()]
    linear = [m for stack in stacks for m in stack.modules() if isinstance(m, nn.Linear)]
    once = sum(2 * length * m.in_features * m.out_features for m in linear if id(m) not in attention)
    if not clf.family.shared_layers:
        return once
    distinct = {id(clf.projections(layer).output) for layer in range(clf.num_layers)}
    return once * clf.num_layers // len(distinct)
