"""The attention function headviz registers with transformers: masks go in, probabilities come out.

A model loaded with ``attn_implementation="headviz"`` calls ``headviz_attention`` in every layer.
What one forward pass wants is one ``HeadCall``, passed as the keyword ``headviz=call``; without it
the pass is plain sdpa attention. Nothing is hooked and nothing is shared between calls, so threads
may run one model under different masks at the same time.

Shapes: B examples, h heads present in the layer, Q queries, K keys, d head size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface

from .errors import MaskError
from .heads import HeadMask

NAME = "headviz"
Kernel = Literal["sdpa", "eager"]

# One factor per head of a layer, broadcast over [B, h, Q, d]; None = every head as it is.
Gate = Tensor | None


@dataclass
class HeadCall:
    """What one forward pass asks of its attention, and what it got back.

    Use one object per forward pass. Layers take their entry in the order in which they run, which
    also serves families whose layers share one module (ALBERT); ``layer`` may be set beforehand
    when a pass starts in the middle of the model.
    """

    gates: tuple[Gate, ...]
    kernel: Kernel = "sdpa"
    keep_probs: bool = False  # implies the eager kernel: sdpa never forms the probabilities
    keep_outputs: bool = False
    edit_probs: Callable[[int, Tensor], Tensor] | None = None  # (layer, [B, h, Q, K]) -> the same shape

    layer: int = 0
    probs: list[Tensor] = field(default_factory=list)  # per layer [B, h, Q, K]
    outputs: list[Tensor] = field(default_factory=list)  # per layer [B, h, Q, d], before gate and W_O

    @property
    def finished(self) -> bool:
        """Whether every layer has asked for its entry: false means that a mask was not applied."""
        return self.layer == len(self.gates)


def gates_for(
    mask: HeadMask | None, present: HeadMask, dtype: torch.dtype, device: torch.device
) -> tuple[Gate, ...]:
    """One gate per layer; None where the mask changes nothing, so that full heads stay bit-identical.

    ``present`` says which heads the model still has: rows of a gate are its heads, in order.
    """
    if mask is None:
        return (None,) * present.num_layers
    if (mask.num_layers, mask.num_heads) != (present.num_layers, present.num_heads):
        raise MaskError(
            f"The mask has {mask.num_layers} layers × {mask.num_heads} heads, "
            f"the model {present.num_layers} × {present.num_heads}."
        )
    gates: list[Gate] = []
    for layer in range(present.num_layers):
        gone = set(present.off_in(layer))
        off = set(mask.off_in(layer))
        row = [0.0 if h in off else 1.0 for h in range(present.num_heads) if h not in gone]
        if all(row):
            gates.append(None)
        else:
            gates.append(torch.tensor(row, dtype=dtype, device=device).view(1, -1, 1, 1))
    return tuple(gates)


def headviz_attention(
    module: torch.nn.Module,
    query: Tensor,  # [B, h, Q, d]
    key: Tensor,  # [B, h, K, d]
    value: Tensor,  # [B, h, K, d]
    attention_mask: Tensor | None,  # bool or additive, broadcast to [B, h, Q, K]
    scaling: float | None = None,
    dropout: float = 0.0,
    headviz: HeadCall | None = None,
    **_: Any,
) -> tuple[Tensor, Tensor | None]:
    """Attention of one layer, with the entry of ``headviz`` applied. Returns ([B, Q, h, d], probabilities)."""
    if headviz is None:
        return _sdpa(query, key, value, attention_mask, scaling, dropout).transpose(1, 2).contiguous(), None
    layer = headviz.layer
    headviz.layer = layer + 1
    probs = None
    if headviz.kernel == "eager" or headviz.keep_probs or headviz.edit_probs is not None:
        probs = _probabilities(query, key, attention_mask, scaling)
        if headviz.edit_probs is not None:
            probs = headviz.edit_probs(layer, probs)
        if headviz.keep_probs:
            headviz.probs.append(probs)
        out = torch.nn.functional.dropout(probs.to(value.dtype), dropout, module.training) @ value
    else:
        out = _sdpa(query, key, value, attention_mask, scaling, dropout)
    if headviz.keep_outputs:
        headviz.outputs.append(out)
    gate = headviz.gates[layer]
    if gate is not None:
        out = out * gate
    return out.transpose(1, 2).contiguous(), None if probs is None else probs.to(query.dtype)


def _sdpa(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float | None, dropout: float
) -> Tensor:
    if query.shape[1] == 0:  # every head of the layer was removed: W_O's bias is all that is left of it
        return query.new_zeros(query.shape[0], 0, query.shape[2], value.shape[3])
    return torch.nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, dropout_p=dropout, scale=scaling
    )


def _probabilities(query: Tensor, key: Tensor, mask: Tensor | None, scaling: float | None) -> Tensor:
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    logits = (query @ key.transpose(2, 3)) * scale
    if mask is not None:
        if mask.dtype == torch.bool:
            # the lowest finite number, not -inf: a row without any key must not become NaN
            logits = logits.masked_fill(~mask, torch.finfo(logits.dtype).min)
        else:
            logits = logits + mask
    # at least float32, and kept so: differences of half-precision probabilities would be mostly rounding
    return torch.softmax(logits, dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32))


AttentionInterface.register(NAME, headviz_attention)
AttentionMaskInterface.register(NAME, AttentionMaskInterface()["sdpa"])
