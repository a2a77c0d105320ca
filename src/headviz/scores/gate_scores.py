"""Head scores by learned gates: how long each head stays on. ``learned`` has the learning. High = keep.

And what mask searches ask of gates: their logits for an exact number of heads, and every example's derivatives.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..progress import part
from .learned import falling_count, learn, pressed, rising_price
from .measures import Given
from .options import CausalOptions, CountOptions, HardOptions, PriceOptions
from .scoring import Scoring
from .statistics import Summary, exact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..models.classifier import Classifier
    from ..progress import Cancel, Progress
    from ..tasks import Dataset

LEAST = 20  # updates for one exact number of heads


@dataclass(frozen=True)
class CausalRoles:
    """How far each head has each part (Nam et al. 2025), between 0 and 1; [L, H]."""

    facilitating: np.ndarray  # it stays open although all gates are pressed to close
    interfering: np.ndarray  # it closes although all gates are pressed to open
    irrelevant: np.ndarray  # it follows either pressure


def gates(given: Given, options: PriceOptions) -> np.ndarray:
    """[L, H]: the mean of each gate while the price rises."""
    assert given.whole is not None
    return learn(given.whole, rising_price(options.price, options.noise), options, "gates").kept


def gates_exact(given: Given, options: CountOptions) -> np.ndarray:
    """[L, H]: the share of the updates in which each head was kept, from all heads down to one."""
    assert given.whole is not None
    rule = falling_count(len(given.whole.heads), 0, options.temperature)
    return learn(given.whole, rule, options, "gates-exact").kept


def gates_hard(given: Given, options: HardOptions) -> np.ndarray:
    """[L, H]: the mean of each gate's chance to be above 0 while the price rises."""
    assert given.whole is not None
    return learn(given.whole, rising_price(options.price, noise=True), options, "gates-hard").kept


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


def learn_count(scoring: Scoring, start: np.ndarray | None, first: int, last: int) -> np.ndarray:
    """[L, H] logits of gates while the number of kept heads falls from ``first`` to ``last``.

    ``start`` has the logits to begin with; NaN = a head that stays on. Does a share of the updates, as large as the
    fall from first to last is of the full range, but no fewer than ``LEAST``.
    """
    whole, options = scoring.ready(), scoring.options
    steps = max(LEAST, round(options.steps * (first - last) / len(whole.heads)))
    rule = falling_count(first, last, options.temperature)
    begun = "" if start is None else hashlib.sha256(np.ascontiguousarray(start).tobytes()).hexdigest()
    return learn(whole, rule, replace(options, steps=steps), f"count {first} {last} {begun}", start).logits


def gate_gradients(
    clf: Classifier,
    data: Dataset,
    label_order: Sequence[str] | str | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> np.ndarray:
    """∂Loss(x)/∂ξ of every example and head, as the score ``fisher`` squares it: [n, L, H], 0 for removed heads."""
    scoring = Scoring(clf, data, "fisher", cache=False, label_order=label_order, progress=progress, cancel=cancel)
    for _ in scoring.grow():
        pass
    assert scoring.collector is not None
    return np.nan_to_num(scoring.collector.rows["signed"])
