"""Mask tuning (Kwon et al. 2022): one factor per kept head or neuron, by least squares, layer by layer.

A neuron is a head of size 1 that W_2 reads.
"""

from __future__ import annotations

import numpy as np

from .moments import Moments


def scale_heads(weights: np.ndarray, m: Moments, head_size: int, strength: float) -> np.ndarray:
    """W_O with each head's columns scaled so that the layer rebuilds the full model's best; the bias stays."""
    return weights * np.append(np.repeat(factors(weights, m, head_size, strength), head_size), 1.0)[:, None]


def factors(weights: np.ndarray, m: Moments, head_size: int, strength: float) -> np.ndarray:
    """The factor of each head, [h]: argmin Σ ‖wanted − bias − Σ_h f_h·W_h·out_h‖², held near 1 by a ridge."""
    heads = (len(weights) - 1) // head_size
    if heads == 0:
        return np.ones(0)
    own, bias = weights[:-1], weights[-1]
    # Σ_n ⟨W_h out_h, W_g out_g⟩ = Σ of the block (h, g) of (W·Wᵀ) ∘ (outᵀ·out)
    joint = (own @ own.T) * m.outer[:-1, :-1]
    gram = joint.reshape(heads, head_size, heads, head_size).sum(axis=(1, 3))  # [h, h]
    wanted = m.cross[:-1] - np.outer(m.outer[-1, :-1], bias)  # outᵀ·(wanted − bias)
    right = (own * wanted).sum(axis=1).reshape(heads, head_size).sum(axis=1)  # [h]
    ridge = strength * np.trace(gram) / heads
    if ridge == 0:  # all heads put out zero
        return np.ones(heads)
    return 1 + np.linalg.solve(gram + ridge * np.eye(heads), right - gram.sum(axis=1))
