"""Head scores by learned gates: how long each head stays on. ``learned`` has the learning. High = keep.

And what mask searches ask of gates: their logits for an exact number of heads, and every example's derivatives.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .learned import falling_count, learn, rising_price
from .measures import Given
from .options import CountOptions, PriceOptions
from .scoring import Scoring

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..models.classifier import Classifier
    from ..progress import Cancel, Progress
    from ..tasks import Dataset

LEAST = 20  # updates for one exact number of heads


def gates(given: Given, options: PriceOptions) -> np.ndarray:
    """[L, H]: the mean of each gate while the price rises."""
    assert given.whole is not None
    return learn(given.whole, rising_price(options.price, options.noise), options, "gates").kept


def gates_exact(given: Given, options: CountOptions) -> np.ndarray:
    """[L, H]: the share of the updates in which each head was kept, from all heads down to one."""
    assert given.whole is not None
    rule = falling_count(len(given.whole.heads), 0, options.temperature)
    return learn(given.whole, rule, options, "gates-exact").kept


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
