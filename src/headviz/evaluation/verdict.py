"""What an interval of a change allows to say: one decision for colours, marks and sentences.

A loss or a gain is clear where the interval excludes zero. "Nothing is lost" is a claim of its own: it holds only
where the largest loss that is still possible, the interval's lower end, lies within a margin. Of an accuracy that end
is exact: it misses in at most 2.5 % where the interval is at 95 %. Of F1 and Matthews' correlation it missed in up to
5.6 % of the simulated cases (bench/coverage.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..options import Option

Verdict = Literal["loss", "gain", "open", "unknown"]

MARGIN = 2.0  # points of a metric; a user may choose another
MARGIN_OPTION = Option(
    "margin", MARGIN, "points that may be lost and still count as nothing", least=0, most=1e6, metavar="POINTS"
)
LEAST = 0.1  # points: the smallest loss that is written
TOO_FEW = "too few flips to tell"
ENOUGH = 64  # examples from which a metric other than accuracy has an interval: it may depend on a rare class


def verdict(low: float | None, high: float | None) -> Verdict:
    """The verdict on a change (after - before) with this interval; ``unknown`` without an interval."""
    if low is None or high is None or low != low or high != high:
        return "unknown"
    if high < 0:
        return "loss"
    return "gain" if low > 0 else "open"


def clear(low: ArrayLike, high: ArrayLike, q_value: ArrayLike, level: float) -> NDArray[np.bool_]:
    """Which changes of a table differ from nothing: q is below ``level``, and the interval excludes zero."""
    return (np.nan_to_num(np.asarray(q_value, dtype=float), nan=1.0) < level) & ~undecided(low, high)


def undecided(low: ArrayLike, high: ArrayLike) -> NDArray[np.bool_]:
    """Which changes of a table are not significant by their own intervals: grids draw them grey."""
    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    return ~((low > 0) | (high < 0))


def possible_loss(low: float) -> float:
    """The largest loss that is still possible, in the metric's unit; a greater one is excluded. NaN without an end."""
    return low if low != low else max(0.0, -low)


def within(low: float | None, margin: float) -> bool:
    """Whether a loss of more than ``margin`` (same unit) is excluded."""
    return low is not None and low == low and possible_loss(low) <= margin


def excluded(low: float | None, scale: float, margin: float = MARGIN) -> str:
    """Which loss the data exclude, in words. ``scale`` is points in one unit of the metric; the margin is in points.

    An end of exactly zero is one that the test has pulled there: it leaves a loss possible, if a small one.
    """
    if low is None or low != low:
        return TOO_FEW
    if low > 0:
        return "any loss is excluded"
    loss = max(scale * possible_loss(low), LEAST)
    sentence = f"a loss of more than {points_up(loss)} points is excluded"
    return sentence if loss <= margin else f"{sentence}, but not one of {margin:g}"


def at_most(low: float, scale: float) -> str:
    """The largest loss that is still possible, behind "can go": ``for a loss of at most 1.1 points``."""
    if low > 0:
        return "without a loss"
    return f"for a loss of at most {points_up(max(scale * possible_loss(low), LEAST))} points"


def clear_from(
    steps: Sequence[tuple[float, Sequence[tuple[float | None, float | None]]]], suffix: str = ""
) -> tuple[float, str] | None:
    """The first share at which a loss is clear, and the words: "significant from 50 % on". None where it never is.

    Each step has its share and the interval of every seed. "On" holds only where it is clear at every later step for
    every seed. ``suffix`` follows the first share in the sentence.
    """
    lost = [(share, sum(verdict(*ends) == "loss" for ends in seeds), len(seeds)) for share, seeds in steps]
    at = next((i for i, (_, count, _) in enumerate(lost) if count), None)
    if at is None:
        return None
    first, count, seeds = lost[at]
    on = [share for share, *_ in takewhile(lambda s: s[1] == s[2], reversed(lost))]
    if on and on[-1] <= first:
        return first, f"significant from {100 * first:.0f} % on{suffix}"
    sentence = f"first significant at {100 * first:.0f} %{f' ({count} of {seeds} seeds)' if seeds > 1 else ''}{suffix}"
    if on:
        return first, f"{sentence}, and from {100 * on[-1]:.0f} % on{' for every seed' if seeds > 1 else ''}"
    return first, sentence + (", but not at every later step" if at < len(lost) - 1 else "")


def points_up(loss: float) -> str:
    """A bound with one decimal, rounded up so that it stays a bound."""
    return f"{max(0.0, float(np.ceil(10 * loss - 1e-9))) / 10:.1f}"


def outward(low: float, high: float, scale: float) -> tuple[float, float]:
    """The ends of an interval at one decimal of a point, rounded outward so that it still covers."""
    ends = np.floor(10 * scale * low + 1e-9), np.ceil(10 * scale * high - 1e-9)
    return float(ends[0]) / (10 * scale), float(ends[1]) / (10 * scale)
