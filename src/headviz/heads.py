"""The vocabulary of headviz: head, mask, score table.

layer     a transformer layer, ``l = 0 .. L-1``; a row of the grid of heads
head      one attention head of a layer, ``h = 0 .. H-1``; written ``L3·H5`` on screen, ``3.5`` as input
stack     a named range of rows: a classifier has ``encoder``, a translator ``encoder``, ``cross`` and ``decoder``
mask      which heads are switched on (1) and off (0), of all stacks together
stand-in  what stands in the place of a head that is off: nothing, its mean, its output in another example
score     a head's importance, high = keep; NaN = not measured; metric: a task's own measure, such as accuracy
job       what a model answers, a name of ``answers.ANSWERS``: class, number, tokens, …
kind      how a model is built and saved; jobs that are read by the same modules share one
piece     a unit of a run's work: it is done as a whole, and then a checkpoint is written
sweep     of scores: a measurement of each example; of runs: many runs of one plan

Layers and heads count from zero. A really pruned model keeps its original numbers.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product, starmap
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from .errors import MaskError, shown
from .results import Result, Shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


ENCODER = "encoder"
LEAST_STEP = 0.001  # share of the heads that a step removes: at most a thousand steps
MOST = 4096  # upper limit of layers, and of heads in each layer
CLASSIFICATION, MASKED_LM, TRANSLATION = "classification", "masked-lm", "translation"  # kinds of model
TAGGING, ANSWERING, VECTOR = "token-classification", "question-answering", "vector"
Heads = Iterable["tuple[int, int] | str"]  # (3, 5) or "3.5"


class HeadId(NamedTuple):
    """One head by its original numbers.

    >>> import headviz
    >>> str(headviz.HeadId(3, 5))
    'L3·H5'
    """

    layer: int
    head: int

    def __str__(self) -> str:
        return f"L{self.layer}·H{self.head}"

    @property
    def dotted(self) -> str:
        """The form users type: ``3.5``."""
        return f"{self.layer}.{self.head}"

    @property
    def json_text(self) -> str:
        return self.dotted

    @classmethod
    def parse(cls, text: str) -> HeadId:
        """Read ``3.5``, ``L3.H5`` or ``L3·H5``."""
        form = r"\s*[Ll]?([0-9]{1,6})[.·][Hh]?([0-9]{1,6})\s*"
        match = re.fullmatch(form, text) if isinstance(text, str) else None  # the number 3.10 would be head 3.1
        if match is None:
            text_shown = text.strip()[:40] if isinstance(text, str) else shown(text)
            raise MaskError(f"'{text_shown}' is not a head. Write layer.head, counted from zero, such as 3.5.")
        return cls(int(match[1]), int(match[2]))


def head_of(value: object) -> HeadId:
    """A head as people write it in Python: ``(3, 5)``, a ``HeadId``, or ``"3.5"``."""
    if isinstance(value, str):
        return HeadId.parse(value)
    try:
        layer, head = (index(n) for n in value if not isinstance(n, bool))  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise MaskError(
            f'{shown(value)} is not a head. Write (layer, head) or "layer.head", counted from zero: (3, 5) or "3.5".'
        ) from None
    return HeadId(layer, head)


def _size(value: Any, name: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or not 1 <= index(value) <= MOST:
        raise MaskError(f"A mask has 1 to {MOST:,} layers, and as many heads in each; {name} is {shown(value)}.")
    return index(value)


def head_name(head: HeadId, rows: Sequence[str] | None = None) -> str:
    """``L3·H5``, or ``cross 0·H5`` where the grid's rows have names of their own."""
    return f"{rows[head.layer]}·H{head.head}" if rows else str(head)


def _listed(heads: Heads) -> Heads:
    """Several heads, which a text may name with commas between them."""
    if isinstance(heads, str):
        return parse_heads(heads)
    if not isinstance(heads, Iterable):
        raise MaskError(f'{shown(heads)} is no list of heads. Write [(3, 5), (7, 0)] or "3.5,7.0".')
    return heads


