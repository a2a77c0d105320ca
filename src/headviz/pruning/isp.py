"""``isp``: as ``igspp``; the share κ is of the heads that are left (``sizes.remaining``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import igspp

if TYPE_CHECKING:
    from ..heads import HeadMask
    from .loop import Chosen, Loop, Result


def choose(loop: Loop) -> Chosen:
    return igspp.choose(loop)


def result(loop: Loop, mask: HeadMask) -> Result:
    return loop.retrained(mask)
