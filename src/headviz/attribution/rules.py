"""Rules that integrate ∂F/∂A · dA along a path, from the values at a few nodes of it.

At node k the path gives A_k and the gradient g_k. Every rule is a sum over neighbouring nodes of
(left · g_k + right · g_{k+1}) · (A_{k+1} − A_k), or a difference of two such sums. Two sums over the
same nodes also tell how far the result may be from the integral, at no further cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..errors import OptionError, unknown_choice

DEFAULT_RULE = "richardson"
DEFAULT_STEPS = 16


@dataclass(frozen=True)
class Part:
    """One sum: over every ``stride``-th node, with these weights of the two gradients."""

    stride: int
    left: float
    right: float


@dataclass(frozen=True)
class Rule:
    """Nodes of the path, the two sums taken over them, and what they say together.

    ``value`` and ``error`` are weights of (first sum, second sum): the integral's estimate, and a map whose
    size estimates the error.
    """

    title: str
    nodes: Callable[[int], list[float]]
    parts: tuple[Part, Part]
    value: tuple[float, float]
    error: tuple[float, float]
    even: bool = False  # needs an even number of steps
    ends_at_input: bool = True  # the last node is the input itself


def _even_grid(steps: int) -> list[float]:
    return [k / steps for k in range(steps + 1)]


def _gauss_legendre(steps: int) -> list[float]:
    return list(0.5 * (1 + np.polynomial.legendre.leggauss(steps + 1)[0]))


_TRAPEZOID = Part(1, 0.5, 0.5)
_LEFT = Part(1, 1.0, 0.0)
_COARSE = Part(2, 0.5, 0.5)

RULES: dict[str, Rule] = {
    # (4·T_n − T_{n/2}) / 3; its distance from T_n bounds its own error from above in practice
    "richardson": Rule(
        "trapezoid, Richardson-extrapolated",
        _even_grid,
        (_TRAPEZOID, _COARSE),
        (4 / 3, -1 / 3),
        (1 / 3, -1 / 3),
        even=True,
    ),
    # the error of T_n is a quarter of T_{n/2}'s
    "trapezoid": Rule("trapezoid", _even_grid, (_TRAPEZOID, _COARSE), (1.0, 0.0), (1 / 3, -1 / 3)),
    # what Captum's LayerConductance computes: Gauss-Legendre nodes, left differences
    "captum": Rule(
        "Captum's LayerConductance",
        _gauss_legendre,
        (_LEFT, _TRAPEZOID),
        (1.0, 0.0),
        (1.0, -1.0),
        ends_at_input=False,
    ),
}


def check(rule: str, steps: int) -> Rule:
    """The rule of that name, if it can do with so many steps."""
    if rule not in RULES:
        raise OptionError(unknown_choice("rule", rule, RULES))
    check_steps(steps)
    found = RULES[rule]
    if found.even and steps % 2:
        raise OptionError(
            f"The rule '{rule}' halves the number of steps, so {steps} is not possible: "
            f"use {steps + 1}, or the rule 'trapezoid'."
        )
    return found


def check_steps(steps: int) -> None:
    """A whole number of intervals."""
    if not isinstance(steps, int | np.integer) or isinstance(steps, bool) or steps < 1:
        raise OptionError(f"steps must be a whole number of at least 1, not {steps!r}.")


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
                step = (
                    g[k] * part.left
                    if part.right == 0
                    else torch.add(g[k] * part.left, g[k + 1], alpha=part.right)
                )
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
        return (first if b == 0 else torch.add(first * a, second, alpha=b)), torch.add(
            first * c, second, alpha=d
        )
