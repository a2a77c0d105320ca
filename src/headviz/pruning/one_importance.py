"""``one-importance``: score once, remove ever more, never train."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..heads import HeadMask
    from .loop import Chosen, Loop, Result


def choose(loop: Loop) -> Chosen:
    return loop.without_lowest(loop.first_scores())


def result(loop: Loop, mask: HeadMask) -> Result:
    return loop.masked(mask)
