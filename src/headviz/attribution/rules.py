"""Rules that integrate ∂F/∂A · dA along a path, from the values at a few nodes of it.

At node k the path gives A_k and the gradient g_k. Every rule is a sum over neighbouring nodes of
(left · g_k + right · g_{k+1}) · (A_{k+1} − A_k), or is made of several such sums. Sums over fewer of the same nodes
also tell how far the result may be from the integral, at no further cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ..errors import OptionError, shown
from ..options import Options, option

DEFAULT_RULE = "richardson"
DEFAULT_STEPS = 16
MOST_STEPS = 10_000  # the error is below rounding long before
AUTO = "auto"  # float32; on a GPU TF32 where it agrees with that
PRECISIONS = (AUTO, "tf32", "float32", "bfloat16")
TOLERANCE = 0.1  # the estimated error up to which steps are doubled where none are asked for
STABLE = 0.99  # rank correlation between doublings from which on steps are not doubled again
COMPARED = 500_000  # connections of which that is computed, at the most
ENOUGH = 128  # and the steps at which that ends
# |R_n − R_{n/2}| times this is the estimated error: `bench/conductance_convergence.py` shows how often it covers
CAUTION = 0.8
# error of a map -> rank correlation with the exact one, `bench/conductance_convergence.py demo demo --examples 4
# --reference 320`
KEPT = ((0.02, 0.998), (0.05, 0.99), (0.15, 0.98))


@dataclass(frozen=True)
class Part:
    """One sum: over every ``stride``-th node, with these weights of the two gradients."""

    stride: int
    left: float
    right: float


@dataclass(frozen=True)
class Rule:
    """Nodes of the path, the sums taken over them, and what they say together.

    ``value`` and ``error`` are weights of these sums: the integral's estimate, and a map whose size estimates the
    error.
    """

    title: str
    nodes: Callable[[int], list[float]]
    parts: tuple[Part, ...]
    value: tuple[float, ...]
    error: tuple[float, ...]
    even: bool = False  # needs an even number of steps
    ends_at_input: bool = True  # the last node is the input itself

    def over(self, steps: int) -> Rule:
        """The rule for so many steps. Richardson's third sum needs a multiple of four; else T_n is the yardstick."""
        if len(self.parts) == 2 or steps % 4 == 0:
            return self
        return replace(self, parts=self.parts[:2], value=self.value[:2], error=(1 / 3, -1 / 3))


def _even_grid(steps: int) -> list[float]:
    return [k / steps for k in range(steps + 1)]


def _gauss_legendre(steps: int) -> list[float]:
    return list(0.5 * (1 + np.polynomial.legendre.leggauss(steps + 1)[0]))


_TRAPEZOID = Part(1, 0.5, 0.5)
_LEFT = Part(1, 1.0, 0.0)
_COARSE = Part(2, 0.5, 0.5)
_COARSER = Part(4, 0.5, 0.5)

RULES: dict[str, Rule] = {
    # R_n = (4·T_n − T_{n/2}) / 3; its distance from R_{n/2} estimates the error R_{n/2}
    "richardson": Rule(
        "trapezoid, Richardson-extrapolated",
        _even_grid,
        (_TRAPEZOID, _COARSE, _COARSER),
        (4 / 3, -1 / 3, 0.0),
        (CAUTION * 4 / 3, CAUTION * -5 / 3, CAUTION / 3),
        even=True,
    ),
    # the error of T_n is a quarter of T_{n/2}'s
    "trapezoid": Rule("trapezoid", _even_grid, (_TRAPEZOID, _COARSE), (1.0, 0.0), (1 / 3, -1 / 3)),
    # what Captum's LayerConductance computes: Gauss-Legendre nodes, left differences
    "captum": Rule(
        "Captum's LayerConductance", _gauss_legendre, (_LEFT, _TRAPEZOID), (1.0, 0.0), (1.0, -1.0), ends_at_input=False
    ),
}


def order_kept(error: float) -> str:
    """What a map's error means for the order of its connections."""
    rank = next((rank for limit, rank in KEPT if error <= limit), None)
    if rank is None:
        return "too large to trust the order of the connections"
    return f"with such an error the demo's order of connections agrees with the exact one at rank correlation {rank:g}"


