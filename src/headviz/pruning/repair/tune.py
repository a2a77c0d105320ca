"""Mask tuning (Kwon et al. 2022): one factor per kept head, by least squares, layer by layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .moments import RIDGE, Moments, set_weights, weights_of
from .streams import rebuild

if TYPE_CHECKING:
    from ...evaluation.plain import Cancel, Progress
    from ...models.classifier import Classifier
    from ...tasks import Dataset


def tune(
    full: Classifier,
    small: Classifier,
    data: Dataset,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> dict[str, float]:
    """Scale each kept head of ``small`` (edited in place) so that the layer rebuilds the full model's best.

    The factor goes into W_O's columns. Returns the squared error on the sample before and after, as a share of what
    the attention outputs should have been; each layer behind those already tuned.
    """
    total = {"before": 0.0, "after": 0.0, "energy": 0.0}

    def fit(layer: int, m: Moments) -> None:
        weights = weights_of(small, layer)
        total["energy"] += m.energy
        total["before"] += m.error(weights)
        new = scaled(weights, factors(weights, m, small.head_size), small.head_size)
        set_weights(small, layer, new)
        total["after"] += m.error(new)

    rebuild(full, small, data, fit, progress, cancel)
    return {k: total[k] / total["energy"] if total["energy"] else 0.0 for k in ("before", "after")}


def factors(weights: np.ndarray, m: Moments, head_size: int) -> np.ndarray:
    """The factor of each head, [h]: argmin Σ ‖wanted − bias − Σ_h f_h·W_h·out_h‖², held near 1 by a small ridge."""
    heads = (len(weights) - 1) // head_size
    if heads == 0:
        return np.ones(0)
    own, bias = weights[:-1], weights[-1]
    # Σ_n ⟨W_h out_h, W_g out_g⟩ = Σ of the block (h, g) of (W·Wᵀ) ∘ (outᵀ·out)
    joint = (own @ own.T) * m.outer[:-1, :-1]
    gram = joint.reshape(heads, head_size, heads, head_size).sum(axis=(1, 3))  # [h, h]
    wanted = m.cross[:-1] - np.outer(m.outer[-1, :-1], bias)  # outᵀ·(wanted − bias)
    right = (own * wanted).sum(axis=1).reshape(heads, head_size).sum(axis=1)  # [h]
    ridge = RIDGE * np.trace(gram) / heads
    if ridge == 0:  # heads that put out nothing
        return np.ones(heads)
    return 1 + np.linalg.solve(gram + ridge * np.eye(heads), right - gram.sum(axis=1))


def scaled(weights: np.ndarray, by: np.ndarray, head_size: int) -> np.ndarray:
    """W_O with each head's columns scaled; the bias stays."""
    return weights * np.append(np.repeat(by, head_size), 1.0)[:, None]
