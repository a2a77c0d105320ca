"""The two ways between this process's memory and a device's. Neither makes anybody wait: results are asked for later.

Whatever is computed on a GPU comes back through ``fetch``, a few tables at a time, so the number of times that a GPU is
waited for can be counted here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

T = TypeVar("T")
AHEAD = 2  # pieces of work that a GPU may have before the first one's results are waited for


def runs_by_itself(device: torch.device) -> bool:
    """Whether a device computes while this process goes on: then nothing should wait for it, and its work be large."""
    return device.type not in ("cpu", "mps")


def put(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor of the processor's on the device; the copy waits for nothing that a GPU is doing."""
    if device.type != "cuda":
        return tensor.to(device)
    return _pinned(tensor).to(device, non_blocking=True)


def _pinned(tensor: Tensor) -> Tensor:
    return tensor.pin_memory() if torch.cuda.is_available() else tensor


def free(device: torch.device) -> int:
    """Bytes of a GPU's memory that nobody uses now."""
    unused, _ = torch.cuda.mem_get_info(device)
    return unused + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)


def exact(tensor: Tensor) -> Tensor:
    """In float64; on the processor where the device has no such numbers (MPS)."""
    return (tensor.cpu() if tensor.device.type == "mps" else tensor).double()


def fetch(tensors: Sequence[Tensor]) -> Callable[[], list[np.ndarray]]:
    """Begins to copy tensors to the processor; the function that comes back waits for them."""
    if not tensors or tensors[0].device.type != "cuda":
        return lambda: [t.detach().cpu().numpy() for t in tensors]
    copies = [torch.empty(t.shape, dtype=t.dtype, pin_memory=True) for t in tensors]
    for copy, tensor in zip(copies, tensors, strict=True):
        copy.copy_(tensor.detach(), non_blocking=True)
    done = torch.cuda.Event()
    done.record()

    def wait() -> list[np.ndarray]:
        done.synchronize()
        return [copy.numpy() for copy in copies]

    return wait


def in_turn(begun: Iterable[T], device: torch.device) -> Iterator[T]:
    """Each piece of work in turn; on a GPU once the next ones have begun."""
    waiting: deque[T] = deque()
    for piece in begun:
        waiting.append(piece)
        if len(waiting) > (AHEAD if runs_by_itself(device) else 0):
            yield waiting.popleft()
    yield from waiting
