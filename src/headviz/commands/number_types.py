"""Numbers on the command line: each reader has bounds, and they are checked before anything is loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import LARGEST_SEED, MOST
from ..heads import LEAST_STEP
from ..options import Option

STEPS = 10_000  # points of a path; the error is far below rounding long before


def whole(least: int, most: int) -> Callable[[str], Any]:
    """A reader of whole numbers from ``least`` to ``most``, for argparse."""
    return Option("", kind=int, least=least, most=most).of_flag


def between(least: float, most: float) -> Callable[[str], Any]:
    """A reader of finite numbers from ``least`` to ``most``, for argparse."""
    return Option("", kind=float, least=least, most=most).of_flag


positive_int = whole(1, MOST)
natural = whole(0, MOST)
seed = whole(0, LARGEST_SEED)
path_steps = whole(1, STEPS)
share = between(0, 1)
step_share = between(LEAST_STEP, 1)
