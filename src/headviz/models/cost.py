"""How big and how expensive a model is, before and after heads are removed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..storage.exchange import MaskLike
from .network import Network
from .position_tables import removed_parameters
from .slices import OUT, is_map, parts
from .text_length import LENGTH


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


def cost(clf: Network, mask: MaskLike | None = None, length: int = LENGTH) -> Cost:
    """The cost once the heads that ``mask`` switches off are really removed."""
    total = sum(p.numel() for p in clf.model.parameters())
    flops = 0
    under = clf.under(mask)
    for layer in range(clf.num_layers):
        for part in parts(clf, layer, clf.present, under):
            matrix, size = part.matrix, len(part.index)
            left = size * matrix.weight.shape[1 - part.dim]
            flops += 2 * length * left
            if not clf.family.shared_layers:
                biased = part.side == OUT and matrix.bias is not None
                total -= matrix.weight.numel() - left + (matrix.weight.shape[part.dim] - size) * biased
        gone = len(clf.present.kept_in(layer)) - len(under.kept_in(layer))
        total -= len(clf.attention(layer)[0].vectors) * gone * clf.head_size
        width = len(under.kept_in(layer)) * clf.head_size
        flops += 2 * length * length * width * 2  # scores and the weighted sum
        flops += clf.family.position_flops(clf.model.config, length, width)
    flops += _feed_forward_flops(clf, length)
    total -= removed_parameters(clf, under)
    return Cost(total, flops, length)


def _feed_forward_flops(clf: Network, length: int) -> int:
    """The linear layers of the stack that are not attention, as often as they run."""
    rows = range(clf.num_layers)
    attention = {id(part.matrix) for row in rows for part in parts(clf, row, clf.present, clf.present)}
    stacks = [clf.module(stack.modules) for stack in clf.family.layers.values()]
    linear: list[Any] = [m for stack in stacks for m in stack.modules() if is_map(m)]
    once = sum(2 * length * m.weight.numel() for m in linear if id(m) not in attention)
    if not clf.family.shared_layers:
        return once
    distinct = {id(clf.projections(layer).output) for layer in range(clf.num_layers)}
    return once * clf.num_layers // len(distinct)
