"""What else is read from conductance maps, and learned gates of two more kinds: hard concrete, and pressed.

High = keep.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from ...progress import part
from ...scores.learned import Drawn, Rule, learn, rising_price
from ...scores.measures import Given, row_of
from ...scores.options import ConductanceOptions, HardOptions
from ...scores.statistics import Summary, exact, mean
from .options import CausalOptions

PRESSED = 4.0  # no pressure beyond this logit: 0.98 open, or 0.02


def conductance_kendall(given: Given, options: ConductanceOptions) -> Summary:
    return mean(given.rows[row_of("kendall", options)])


def conductance_pearson(given: Given, options: ConductanceOptions) -> Summary:
    return mean(given.rows[row_of("pearson", options)])


def conductance_max(given: Given, options: ConductanceOptions) -> Summary:
    return mean(given.rows[row_of("max", options)])


def gates_hard(given: Given, options: HardOptions) -> np.ndarray:
    """[L, H]: the mean of each gate's chance to be above 0 while the price rises."""
    assert given.whole is not None
    return learn(given.whole, rising_price(options.price, noise=True), options, "gates-hard").kept


@dataclass(frozen=True)
class CausalRoles:
    """How far each head has each part (Nam et al. 2025), between 0 and 1; [L, H]."""

    facilitating: np.ndarray  # it stays open although all gates are pressed to close
    interfering: np.ndarray  # it closes although all gates are pressed to open
    irrelevant: np.ndarray  # it follows either pressure


def gates_causal(given: Given, options: CausalOptions) -> Summary:
    """[L, H]: how far a head stays open under pressure to close, minus how far it closes under pressure to open."""
    roles = causal_roles(given, options)
    return replace(exact(roles.facilitating - roles.interfering), roles=vars(roles))


def causal_roles(given: Given, options: CausalOptions) -> CausalRoles:
    """Three learnings: without pressure, and from there with pressure to open and to close."""
    assert given.whole is not None
    stages = [replace(given.whole, progress=part(given.whole.progress, i, 3)) for i in range(3)]
    work = "gates-causal"
    free = learn(stages[0], pressed(0.0), options, work, part="free").logits
    opened = learn(stages[1], pressed(options.price), options, work, free, "open").logits
    closed = learn(stages[2], pressed(-options.price), options, work, free, "closed").logits
    up, down = (1 / (1 + np.exp(-z)) for z in (opened, closed))
    return CausalRoles(down, 1 - up, up * (1 - down))


def pressed(price: float) -> Rule:
    """Gates under a constant pressure on their logits: up for a positive price, down for a negative one."""

    def draw(logits: Tensor, done: float, generator: torch.Generator) -> Drawn:
        gates = torch.sigmoid(logits)
        return Drawn(gates, -price * logits.clamp(-PRESSED, PRESSED).mean(), gates)

    return draw