def parse_heads(text: str, stacks: Mapping[str, range] | None = None) -> list[HeadId]:
    """Read a comma-separated list such as ``3.5,7.0``; an empty text is an empty list.

    With a model's ``stacks``, ``cross.1.5`` is head 5 of the second layer of cross-attention, by its row in the grid.
    """
    return [_parse_in_stack(part, stacks) for part in text.split(",") if part.strip()]


def _parse_in_stack(text: str, stacks: Mapping[str, range] | None) -> HeadId:
    match = re.fullmatch(r"\s*([A-Za-z]{2,})[.:](.+)", text)
    if match is None or stacks is None:
        return HeadId.parse(text)
    rows, head = stacks.get(match[1].lower()), HeadId.parse(match[2])
    if rows is None:
        raise MaskError(f"The model has no stack '{match[1]}'. Its stacks: {', '.join(stacks)}.")
    if head.layer >= len(rows):
        raise MaskError(
            f"Head {text.strip()} does not exist: layers of '{match[1]}' are 0 to {len(rows) - 1}, counted from zero."
        )
    return HeadId(rows[head.layer], head.head)


@dataclass(frozen=True)
class HeadMask(Shown):
    """Which heads are on. Immutable and hashable: usable as a cache key.

    A head that the grid does not have is a ``MaskError``.

    >>> import headviz
    >>> headviz.HeadMask.full(12, 12).without([(3, 5), "7.0"]).off == ((3, 5), (7, 0))
    True
    """

    num_layers: int
    num_heads: int
    off: tuple[HeadId, ...] = ()

    def __post_init__(self) -> None:
        _size(self.num_layers, "num_layers")
        _size(self.num_heads, "num_heads")
        if isinstance(self.off, str) or not isinstance(self.off, Iterable):
            raise MaskError(f"The heads that are off are a list, such as [(3, 5)], not {shown(self.off)}.")
        heads = sorted({head_of(h) for h in self.off})
        for h in heads:
            if not (0 <= h.layer < self.num_layers and 0 <= h.head < self.num_heads):
                raise MaskError(
                    f"Head {h.dotted} does not exist: layers are 0 to {self.num_layers - 1}, "
                    f"heads 0 to {self.num_heads - 1}, both counted from zero."
                )
        object.__setattr__(self, "off", tuple(heads))

    @classmethod
    def full(cls, num_layers: int, num_heads: int) -> HeadMask:
        return cls(num_layers, num_heads)

    @classmethod
    def only(cls, num_layers: int, num_heads: int, kept: Heads) -> HeadMask:
        """Every head off but these."""
        return cls.full(num_layers, num_heads).without(kept).inverted()

    @classmethod
    def from_hex(cls, text: str, num_layers: int, num_heads: int) -> HeadMask:
        """Read ``mask.hex`` back. The text must have exactly the digits that the grid needs."""
        size = _size(num_layers, "num_layers") * _size(num_heads, "num_heads")
        digits = -(-size // 4)
        if not isinstance(text, str):
            raise MaskError(f"A mask is written as text, such as 'fff', not as {type(text).__name__}.")
        text = text.strip().lower().removeprefix("0x")
        if not re.fullmatch(r"[0-9a-f]+", text) or len(text) != digits or int(text, 16) >> size:
            raise MaskError(
                f"'{text[:60]}' is not a mask of {num_layers}×{num_heads} heads: {digits} hexadecimal digits are "
                "needed, as written by headviz (1 = kept, most significant bit first)."
            )
        bits = f"{int(text, 16):0{size}b}"
        return cls(num_layers, num_heads, tuple(HeadId(*divmod(i, num_heads)) for i, b in enumerate(bits) if b == "0"))

    @classmethod
    def from_array(cls, kept: Any) -> HeadMask:
        """From an L×H table where true, or 1, means kept."""
        try:
            rows = [[{0.0: False, 1.0: True}[float(v)] for v in row] for row in kept]
        except (TypeError, ValueError, KeyError):
            rows = []
        if not rows or not rows[0] or any(len(row) != len(rows[0]) for row in rows):
            raise MaskError("A mask is made of a table with one row of 0 and 1 for each layer, all equally long.")
        off = tuple(HeadId(i, j) for i, row in enumerate(rows) for j, v in enumerate(row) if not v)
        return cls(len(rows), len(rows[0]), off)

    @property
    def hex(self) -> str:
        """Head (l, h) is bit l·H + h, most significant first, 1 = kept, left-padded to whole digits."""
        off = set(self.off)
        bits = "".join("0" if head in off else "1" for head in self.heads())
        return f"{int(bits, 2):0{-(-self.size // 4)}x}"

    json_text = hex

    @property
    def kept(self) -> tuple[HeadId, ...]:
        off = set(self.off)
        return tuple(h for h in self.heads() if h not in off)

    @property
    def size(self) -> int:
        return self.num_layers * self.num_heads

    @property
    def sparsity(self) -> float:
        """Share of heads that are off, 0 to 1."""
        return len(self.off) / self.size

    @property
    def is_full(self) -> bool:
        return not self.off

    def heads(self) -> Iterator[HeadId]:
        """Every head of the grid, row by row."""
        return starmap(HeadId, product(range(self.num_layers), range(self.num_heads)))

    def off_in(self, layer: int) -> tuple[int, ...]:
        """The heads of one layer that are off."""
        return tuple(h.head for h in self.off if h.layer == layer)

    def kept_in(self, layer: int) -> tuple[int, ...]:
        """The heads of one layer that are on."""
        off = self.off_in(layer)
        return tuple(h for h in range(self.num_heads) if h not in off)

    def without(self, heads: Heads) -> HeadMask:
        """A mask with these heads off as well."""
        return HeadMask(self.num_layers, self.num_heads, (*self.off, *map(head_of, _listed(heads))))

    def with_(self, heads: Heads) -> HeadMask:
        """A mask with these heads on again."""
        switched_on = HeadMask.full(self.num_layers, self.num_heads).without(heads).off
        return HeadMask(self.num_layers, self.num_heads, tuple(set(self.off).difference(switched_on)))

    def toggled(self, heads: Heads) -> HeadMask:
        switched = HeadMask.full(self.num_layers, self.num_heads).without(heads).off
        return HeadMask(self.num_layers, self.num_heads, tuple(set(self.off).symmetric_difference(switched)))

    def inverted(self) -> HeadMask:
        return HeadMask(self.num_layers, self.num_heads, self.kept)

    def without_random(self, count: int, seed: int = 0) -> HeadMask:
        """``count`` more heads off, drawn from those that are on."""
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= len(self.kept):
            raise MaskError(f"Cannot switch off {shown(count)} heads: {len(self.kept)} are on.")
        return self.without(random.Random(seed).sample(self.kept, count))

    def __or__(self, other: HeadMask) -> HeadMask:
        self.check_grid(other)
        return self.without(other.off)

    def check_grid(self, other: HeadMask) -> None:
        """Raise a ``MaskError`` unless ``other`` is a mask with as many layers and heads."""
        if not isinstance(other, HeadMask):
            raise MaskError(
                f"A mask is a HeadMask, not {type(other).__name__}. "
                f"Make one with HeadMask.full({self.num_layers}, {self.num_heads}).without([(0, 0)])."
            )
        if (self.num_layers, self.num_heads) != (other.num_layers, other.num_heads):
            raise MaskError(
                f"The mask is for {other.num_layers}×{other.num_heads} heads, "
                f"but {self.num_layers}×{self.num_heads} are needed."
            )

    def array(self) -> np.ndarray:
        """L×H booleans, true = kept."""
        import numpy as np

        table = np.ones((self.num_layers, self.num_heads), dtype=bool)
        for h in self.off:
            table[h] = False
        return table

    def __str__(self) -> str:
        return f"{len(self.off)} of {self.size} heads off"


def highest(values: Any) -> list[HeadId]:
    """The heads that have a value in a table [L, H], the highest first; those that tie in a drawn order."""
    import numpy as np

    return ordered(-values, (HeadId(int(i), int(j)) for i, j in np.argwhere(np.isfinite(values))), seed=0)


@dataclass(frozen=True, eq=False)
class HeadScores(Result):
    """A head score over a sample: tables [L, H], high = keep, NaN = not measured.

    ``interval_low`` to ``interval_high`` is a 95 % interval over examples. ``undefined`` counts the examples in which
    some head had no value (a correlation of a constant map). ``stability`` is the share of the bottom 20 % of heads
    that another sample of this size would agree on.
    """

    score: str
    values: np.ndarray
    stderr: np.ndarray
    interval_low: np.ndarray
    interval_high: np.ndarray
    samples: int
    undefined: int
    undefined_by_head: np.ndarray
    stability: float  # NaN = not known
    mask: HeadMask  # what was off: masked or removed
    settings: dict[str, Any]
    notes: tuple[str, ...] = ()
    roles: dict[str, np.ndarray] | None = None  # of causal gates: facilitating, interfering, irrelevant, 0 to 1

    def __repr__(self) -> str:
        first = ", ".join(f"{head.dotted} {self.values[head]:.4g}" for head in self.ranked()[:3])
        return f"<HeadScores {self.score} of {self.mask.num_layers}×{self.mask.num_heads} heads: highest {first}>"

    def ranked(self, seed: int = 0) -> list[HeadId]:
        """Measured heads, highest score first; ties in an order drawn from the seed."""
        measured = [h for h in self.mask.kept if self.values[h] == self.values[h]]
        return ordered(-self.values, measured, seed)

    @property
    def tied(self) -> int:
        """How many heads have the same value as another."""
        return tied(grid_values(self.values, self.mask.kept))

    def extra(self) -> dict[str, Any]:
        return {"tied": self.tied}


# -----------------------------------------------------------------------------------------------
# Order by a score: which values tie, and how ties are broken. Every order of heads in headviz is made here.
#
# Values tie where they are equal, up to ``TOLERANCE`` of the largest magnitude among them: costs in accuracy are
# multiples of 1/n that may differ by 1e-17. Ties are broken at random from a seed: broken by position, tied heads would
# be ordered by layer. Values that were not measured (NaN) come last, by position, and tie with none.


T = TypeVar("T")
H = TypeVar("H", bound=tuple[int, int])  # a HeadId
Seed = int | tuple[int, ...] | None  # None = ties are broken by position, as old plans have it
TOLERANCE = 1e-12
DRAWS = 10  # orders that a curve or a board is averaged over
STREAM = 7135  # added to the seed, so that ties draw other numbers than the score ``random`` with the same seed


def draws(values: Iterable[float], seed: int = 0) -> list[Seed]:
    """The seeds of the orders that a mean is made of; one where none of the values tie."""
    return [(seed, draw) for draw in range(DRAWS if tied(values) else 1)]


def levels(values: ArrayLike) -> NDArray[np.int64]:
    """[…, n] -> the rank of each value among the distinct values of its row, from 0; tied values share a rank."""
    import numpy as np

    table = np.asarray(values, dtype=np.float64)
    order = np.argsort(table, axis=-1, kind="stable")  # NaN last
    rising = np.take_along_axis(table, order, -1)
    largest = np.where(np.isfinite(table), np.abs(table), 0.0).max(axis=-1, keepdims=True, initial=0.0)
    with np.errstate(invalid="ignore"):
        distinct = rising[..., 1:] - rising[..., :-1] > TOLERANCE * largest
    distinct |= np.isnan(rising[..., 1:])
    level = np.zeros(table.shape, dtype=np.int64)
    level[..., 1:] = np.cumsum(distinct, axis=-1)
    out = np.empty_like(level)
    np.put_along_axis(out, order, level, -1)
    return out


def in_order(items: Sequence[T], values: Iterable[float], seed: Seed, places: Sequence[int] | None = None) -> list[T]:
    """The items, the lowest value first. ``places`` are their positions in a longer list, if they come from one: ties
    are drawn by position, so two tied items keep their order whichever other items are there."""
    import numpy as np

    level = levels([float(v) for v in values]).tolist()
    numbers = range(len(items)) if places is None else places
    keys: Sequence[float] = numbers
    if seed is not None:
        seeds = seed if isinstance(seed, tuple) else (seed,)
        random_keys = np.random.default_rng([*seeds, STREAM]).random(max(numbers, default=0) + 1)
        keys = [float(random_keys[n]) for n in numbers]
    return [items[i] for i in sorted(range(len(items)), key=lambda i: (level[i], keys[i], numbers[i]))]


def ordered(values: Any, among: Iterable[H], seed: Seed) -> list[H]:
    """The heads with the lowest score in the L×H table ``values`` first."""
    heads = sorted(among)
    return in_order(heads, grid_values(values, heads), seed, [layer * len(values[0]) + head for layer, head in heads])


def lowest(values: Any, count: int, among: Iterable[H], keep_per_layer: int = 0, *, seed: Seed) -> list[H]:
    """The first ``count`` of ``ordered``. ``keep_per_layer`` heads of every layer are never given."""
    order = ordered(values, among, seed)
    remaining = Counter(layer for layer, _ in order)
    chosen: list[H] = []
    for h in order:
        if len(chosen) == count:
            break
        if remaining[h[0]] > keep_per_layer:
            remaining[h[0]] -= 1
            chosen.append(h)
    return chosen


def tied(values: Iterable[float]) -> int:
    """How many of the values tie with another."""
    import numpy as np

    level = levels([float(v) for v in values])
    return int((np.bincount(level)[level] > 1).sum()) if level.size else 0


def ties_text(count: int, among: int) -> str:
    """``59 of 144 heads tie``; nothing where none does."""
    return f"{count} of {among} heads tie" if count else ""


def order_note(count: int, among: int) -> str:
    """The sentence next to a list of heads, with its blank; nothing where none ties."""
    return f" {ties_text(count, among)}; their order among equals is drawn." if count else ""


def in_lowest(values: ArrayLike, count: int) -> NDArray[np.float64]:
    """[…, n] -> the probability of each to be among the ``count`` lowest when ties are broken at random."""
    import numpy as np

    level = levels(values)
    order = np.argsort(level, axis=-1, kind="stable")
    rising = np.take_along_axis(level, order, -1)
    # tied values take the positions first to end - 1 of the sorted row, and each has the same chance of each of them
    position = np.broadcast_to(np.arange(level.shape[-1]), level.shape)
    begins = np.diff(rising, axis=-1, prepend=-1) > 0
    ends = np.diff(rising, axis=-1, append=level.shape[-1]) > 0
    first = np.maximum.accumulate(np.where(begins, position, 0), axis=-1)
    end = np.minimum.accumulate(np.where(ends, position, level.shape[-1])[..., ::-1], axis=-1)[..., ::-1] + 1
    out = np.empty(level.shape)
    np.put_along_axis(out, order, np.clip((count - first) / (end - first), 0.0, 1.0), -1)
    return out


def grid_values(values: Any, heads: Iterable[tuple[int, int]]) -> list[float]:
    """Values of some heads of an L×H table; None is NaN."""
    numbers = (values[layer][head] for layer, head in heads)
    return [float("nan") if v is None else float(v) for v in numbers]
