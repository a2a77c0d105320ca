"""``igspf``: the masks of ``iterative``, each given to the pre-trained model, which is then fine-tuned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import iterative

if TYPE_CHECKING:
    from ..heads import HeadMask
    from .loop import Chosen, Loop, Result


def choose(loop: Loop) -> Chosen:
    return iterative.choose(loop)


def result(loop: Loop, mask: HeadMask) -> Result:
    return loop.retrained(mask)