def check_steps(steps: int) -> None:
    """A whole number of intervals."""
    if not isinstance(steps, int | np.integer) or isinstance(steps, bool) or not 1 <= steps <= MOST_STEPS:
        raise OptionError(f"steps must be a whole number of at least 1 and at most {MOST_STEPS:,}, not {shown(steps)}.")


@dataclass(frozen=True)
class Weights:
    """Nodes of a in [0, 1], their weights in the integral, and in the estimate of its error."""

    nodes: np.ndarray
    value: np.ndarray
    error: np.ndarray


def _simpson(steps: int) -> Weights:
    if steps % 2:
        raise OptionError(f"The rule 'simpson' needs an even number of steps: use {steps + 1} instead of {steps}.")
    fine = np.full(steps + 1, 1 / steps)
    fine[[0, -1]] /= 2
    coarse = np.zeros(steps + 1)
    coarse[::2] = 2 / steps
    coarse[[0, -1]] = 1 / steps
    return Weights(np.linspace(0, 1, steps + 1), (4 * fine - coarse) / 3, (fine - coarse) / 3)


def _riemann(steps: int) -> Weights:
    nodes = np.arange(1, steps + 1) / steps
    # against the trapezoid over the same nodes, continued to 0 as a constant
    error = np.full(steps, 0.0 if steps > 1 else np.nan)  # one point tells nothing of its own error
    error[-1] += 0.5 / steps
    error[0] -= 0.5 / steps
    return Weights(nodes, np.full(steps, 1 / steps), error)


SCALING_RULES: dict[str, Callable[[int], Weights]] = {
    "simpson": _simpson,
    "riemann": _riemann,  # as published, with 20 steps
}


LOGIT, PROBABILITY = "logit", "probability"
EXPLAINED = (LOGIT, PROBABILITY)


@dataclass(frozen=True)
class IntegrationOptions(Options):
    """How to integrate. ``precision="bfloat16"`` is for previews; models that are not float32 keep their own."""

    called: ClassVar[str] = "option of the integration"

    steps: int = option(help="intervals", least=1, most=MOST_STEPS, title="Steps")
    rule: str = option(help="integration rule", title="Rule")
    precision: str = option(
        AUTO, "auto: float32, on a GPU TF32 where it agrees; bfloat16 is a preview", PRECISIONS, title="Precision"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_rule()

    def check_rule(self) -> None:
        """Refuse steps that the rule cannot do with."""
        raise NotImplementedError

    @property
    def reliable(self) -> bool:
        """Whether the estimated error alone decides. Else doubling the steps must have changed little, too."""
        return False


@dataclass(frozen=True)
class PathOptions(IntegrationOptions):
    """Integration along the path of embeddings."""

    steps: int = option(
        DEFAULT_STEPS, "intervals of the integration path", least=1, most=MOST_STEPS, title="Steps", metavar="N"
    )
    rule: str = option(DEFAULT_RULE, "integration rule", RULES, title="Rule", metavar="R")

    def check_rule(self) -> None:
        check_steps(self.steps)
        if RULES[self.rule].even and self.steps % 2:
            raise OptionError(
                f"The rule '{self.rule}' halves the number of steps, so {self.steps} is not possible: "
                f"use {self.steps + 1}, or the rule 'trapezoid'."
            )

    @property
    def reliable(self) -> bool:
        return len(RULES[self.rule].over(self.steps).parts) > 2


@dataclass(frozen=True)
class AttAttrOptions(IntegrationOptions):
    """Integration over the scale of a layer's attention."""

    steps: int = option(8, "intervals of the attention's scale", least=1, most=MOST_STEPS, title="Steps")
    rule: str = option("simpson", "integration rule", SCALING_RULES, title="Rule")
    of: str = option(
        LOGIT,
        "what is explained: the logit (the paper's text), or the probability (its authors' code)",
        EXPLAINED,
        before=LOGIT,
    )

    def check_rule(self) -> None:
        SCALING_RULES[self.rule](self.steps)
