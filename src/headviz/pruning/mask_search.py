"""``mask-search``: Fisher-based mask search with rearrangement within layers (Kwon et al. 2022)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..heads import HeadMask
    from .loop import Chosen, Loop, Result


def choose(loop: Loop) -> Chosen:
    return loop.search_by_fisher()


def result(loop: Loop, mask: HeadMask) -> Result:
    return loop.masked(mask)
