"""Draw a class-balanced sample of texts, of usual length if asked for, with a report about what was left out.

Draws do not depend on the order of the file: each example gets a rank from a keyed hash of its content, and a draw of k
takes the k lowest ranks. So a shuffled file gives the same examples, and a larger draw contains the smaller one.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import OptionError, TaskError, seed_number, shown
from .dataset import Dataset, LengthFilter, SampleReport, require_dataset
from .tokenizer_lock import alone_with, pieces


def ranks(data: Dataset, seed: int) -> np.ndarray:
    """A pseudo-random rank (uint64) for each example, from its content and the seed.

    Copies of an example get different ranks, so that they are drawn independently.
    """
    seed_number(seed)
    key = hashlib.sha256(f"headviz-draw-{seed}".encode()).digest()
    copies: dict[bytes, int] = {}
    out = np.empty(len(data), dtype=np.uint64)
    labels = ["" for _ in data.texts] if data.labels is None else [repr(v) for v in data.labels.tolist()]
    pairs = data.pairs or ("",) * len(data)
    slices = data.slices or ("",) * len(data)
    for i, parts in enumerate(zip(data.texts, pairs, labels, slices, strict=True)):
        content = "\0".join(parts).encode("utf-8", "surrogatepass")
        copy = copies.get(content, 0)
        copies[content] = copy + 1
        digest = hashlib.blake2b(content, digest_size=8, key=key, salt=copy.to_bytes(8, "little")).digest()
        out[i] = int.from_bytes(digest, "little")
    return out


def members_of(data: Dataset) -> list[np.ndarray]:
    """For each unit the positions of its examples, in file order."""
    order = np.argsort(data.units, kind="stable")
    return np.split(order, np.cumsum(np.bincount(data.units))[:-1])


def unit_ranks(data: Dataset, seed: int) -> np.ndarray:
    """A pseudo-random rank for each unit; of a unit of one example that example's."""
    order = np.zeros(int(data.units.max(initial=-1)) + 1, dtype=np.uint64)
    np.add.at(order, data.units, ranks(data, seed))  # wraps around
    return order


def proportional(counts: Mapping[Any, int], total: int) -> dict[Any, int]:
    """Share ``total`` in proportion to the counts, by largest remainder; never more than a count."""
    size = sum(counts.values())
    exact = {key: total * count / size for key, count in counts.items()}
    share = {key: int(value) for key, value in exact.items()}
    by_remainder = sorted(counts, key=lambda k: (share[k] - exact[k], -counts[k], str(k)))
    for key in by_remainder[: total - sum(share.values())]:
        share[key] += 1
    return share


