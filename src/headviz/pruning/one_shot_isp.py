"""``one-shot-isp``: score once; at each sparsity prune the pre-trained model and fine-tune it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..heads import HeadMask
    from .loop import Chosen, Loop, Result


def choose(loop: Loop) -> Chosen:
    return loop.without_lowest(loop.first_scores())


def result(loop: Loop, mask: HeadMask) -> Result:
    return loop.retrained(mask)
