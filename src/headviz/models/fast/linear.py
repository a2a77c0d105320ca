"""How matrix products are computed, forward and backward: by the device's fastest kernel, in a precision that is said.

On a processor ``torch.nn.functional.linear`` of this thread uses oneDNN instead of MKL, which is twice as fast on
processors that are not Intel's. Only for frozen weights: no weight gradient is computed. A GPU has fast kernels of its
own, and a mode that looks at every call would take longer than they do; there PyTorch's switch for TF32 is set and put
back. It is one for the whole process, so one thread at a time starts work on a GPU.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

from .kernels import bfloat16_here, linear

FLOAT32, TF32, BFLOAT16 = "float32", "tf32", "bfloat16"
_HALF: Any = WeakTensorKeyDictionary()  # weight -> its bfloat16 copy
GPU = threading.RLock()  # held by the thread that starts work on a GPU


def products(device: torch.device, precision: str = FLOAT32) -> AbstractContextManager[object]:
    """Inside the block, products of float32 matrices are computed in this precision, whatever the caller has set.

    TF32 keeps 10 of the 23 bits of each factor and is for NVIDIA's cards; elsewhere it is float32. bfloat16 keeps 7.
    """
    if device.type == "cpu":
        return FastLinear(precision == BFLOAT16)
    return _on_cuda(precision, precision == BFLOAT16) if device.type == "cuda" else nullcontext()


def gpu_products(device: torch.device, precision: str = FLOAT32) -> AbstractContextManager[object]:
    """The same for work that chooses a processor's kernels and its numbers' width by itself."""
    return _on_cuda(precision, False) if device.type == "cuda" else nullcontext()


@contextmanager
def _on_cuda(precision: str, half: bool) -> Iterator[None]:
    matmul: Any = torch.backends.cuda.matmul
    with GPU:
        before = matmul.fp32_precision
        matmul.fp32_precision = "tf32" if precision == TF32 else "ieee"
        try:
            with torch.autocast("cuda", torch.bfloat16, enabled=half, cache_enabled=False):
                yield
        finally:
            matmul.fp32_precision = before


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
