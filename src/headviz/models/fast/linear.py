"""How matrix products are computed, forward and backward: by the device's fastest kernel, in a stated precision.

On a processor ``torch.nn.functional.linear`` of this thread uses oneDNN instead of MKL, which is twice as fast on
processors that are not Intel's. Only for frozen weights: no weight gradient is computed. A GPU has fast kernels of its
own, and a mode that looks at every call would take longer than they do; there PyTorch's switch for TF32 is set and put
back. It is one for the whole process, so one thread at a time starts work on a GPU.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

# up to this length the scores of a group fit in the processor's cache, where two batched products beat the
# blockwise sdpa kernel (measured: 4x at 25 tokens); above it sdpa also saves memory. On a GPU sdpa may build a kernel
# for every new length, which takes longer than the work
SHORT = 192


def linear(x: Tensor, weight: Tensor, bias: Tensor | None, gelu: bool = False) -> Tensor:
    """x·Wᵀ + b, then the exact GELU if asked for."""
    op = _onednn() if _suits(x) and x.dtype == weight.dtype and weight.numel() else None
    if op is not None:
        out: Tensor = op(x, weight, bias, "gelu" if gelu else "none", [], "none")
        return out
    out = nn.functional.linear(x, weight, bias)
    return nn.functional.gelu(out) if gelu else out


def _suits(x: Tensor) -> bool:
    """Whether oneDNN computes in this precision on this processor."""
    if x.device.type != "cpu" or not x.numel():
        return False
    return x.dtype == torch.float32 or (x.dtype == torch.bfloat16 and bfloat16_here(x.device))


def attention(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None = None) -> Tensor:
    """Softmax attention without a mask. query [B, h, Q, d] comes already scaled; ``bias`` is added to the scores."""
    if key.shape[2] > SHORT or query.device.type == "mps":
        return nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=bias, scale=1.0)
    scores = query @ key.transpose(2, 3)
    return torch.softmax(scores if bias is None else scores + bias, dim=-1) @ value


@cache
def _onednn() -> Any:
    """oneDNN's linear layer, or None.

    PyTorch's ``linear`` uses MKL for float32, which reaches half the speed on processors that are not Intel's. Its
    compiler uses this operator, but it is not public. So we check once that it exists and gives the right answer;
    otherwise PyTorch's ``linear`` is used.
    """
    if not torch.backends.mkldnn.is_available():
        return None
    try:
        op = torch.ops.mkldnn._linear_pointwise.default
        generator = torch.Generator().manual_seed(0)
        x = torch.randn(5, 7, generator=generator)
        weight, bias = torch.randn(3, 7, generator=generator), torch.randn(3, generator=generator)
        same = torch.allclose(
            op(x, weight, bias, "gelu", [], "none"),
            nn.functional.gelu(nn.functional.linear(x, weight, bias)),
            atol=1e-5,
        )
    except (AttributeError, RuntimeError):
        return None
    return op if same else None


def bfloat16_here(device: torch.device) -> bool:
    """Whether this processor computes in bfloat16 by itself; elsewhere it would be slower than float32."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type == "mps":
        return False
    flags = torch.cpu.get_capabilities()
    return any(flags.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))


def has_tf32(device: torch.device) -> bool:
    """Whether a card has TF32."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= (8, 0)


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
    """The GPU's part of ``products`` alone, without autocast: for code that calls ``linear`` itself, in a dtype of its
    own. Elsewhere it does nothing."""
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
