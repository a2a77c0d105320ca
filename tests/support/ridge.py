"""The slow twin of a repair: least squares on the rows themselves, for every ridge; the best within the bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from headviz.pruning.reconstruction import LIMIT, STRENGTHS

Rows = tuple[np.ndarray, np.ndarray]  # inputs with a constant 1 behind them [N, W + 1], wanted [N, D]


def refitted(rows: Rows, old: np.ndarray, size: int, strength: float) -> np.ndarray:
    """Of a map and its bias as the last row [W + 1, D]; every change but the bias's is penalised."""
    x, wanted = rows
    width = x.shape[1] - 1
    ridge = strength * (x[:, :-1] ** 2).sum() / max(width, 1)
    left = np.vstack([x, np.sqrt(ridge) * np.eye(width, width + 1)])
    right = np.vstack([wanted - x @ old, np.zeros((width, old.shape[1]))])
    return old + np.linalg.lstsq(left, right, rcond=None)[0]


def tuned(rows: Rows, old: np.ndarray, size: int, strength: float) -> np.ndarray:
    """One factor for each ``size`` inputs; the bias stays."""
    x, wanted = rows
    starts = range(0, x.shape[1] - 1, size)
    each = np.stack([(x[:, i : i + size] @ old[i : i + size]).ravel() for i in starts], axis=1)
    ridge = strength * (each**2).sum() / len(starts)
    left = np.vstack([each, np.sqrt(ridge) * np.eye(len(starts))])
    right = np.concatenate([(wanted - old[-1]).ravel() - each.sum(axis=1), np.zeros(len(starts))])
    by = 1 + np.linalg.lstsq(left, right, rcond=None)[0]
    return old * np.append(np.repeat(by, size), 1.0)[:, None]


def best(
    solve: Callable[[Rows, np.ndarray, int, float], np.ndarray],
    x: np.ndarray,
    wanted: np.ndarray,
    held: Sequence[bool],
    old: np.ndarray,
    size: int,
) -> tuple[np.ndarray, float | None]:
    """The map that a repair should write, and the ridge that it should name."""
    out = np.asarray(held)

    def error(weights: np.ndarray) -> float:
        return float(((wanted[out] - x[out] @ weights) ** 2).sum())

    tried = {strength: solve((x[~out], wanted[~out]), old, size, strength) for strength in STRENGTHS}
    most = LIMIT * np.abs(old[:-1]).max(initial=0.0)
    within = [s for s, new in tried.items() if np.abs(new[:-1]).max(initial=0.0) <= most]
    ridge = min(within, key=lambda s: error(tried[s]), default=None)
    return (tried[ridge], ridge) if ridge is not None and error(tried[ridge]) < error(old) else (old, None)
