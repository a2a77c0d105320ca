"""A head's gate written out: gate·head + (1 − gate)·what stands in its place. What derivatives are compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from headviz import HeadId


def gated(clf: Any, gates: Mapping[tuple[int, int], Any], stands: Any = None) -> Callable[[int, Tensor], Tensor]:
    """For ``edit_outputs``: these heads turned down. ``stands(layer, head)`` [d] or [Q, d]; None = the model's fill."""

    def vector(layer: int, head: int) -> Any:
        if stands is not None:
            return stands(layer, head)
        return 0.0 if clf.fill is None else clf.fill.values[layer][head].clone()

    def edit(layer: int, outputs: Tensor) -> Tensor:
        rows = list(outputs.unbind(dim=1))
        for place, head in enumerate(clf.present.kept_in(layer)):
            if HeadId(layer, head) in gates:
                gate = gates[layer, head]
                rows[place] = gate * rows[place] + (1 - gate) * vector(layer, head)
        return torch.stack(rows, dim=1) if rows else outputs

    return edit
