"""Deletion and insertion curves: what the model answers while the words of an order go, or come back, one by one.

A word that is gone is padding, as at the start of integrated gradients' path; [CLS] and [SEP] stay.
Shapes: T tokens, n words, K steps of a curve, M orders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from ..progress import Cancel, Progress, tracked
from .integration import TOKENS_AT_ONCE
from .walk import Walk

if TYPE_CHECKING:
    from ..models.classifier import Encoding

STEPS = 10  # of a curve, at most


def counts_of(words: int) -> np.ndarray:
    """How many words are gone, or back, at each point of a curve: [K + 1] from 0 to all."""
    return np.round(np.linspace(0, words, min(words, STEPS) + 1)).astype(int)


def words_of(text: Encoding) -> np.ndarray:
    """The tokens that can go."""
    return np.flatnonzero(~np.array(text.special, dtype=bool))


def curves(
    walk: Walk, orders: np.ndarray, target: int, progress: Progress | None = None, cancel: Cancel | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Deletion and insertion [M, K + 1] for orders [M, n] of the words, first to go or to come first.

    Measured is the probability of the class; of a regression its number.
    """
    words, counts = words_of(walk.encodings[0]), counts_of(orders.shape[1])
    there = np.ones((2, len(orders), len(counts), walk.length), dtype=bool)
    for m, order in enumerate(orders):
        for k, count in enumerate(counts):
            there[0, m, k, order[:count]] = False
            there[1, m, k, words] = False
            there[1, m, k, order[:count]] = True
    states, back = np.unique(there.reshape(-1, walk.length), axis=0, return_inverse=True)
    values = _values(walk, states, target, progress, cancel)[back].reshape(there.shape[:3])
    return values[0], values[1]


def _values(walk: Walk, there: np.ndarray, target: int, progress: Progress | None, cancel: Cancel | None) -> np.ndarray:
    """What the model answers with these tokens [N, T] there and padding in the place of the others."""
    clf, at_once, found = walk.clf, max(1, TOKENS_AT_ONCE // walk.length), []
    parts = [there[i : i + at_once] for i in range(0, len(there), at_once)]
    for part in tracked(parts, progress, cancel, size=len):
        kept = torch.from_numpy(part).to(walk.end.device)[:, :, None]
        with torch.inference_mode():
            logits = clf.forward(walk.rows(torch.where(kept, walk.end, walk.start)), clf.call(walk.mask)).float()
        found.append(clf.answer.values(logits.cpu().numpy())[:, target])
    return np.concatenate(found).astype(np.float64)


def area(curve: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """The mean height of curves [..., K + 1] over the shares of words [K + 1], which rounding spaces unevenly."""
    found: np.ndarray = np.trapezoid(curve, shares, axis=-1)
    return found
