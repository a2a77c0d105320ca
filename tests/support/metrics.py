"""Textbook formulas of metrics, for thousands of resampled data sets at once."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata


def metric_of_rows(name: str, gold: np.ndarray, said: np.ndarray) -> np.ndarray:
    """The metric of each row of two tables [draws, examples]. Classes are 0 and 1."""
    if name == "accuracy":
        return np.mean(gold == said, axis=1)
    if name == "spearman":
        gold, said = rankdata(gold, axis=1), rankdata(said, axis=1)
    if name == "f1":
        right = np.sum((gold == 1) & (said == 1), axis=1)
        return 2 * right / (np.sum(gold == 1, axis=1) + np.sum(said == 1, axis=1))
    # Matthews's coefficient of two classes is the correlation of the two columns of 0 and 1
    a, b = (x - x.mean(axis=1, keepdims=True) for x in (gold, said))
    return np.sum(a * b, axis=1) / np.sqrt(np.sum(a * a, axis=1) * np.sum(b * b, axis=1))
