"""Linear layers with frozen weights, forward and backward, by the processor's fastest kernel.

Inside ``with FastLinear():`` this thread's ``torch.nn.functional.linear`` uses oneDNN instead of MKL, which is twice
as fast on processors that are not Intel's. The model and other threads are not affected. Only for frozen weights: no
weight gradient is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

from .kernels import bfloat16_here, linear

_HALF: Any = WeakTensorKeyDictionary()  # weight -> its bfloat16 copy


class FastLinear(TorchFunctionMode):
    """``half=True`` multiplies in bfloat16 and adds up in float32: a preview, good to two or three digits.

    On a processor that does not compute in bfloat16 by itself it changes nothing.
    """

    def __init__(self, half: bool = False) -> None:
        super().__init__()
        self.half = half and bfloat16_here(torch.device("cpu"))

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if func is torch.nn.functional.linear and not kwargs and _applies(*args):
            x, weight, bias = args if len(args) == 3 else (*args, None)
            return _Linear.apply(x, weight, bias, self.half)
        return func(*args, **(kwargs or {}))


def _applies(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> bool:
    frozen = not weight.requires_grad and (bias is None or not bias.requires_grad)
    return frozen and x.device.type == "cpu" and x.dtype == weight.dtype == torch.float32 and x.numel() > 0


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, half: bool) -> Tensor:
        ctx.half = half
        if half:
            weight = _half(weight)
            ctx.weight = weight
            out = torch.nn.functional.linear(x.to(torch.bfloat16), weight).float()
            return out if bias is None else out.add_(bias)
        ctx.weight = weight
        out = linear(x, weight, bias)
        # the kernel's result is a view, which a family that adds to it in place could not use
        whole: Tensor = torch.ops.aten._unsafe_view(out, out.shape)
        return whole

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        grad = grads[0]
        if ctx.half:
            return (torch.nn.functional.linear(grad.to(torch.bfloat16), ctx.weight.t()).float(), None, None, None)
        return linear(grad, ctx.weight.t(), None), None, None, None


def _half(weight: Tensor) -> Tensor:
    copy = _HALF.get(weight)
    if copy is None:
        copy = _HALF[weight] = weight.to(torch.bfloat16)
    return copy
