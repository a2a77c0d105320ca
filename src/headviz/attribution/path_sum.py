"""The two sums of an integration rule, fed with the nodes of a path as they are computed."""

from __future__ import annotations

import torch
from torch import Tensor

from .rules import Rule


class PathSum:
    """The sums of one layer, fed with nodes in the order of the path, any number at a time."""

    def __init__(self, rule: Rule, steps: int) -> None:
        self.rule, self.last = rule, steps
        self._totals: list[Tensor | None] = [None, None]
        self._previous: list[tuple[Tensor, Tensor] | None] = [None, None]

    def add(self, first: int, maps: Tensor, grads: Tensor) -> None:
        """Nodes ``first``, ``first`` + 1, … as [nodes, B, h, T, T]."""
        nodes = range(first, first + len(maps))
        for i, part in enumerate(self.rule.parts):
            picked = [k - first for k in nodes if k % part.stride == 0 or k == self.last]
            if not picked:
                continue
            a, g = (maps, grads) if len(picked) == len(maps) else (maps[picked], grads[picked])
            before = self._previous[i]
            if before is not None:
                a, g = torch.cat([before[0][None], a]), torch.cat([before[1][None], g])
            # a copy: a view would keep the whole chunk alive until the next one is done
            if nodes[-1] != self.last:
                self._previous[i] = a[-1].clone(), g[-1].clone()
            total = self._totals[i]
            for k in range(len(a) - 1):
                step = g[k] * part.left if part.right == 0 else torch.add(g[k] * part.left, g[k + 1], alpha=part.right)
                step *= a[k + 1] - a[k]
                total = step if total is None else total.add_(step)
            self._totals[i] = total

    def result(self) -> tuple[Tensor, Tensor | None]:
        """The integral's estimate and the error map (None: a single step allows no estimate)."""
        first, second = self._totals
        assert first is not None
        assert second is not None
        if self.last == 1 and self.rule.parts[1].stride > 1:
            return first, None  # both sums are over the same two nodes
        (a, b), (c, d) = self.rule.value, self.rule.error
        return (first if b == 0 else torch.add(first * a, second, alpha=b)), torch.add(first * c, second, alpha=d)