def limited(data: Dataset, limit: int, seed: int) -> np.ndarray:
    """Positions of ``limit`` examples, stratified by label, then by slice; in file order.

    Units stay whole: so many queries are drawn that they have about ``limit`` passages.
    """
    require_size(limit, "limit")
    if limit >= len(data):
        return np.arange(len(data))
    rank, units = unit_ranks(data, seed), members_of(data)
    first = np.array([members[0] for members in units])
    group = np.zeros(len(data), dtype=np.int64) if data.labels is None else data.answer.groups(data)[0]
    slices = np.array(data.slices if data.slices is not None else [""] * len(data))
    group, slices = group[first], slices[first]
    chosen: list[np.ndarray] = []
    share = proportional(Counter(group.tolist()), max(1, limit * len(units) // len(data)))
    for label, size in share.items():
        members = np.flatnonzero(group == label)
        by_slice = proportional(Counter(slices[members].tolist()), size)
        chosen += [lowest_ranks(members[slices[members] == name], rank, count) for name, count in by_slice.items()]
    return np.sort(np.concatenate([units[i] for i in np.concatenate(chosen)]))


def lowest_ranks(members: np.ndarray, rank: np.ndarray, count: int) -> np.ndarray:
    """The ``count`` members of lowest rank."""
    return members[np.argsort(rank[members], kind="stable")[:count]]


DEFAULT_SAMPLES = 2000


def sample(
    data: Dataset,
    n: int = DEFAULT_SAMPLES,
    seed: int = 0,
    length_filter: str | LengthFilter | None = "none",
    lengths: Sequence[int] | np.ndarray | Callable[..., Any] | None = None,
) -> Dataset:
    """``n`` examples, equally many of each class; in file order, with ``.report``.

    ``length_filter`` may leave out short and long texts: "quantile" or "std", see ``LengthFilter``. ``lengths`` are the
    examples' token counts, or a tokenizer that counts them; None = words between spaces. A class
    with too few examples is taken whole, and the report says so; the other classes do not get more, because that
    would undo the balance. For a regression, fifths of the label take the place of classes.
    Do not use this to shrink a split for evaluation, because it changes the shares of the classes:
    ``load_task(limit=…)`` does not.

    >>> import headviz
    >>> some = headviz.sample(headviz.load_task("demo"), 60, seed=0)
    >>> some.report.per_class
    {'entailment': 20, 'neutral': 20, 'contradiction': 20}
    """
    require_dataset(data)
    require_size(n)
    filter_ = length_filter if isinstance(length_filter, LengthFilter) else LengthFilter(length_filter or "none")
    group, names = data.answer.groups(data)
    if not len(data):
        raise TaskError(f"The {data.split} split of '{data.task.name}' is empty; there is nothing to draw from.")
    units = members_of(data)
    # counted only for a filter: a tokenizer takes its time
    unit_lengths = np.zeros(len(data)) if filter_.kind == "none" else text_lengths(data, lengths)
    if len(units) < len(data):
        unit_lengths = np.array([unit_lengths[members].mean() for members in units])
    group = group[[members[0] for members in units]]
    band = filter_.band(unit_lengths)
    low, high = band if band is not None else (-np.inf, np.inf)
    inside = (unit_lengths >= low) & (unit_lengths <= high)
    if not inside.any():
        raise TaskError(f"No example is {low:.4g} to {high:.4g} long. Widen the band, or draw without a length filter.")
    rank = unit_ranks(data, seed)
    wanted = _equal_parts(max(1, int(n) * len(units) // len(data)) if len(units) < len(data) else int(n), names)
    chosen = [lowest_ranks(np.flatnonzero(inside & (group == k)), rank, wanted[name]) for k, name in enumerate(names)]
    at = np.sort(np.concatenate([units[i] for i in np.concatenate(chosen)]))
    report = SampleReport(
        requested=int(n),
        drawn=len(at),
        total=len(data),
        seed=seed,
        length_filter=filter_,
        unit="words" if lengths is None else "tokens",
        band=band,
        too_short=int((unit_lengths < low).sum()),
        too_long=int((unit_lengths > high).sum()),
        wanted=wanted,
        available={name: int((inside & (group == k)).sum()) for k, name in enumerate(names)},
        per_class={name: len(members) for name, members in zip(names, chosen, strict=True)},
    )
    return data.subset(at, report)


def require_size(n: object, name: str = "sample size") -> None:
    """An ``OptionError`` unless this is a number of examples from 1 up."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise OptionError(f"The {name} is a number of examples from 1 up, not {shown(n)}.")


def text_lengths(data: Dataset, lengths: Sequence[int] | np.ndarray | Callable[..., Any] | None = None) -> np.ndarray:
    """The length of each example with its pair: ``lengths`` itself, tokens of a tokenizer, or words between spaces."""
    if lengths is None:
        words = [len(text.split()) for text in data.texts]
        for i, pair in enumerate(data.pairs or ()):
            words[i] += len(pair.split())
        return np.array(words, dtype=np.int64)
    if callable(lengths):
        # without truncation: the filter is about the texts, not about a model's limit
        counts: list[int] = []
        for piece in pieces(len(data)):
            pairs = None if data.pairs is None else list(data.pairs[piece])
            with alone_with(lengths):
                encoded = lengths(list(data.texts[piece]), pairs, truncation=False, verbose=False)
            counts += [len(ids) for ids in encoded["input_ids"]]
        return np.array(counts, dtype=np.int64)
    counted = np.asarray(lengths)
    if counted.shape != (len(data),):
        raise TaskError(f"{counted.size:,} lengths were given for {len(data):,} examples; give one for each.")
    return counted


def _equal_parts(n: int, names: Sequence[str]) -> dict[str, int]:
    """n in equal parts; a remainder goes to the first classes, one each."""
    each, remainder = divmod(n, len(names))
    return {name: each + (k < remainder) for k, name in enumerate(names)}
