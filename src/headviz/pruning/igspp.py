"""``igspp``: score the model that the step before has trained; prune the pre-trained one; fine-tune it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..heads import HeadMask
    from .loop import Chosen, Loop, Result


def choose(loop: Loop) -> Chosen:
    return loop.without_lowest(loop.score_trained())


def result(loop: Loop, mask: HeadMask) -> Result:
    return loop.retrained(mask)
