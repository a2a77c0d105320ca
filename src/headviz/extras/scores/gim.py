"""Derivatives by the gates along a changed backward pass: Gradient Interaction Modifications (Edin et al. 2025).

The forward pass stays as it is. Backwards, what the model would make up for does not hide what a head does: layer
norms keep their divisor, softmax is taken as if its scores were ``temperature`` times smaller, and where two results
are multiplied each gets half of the gradient: values a half, queries and keys a quarter, both factors of a gated
feed-forward block a half. Factors as in the authors' code (github.com/corticph/gim).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from ...errors import OptionError
from ...models.feed_forward import block
from ...models.pruning import weight_of
from ...scores import gradients
from ...scores.chunk import Chunk, Tables
from ...scores.measures import Inputs
from ...scores.statistics import Summary, mean
from .gnorm import linear_weight
from .options import ChangedOptions

VALUE, QUERY_KEY, FACTOR = 0.5, 0.25, 0.5
SOFTMAX = (functional.softmax, torch.softmax, Tensor.softmax)


class Changed(TorchFunctionMode):
    """The backward pass of what is computed inside the block. The model is not touched; other threads neither."""

    def __init__(self, temperature: float, shares: dict[int, Any]) -> None:
        super().__init__()
        self.temperature, self.shares = temperature, shares  # weight's identity -> share of the gradient

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        keywords = kwargs or {}
        if func is functional.layer_norm:
            return layer_norm(*args, **keywords)
        if func in SOFTMAX:
            return softmax(self.temperature, *args, **keywords)
        out = func(*args, **keywords)
        weight_index = linear_weight(func, args)
        if weight_index is not None and id(args[weight_index]) in self.shares and out.requires_grad:
            share = self.shares[id(args[weight_index])]
            out.register_hook(lambda grad: grad * share)
        return out


def layer_norm(
    x: Tensor, shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """A layer norm whose divisor has no gradient."""
    dims = tuple(range(-len(shape), 0))
    centred = x - x.mean(dim=dims, keepdim=True)
    out = centred / (centred.pow(2).mean(dim=dims, keepdim=True) + eps).sqrt().detach()
    out = out if weight is None else out * weight
    return out if bias is None else out + bias


def softmax(
    temperature: float, x: Tensor, dim: int = -1, _stacklevel: int = 3, dtype: torch.dtype | None = None
) -> Tensor:
    """A softmax whose gradient is that at scores ``temperature`` times smaller."""
    out: Tensor = _Softmax.apply(x if dtype is None else x.to(dtype), dim, temperature)
    return out


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int, temperature: float) -> Tensor:
        ctx.dim = dim
        ctx.save_for_backward(torch.softmax(x / temperature, dim))
        return torch.softmax(x, dim)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (soft,) = ctx.saved_tensors
        grad = grads[0]
        return soft * (grad - (grad * soft).sum(ctx.dim, keepdim=True)), None, None


def changed(chunk: Chunk) -> Changed:
    """Context manager: runs the model with the changed backward pass. Refuses a model with unknown norms."""
    if kind := unknown_norm(chunk.clf):
        raise OptionError(
            f"Score 'gim' keeps the divisor of layer norms, and '{chunk.clf.name}' has {kind}, which it does not know."
        )
    return Changed(chunk.options.temperature, shares(chunk.clf))


def unknown_norm(clf: Any) -> str:
    """The class of a norm that is no layer norm; empty where there is none."""
    names = {type(m).__name__ for m in clf.model.modules() if not isinstance(m, nn.LayerNorm)}
    return next((name for name in sorted(names) if name.lower().endswith("norm")), "")


def shares(clf: Any) -> dict[int, Any]:
    """The share of the gradient that goes on behind a linear map, by its weight's identity."""
    out: dict[int, Any] = {}
    for layer in range(clf.num_layers):
        query, key, value, _ = clf.projections(layer)
        if value is query:  # three thirds of one matrix
            size = len(weight_of(value)) // 3
            share = torch.tensor([QUERY_KEY, QUERY_KEY, VALUE], dtype=clf.dtype, device=clf.device)
            out[id(value.weight)] = share.repeat_interleave(size)
        else:
            out |= {id(query.weight): QUERY_KEY, id(key.weight): QUERY_KEY, id(value.weight): VALUE}
    for parts in clf.family.layers.values():
        if not parts.outer:
            continue
        for layer in range(len(clf.module(parts.modules))):
            inner, outer = block(clf.model, parts, layer)
            if sum(len(weight_of(m)) for m in inner) == 2 * weight_of(outer).shape[1]:  # one half multiplies the other
                out |= {id(m.weight): FACTOR for m in inner}
    return out


def sweep(chunk: Chunk) -> list[Callable[[], Tables]]:
    """For each example: "signed", the derivative by each head's gate along the changed backward pass."""
    parts = gradients.parts(chunk, changed(chunk), "eager")
    return gradients.per_example(chunk, {"signed": [part.sum(dim=-1) for part in parts]})


def gim(inputs: Inputs, options: ChangedOptions) -> Summary:
    return mean(np.abs(inputs.rows["signed"]))
