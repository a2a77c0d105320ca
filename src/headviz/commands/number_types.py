"""Numbers on the command line: each reader has bounds, and they are checked before anything is loaded."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

from ..heads import LEAST_STEP

COUNT = 10**9  # more of anything than fits into memory
SEED = 2**32 - 1  # the largest that numpy takes
STEPS = 10_000  # points of a path; the error is far below rounding long before
RATE = 1e37  # a learning rate; a larger one is no number in float32


def whole(least: int, most: int) -> Callable[[str], int]:
    """A reader of whole numbers from ``least`` to ``most``, for argparse."""

    def read(text: str) -> int:
        if len(text) <= 20:  # Python refuses whole numbers of thousands of digits with an error of its own
            try:
                value = int(text)
            except ValueError:
                value = least - 1
            if least <= value <= most:
                return value
        bound = f"of at least {least:,}" if most == COUNT else f"from {least:,} to {most:,}"
        raise argparse.ArgumentTypeError(f"'{short(text)}' is not a whole number {bound}")

    return read


def between(least: float, most: float, what: str = "a number") -> Callable[[str], float]:
    """A reader of finite numbers from ``least`` to ``most``, for argparse."""

    def read(text: str) -> float:
        try:
            value = float(text) if len(text) <= 40 else math.nan
        except ValueError:
            value = math.nan
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"'{short(text)}' is not {what} from {least:g} to {most:g}")
        return value

    return read


def short(text: str) -> str:
    """A text as it is, or its beginning where it is long."""
    return text if len(text) <= 60 else text[:57] + "…"


positive_int = whole(1, COUNT)
natural = whole(0, COUNT)
seed = whole(0, SEED)
path_steps = whole(1, STEPS)
share = between(0, 1, "a share")
step_share = between(LEAST_STEP, 1, "a share")
rate = between(1e-12, RATE)
