"""Least-squares refit of W_O or W_2, so that what is kept replaces what was removed as well as it can."""

from __future__ import annotations

import numpy as np

from .moments import Moments


def refit_output(weights: np.ndarray, m: Moments, _: int, strength: float) -> np.ndarray:
    """argmin Σ ‖wanted − in·X‖² + ridge·‖X − weights‖² over X [W + 1, D]: never worse than ``weights``."""
    width = len(weights) - 1
    ridge = strength * (np.trace(m.outer[:-1, :-1]) / width if width else 0.0)
    penalty = np.append(np.full(width, ridge or 1.0), 0.0 if m.outer[-1, -1] else 1.0)  # the bias is free
    left = m.outer + np.diag(penalty)
    change: np.ndarray = np.linalg.solve(left, m.cross - m.outer @ weights)
    return weights + change
