"""The sums of an integration rule, fed with the nodes of a path as they are computed."""

from __future__ import annotations

import torch
from torch import Tensor

from .rules import Rule


class PathSum:
    """The integral of one layer and its error map, fed with nodes in the order of the path, any number at a time."""

    def __init__(self, rule: Rule, steps: int) -> None:
        self.rule, self.last = rule.over(steps), steps
        self._totals: list[Tensor | None] = [None, None]  # value and error
        self._previous: list[tuple[Tensor, Tensor] | None] = [None] * len(self.rule.parts)

    def add(self, first: int, maps: Tensor, grads: Tensor) -> None:
        """Nodes ``first``, ``first`` + 1, … as [nodes, B, h, T, T]."""
        nodes = range(first, first + len(maps))
        copies: dict[int, tuple[Tensor, Tensor]] = {}
        for i, part in enumerate(self.rule.parts):
            picked = [k - first for k in nodes if k % part.stride == 0 or k == self.last]
            if not picked:
                continue
            a, g = (_picked(t, first, part.stride, self.last) for t in (maps, grads))
            before = self._previous[i]
            if before is not None:
                a, g = torch.cat([before[0][None], a]), torch.cat([before[1][None], g])
            # a copy: a view would keep the whole chunk alive until the next one is done
            if nodes[-1] != self.last:
                if picked[-1] not in copies:
                    copies[picked[-1]] = a[-1].clone(), g[-1].clone()
                self._previous[i] = copies[picked[-1]]
            if len(a) == 1:  # the first node: no step ends here
                continue
            step = g[:-1] * part.left if part.right == 0 else torch.add(g[:-1] * part.left, g[1:], alpha=part.right)
            step = step.mul_(a[1:] - a[:-1]).sum(dim=0)
            for t, weight in enumerate((self.rule.value[i], self.rule.error[i])):
                if weight:
                    total = self._totals[t]
                    self._totals[t] = step * weight if total is None else total.add_(step, alpha=weight)

    def result(self) -> tuple[Tensor, Tensor | None]:
        """The integral's estimate and the error map (None: a single step allows no estimate)."""
        value, error = self._totals
        assert value is not None
        if self.last == 1 and self.rule.parts[1].stride > 1:
            return value, None  # both sums are over the same two nodes
        return value, error


def _picked(table: Tensor, first: int, stride: int, last: int) -> Tensor:
    """Of nodes from ``first`` on, every ``stride``-th of the path and the last one, by slices: they copy no numbers."""
    own = table[-first % stride :: stride]
    ends = first + len(table) - 1 == last and last % stride
    return torch.cat([own, table[-1:]]) if ends else own
