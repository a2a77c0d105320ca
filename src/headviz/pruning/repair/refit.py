"""Least-squares refit of W_O: the kept heads take over what they can of the removed ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .moments import RIDGE, Moments, set_weights, weights_of
from .streams import rebuild

if TYPE_CHECKING:
    from ...evaluation.plain import Cancel, Progress
    from ...models.classifier import Classifier
    from ...tasks import Dataset


def refit(
    full: Classifier,
    small: Classifier,
    data: Dataset,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> dict[str, float]:
    """Solve each layer's W_O and bias of ``small`` anew (edited in place), the first layer first.

    Returns the squared error on the sample before and after, as a share of what the attention outputs should have
    been; each layer behind those already solved.
    """
    total = {"before": 0.0, "after": 0.0, "energy": 0.0}

    def fit(layer: int, m: Moments) -> None:
        weights = weights_of(small, layer)
        total["energy"] += m.energy
        total["before"] += m.error(weights)
        new = solved(weights, m)
        set_weights(small, layer, new)
        total["after"] += m.error(new)

    rebuild(full, small, data, fit, progress, cancel)
    return {k: total[k] / total["energy"] if total["energy"] else 0.0 for k in ("before", "after")}


def solved(weights: np.ndarray, m: Moments) -> np.ndarray:
    """argmin Σ ‖wanted − out·X‖² + ridge·‖X − weights‖² over X [W + 1, D]: never worse than ``weights``."""
    width = len(weights) - 1
    ridge = RIDGE * (np.trace(m.outer[:-1, :-1]) / width if width else 0.0)
    penalty = np.append(np.full(width, ridge), 0.0)  # the bias is free
    left = m.outer + np.diag(penalty)
    change, *_ = np.linalg.lstsq(left, m.cross - m.outer @ weights, rcond=None)
    return weights + change
