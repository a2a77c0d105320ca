"""Which text a token belongs to, and its kind of place: the first, a delimiter, a word of either text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ..models.classifier import Encoding

FIRST, INNER, LAST, WORDS, PAIR = KINDS = tuple(range(5))


def text_numbers(encoding: Encoding) -> np.ndarray:
    """0 for tokens of the first text, 1 for the second. Families without token types get them from the delimiters."""
    types = np.array(encoding.types, dtype=np.int64)
    if not types.any():
        words = np.flatnonzero(~np.array(encoding.special, dtype=bool))
        gaps = np.flatnonzero(np.diff(words) > 1)
        if len(gaps):
            types[words[gaps[0]] + 2 :] = 1
    return types


def kinds_of(encoding: Encoding) -> np.ndarray:
    """The kind of each token."""
    special = np.array(encoding.special, dtype=bool)
    kinds = np.where(special, INNER, np.where(text_numbers(encoding) == 0, WORDS, PAIR))
    kinds[-1] = LAST if special[-1] else kinds[-1]
    kinds[0] = FIRST if special[0] else kinds[0]
    return kinds
