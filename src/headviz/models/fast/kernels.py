"""The dense operations that take most of the time, each computed exactly and as fast as the processor can."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

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
    out = F.linear(x, weight, bias)
    return F.gelu(out) if gelu else out


def _suits(x: Tensor) -> bool:
    """Whether oneDNN computes in this precision on this processor."""
    if x.device.type != "cpu" or not x.numel():
        return False
    return x.dtype == torch.float32 or (x.dtype == torch.bfloat16 and bfloat16_here(x.device))


def attention(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None = None) -> Tensor:
    """Softmax attention without a mask. query [B, h, Q, d] comes already scaled; ``bias`` is added to the scores."""
    if key.shape[2] > SHORT or query.device.type == "mps":
        return F.scaled_dot_product_attention(query, key, value, attn_mask=bias, scale=1.0)
    scores = query @ key.transpose(2, 3)
    return torch.softmax(scores if bias is None else scores + bias, dim=-1) @ value


@cache
def _onednn() -> Any:
    """oneDNN's linear layer, or None.

    ``F.linear`` uses MKL for float32, which reaches half the speed on processors that are not Intel's. PyTorch's
    compiler uses this operator, but it is not public. So we check once that it exists and gives the right answer;
    otherwise ``F.linear`` is used.
    """
    if not torch.backends.mkldnn.is_available():
        return None
    try:
        op = torch.ops.mkldnn._linear_pointwise.default
        generator = torch.Generator().manual_seed(0)
        x = torch.randn(5, 7, generator=generator)
        weight, bias = torch.randn(3, 7, generator=generator), torch.randn(3, generator=generator)
        same = torch.allclose(op(x, weight, bias, "gelu", [], "none"), F.gelu(F.linear(x, weight, bias)), atol=1e-5)
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
