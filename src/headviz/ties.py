"""Order by a score: which values tie, and how ties are broken. Every order of heads in headviz is made here.

Values tie where they are equal, up to ``TOLERANCE`` of the largest magnitude among them: costs in accuracy are
multiples of 1/n that may differ by 1e-17. Ties are broken at random from a seed: by
place they would make an order by layer. A value that was not measured (NaN) comes last, by place, and ties with none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

T = TypeVar("T")
H = TypeVar("H", bound=tuple[int, int])  # a HeadId
Seed = int | tuple[int, ...] | None  # None = by place, as plans that were written before ties were drawn have it
TOLERANCE = 1e-12
DRAWS = 10  # orders that a curve or a board is averaged over
STREAM = 7135  # of the random numbers: the score ``random`` has the same seed, and draws others


def draws(values: Iterable[float], seed: int = 0) -> list[Seed]:
    """The seeds of the orders that a mean is made of; one where none of the values tie."""
    return [(seed, draw) for draw in range(DRAWS if tied(values) else 1)]


def levels(values: ArrayLike) -> NDArray[np.int64]:
    """[…, n] -> the place of each value among the different ones of its row, from 0; tied values share it."""
    import numpy as np

    given = np.asarray(values, dtype=np.float64)
    order = np.argsort(given, axis=-1, kind="stable")  # NaN last
    rising = np.take_along_axis(given, order, -1)
    largest = np.where(np.isfinite(given), np.abs(given), 0.0).max(axis=-1, keepdims=True, initial=0.0)
    with np.errstate(invalid="ignore"):
        apart = rising[..., 1:] - rising[..., :-1] > TOLERANCE * largest
    apart |= np.isnan(rising[..., 1:])
    level = np.zeros(given.shape, dtype=np.int64)
    level[..., 1:] = np.cumsum(apart, axis=-1)
    out = np.empty_like(level)
    np.put_along_axis(out, order, level, -1)
    return out


def in_order(items: Sequence[T], values: Iterable[float], seed: Seed, places: Sequence[int] | None = None) -> list[T]:
    """The items, the lowest value first. ``places`` number them where they are a part of more: with the same seed, two
    that tie stand in the same order whatever the others are."""
    import numpy as np

    level = levels([float(v) for v in values]).tolist()
    numbers = range(len(items)) if places is None else places
    keys: Sequence[float] = numbers
    if seed is not None:
        own = seed if isinstance(seed, tuple) else (seed,)
        drawn = np.random.default_rng([*own, STREAM]).random(max(numbers, default=0) + 1)
        keys = [float(drawn[n]) for n in numbers]
    return [items[i] for i in sorted(range(len(items)), key=lambda i: (level[i], keys[i], numbers[i]))]


def ordered(values: Any, among: Iterable[H], seed: Seed) -> list[H]:
    """The heads with the lowest score in the L×H table ``values`` first."""
    heads = sorted(among)
    return in_order(heads, grid_values(values, heads), seed, [layer * len(values[0]) + head for layer, head in heads])


def lowest(values: Any, count: int, among: Iterable[H], keep_per_layer: int = 0, *, seed: Seed) -> list[H]:
    """The first ``count`` of ``ordered``. ``keep_per_layer`` heads of every layer are never given."""
    order = ordered(values, among, seed)
    left = Counter(layer for layer, _ in order)
    chosen: list[H] = []
    for h in order:
        if len(chosen) == count:
            break
        if left[h[0]] > keep_per_layer:
            left[h[0]] -= 1
            chosen.append(h)
    return chosen


def tied(values: Iterable[float]) -> int:
    """How many of the values tie with another."""
    import numpy as np

    level = levels([float(v) for v in values])
    return int((np.bincount(level)[level] > 1).sum()) if level.size else 0


def ties_told(count: int, among: int) -> str:
    """``59 of 144 heads tie``; nothing where none does."""
    return f"{count} of {among} heads tie" if count else ""


def order_told(count: int, among: int) -> str:
    """The sentence beside a list of heads, with its blank; nothing where none ties."""
    return f" {ties_told(count, among)}; their order among equals is drawn." if count else ""


def in_lowest(values: ArrayLike, count: int) -> NDArray[np.float64]:
    """[…, n] -> the probability of each to be among the ``count`` lowest when ties are broken at random."""
    import numpy as np

    level = levels(values)
    order = np.argsort(level, axis=-1, kind="stable")
    rising = np.take_along_axis(level, order, -1)
    at = np.broadcast_to(np.arange(level.shape[-1]), level.shape)
    new = np.diff(rising, axis=-1, prepend=-1) > 0
    last = np.diff(rising, axis=-1, append=level.shape[-1]) > 0
    first = np.maximum.accumulate(np.where(new, at, 0), axis=-1)
    end = np.minimum.accumulate(np.where(last, at, level.shape[-1])[..., ::-1], axis=-1)[..., ::-1] + 1
    out = np.empty(level.shape)
    np.put_along_axis(out, order, np.clip((count - first) / (end - first), 0.0, 1.0), -1)
    return out


def grid_values(values: Any, heads: Iterable[tuple[int, int]]) -> list[float]:
    """Values of some heads of an L×H table; None is NaN."""
    found = (values[layer][head] for layer, head in heads)
    return [float("nan") if v is None else float(v) for v in found]
