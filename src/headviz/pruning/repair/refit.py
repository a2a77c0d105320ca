"""Least-squares refit of W_O, so that the kept heads replace the removed ones as well as they can."""

from __future__ import annotations

import numpy as np

from .moments import RIDGE, Moments


def refit_output(weights: np.ndarray, m: Moments) -> np.ndarray:
    """argmin Σ ‖wanted − out·X‖² + ridge·‖X − weights‖² over X [W + 1, D]: never worse than ``weights``."""
    width = len(weights) - 1
    ridge = RIDGE * (np.trace(m.outer[:-1, :-1]) / width if width else 0.0)
    penalty = np.append(np.full(width, ridge), 0.0)  # the bias is free
    left = m.outer + np.diag(penalty)
    change, *_ = np.linalg.lstsq(left, m.cross - m.outer @ weights, rcond=None)
    return weights + change
