"""The read-out of a post-norm encoder as a straight line: what its first token's state adds to each class score."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..models.fast.packing import Chunk, Group
from ..models.fast.post_norm import PostNormStages

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
    with torch.inference_mode(False), torch.enable_grad():
        rows = torch.cat([torch.zeros_like(state), state]).to(stages.clf.dtype).clone().requires_grad_(True)
        with _Frozen(at_zero):
            logits = stages.layout.read_out(stages.clf.model, rows)  # [2, C]
        grads = [torch.autograd.grad(logits[1, c], rows, retain_graph=True)[0][1] for c in range(logits.shape[1])]
        weights = torch.stack(grads, dim=1).double()
    rest = logits[0].detach().double()
    own = stages.read_out(state, Chunk((0,), (Group(0, 1, 1, 1, 0),)))[0].double().cpu().numpy()
    return weights, rest, own
