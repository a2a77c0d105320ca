"""Choose which connections of an attention map to draw: of a part of the pair, without special tokens, the strongest.

Only pictures use this; scores always use all connections.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..errors import OptionError, is_one_of, unknown_choice

PARTS = ("all", "A→A", "A→B", "B→A", "B→B")


class Arc(NamedTuple):
    """One connection: query and key position, and its value."""

    query: int
    key: int
    value: float


def positions(
    types: Sequence[int], special: Sequence[bool], part: str, show_special: bool
) -> tuple[list[int], list[int]]:
    """The query and key positions of a part. ``A`` is the first text, ``B`` the second."""
    if not is_one_of(part, PARTS):
        raise OptionError(unknown_choice("part", part, PARTS))
    usable = [i for i in range(len(types)) if show_special or not special[i]]
    if part == "all":
        return usable, usable
    sides = {"A": [i for i in usable if types[i] == 0], "B": [i for i in usable if types[i] == 1]}
    return sides[part[0]], sides[part[-1]]


def strongest(matrix: np.ndarray, mass: float, most: int = 120) -> list[Arc]:
    """The fewest connections that hold ``mass`` (0 to 1) of the absolute values, strongest first.

    At most ``most`` are given, so that the picture stays readable; ties keep reading order.
    """
    size = np.abs(np.nan_to_num(matrix)).ravel()
    total = size.sum()
    if total == 0:
        return []
    order = np.argsort(-size, kind="stable")
    enough = int(np.searchsorted(np.cumsum(size[order]), mass * total - 1e-12)) + 1
    chosen = order[: min(enough, most)]
    width = matrix.shape[1]
    return [Arc(int(i) // width, int(i) % width, float(matrix.ravel()[i])) for i in chosen if size[i] > 0]
