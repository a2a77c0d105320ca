"""``iterative``: score the fine-tuned model again under every mask, never train."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..heads import HeadMask
    from .loop import Chosen, Loop, Result


def choose(loop: Loop) -> Chosen:
    return loop.without_lowest(loop.score_masked(loop.mask))


def result(loop: Loop, mask: HeadMask) -> Result:
    return loop.masked(mask)
