"""Points of a path that fewer steps have visited: twice the steps then compute only the points between them.

Shapes: n points of a text, h heads present in a layer, T tokens.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import torch
from torch import Tensor

Layers = list[Tensor]  # [n, 1, h, T, T] of each layer


@dataclass(frozen=True, eq=False)
class Points:
    """What was found at evenly spaced points of one text's path: probabilities and gradients of every layer."""

    alphas: Tensor
    logits: Tensor  # at the input
    maps: Layers
    grads: Layers

    @property
    def attention(self) -> Layers:
        """The probabilities at the input, [1, h, T, T] of each layer."""
        return [m[-1].clone() for m in self.maps]

    def woven(self, layer: int, first: int, maps: Tensor, grads: Tensor) -> tuple[Tensor, Tensor]:
        """Points of a layer in order: from the ``first`` known one on, each known one and the new one behind it."""
        found = []
        for known, new in ((self.maps[layer], maps), (self.grads[layer], grads)):
            end = first + len(new)
            pairs = torch.stack([known[first:end], new], dim=1).flatten(0, 1)
            found.append(torch.cat([pairs, known[end:]]) if end == len(known) - 1 else pairs)
        return found[0], found[1]


@dataclass(eq=False)
class Visited:
    """The points of several texts, as long as they take no more than ``room`` bytes; what does not fit is dropped.

    Points are kept only while doubling the steps would not exceed ``most``.
    """

    room: int
    most: int
    _points: dict[Hashable, Points] = field(default_factory=dict)

    def take(self, text: Hashable, alphas: Tensor) -> Points | None:
        """The points of every other alpha, which are forgotten here; None if these were not visited."""
        found = self._points.pop(text, None)
        if found is None:
            return None
        self.room += _bytes(found)
        return found if torch.equal(found.alphas, alphas[::2]) else None

    def wants(self, steps: int, text_bytes: int) -> bool:
        """Whether the points of a text would be kept."""
        return 2 * steps <= self.most and text_bytes <= self.room

    def keep(self, text: Hashable, points: Points) -> None:
        self.room -= _bytes(points)
        self._points[text] = points


def _bytes(points: Points) -> int:
    return sum(t.nbytes for t in (*points.maps, *points.grads))
