"""Draw a class-balanced sample of texts of usual length, with a report about what was left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import OptionError, TaskError
from . import strata
from .dataset import Dataset, require_dataset
from .sample_report import LengthFilter, SampleReport
from .tokenizing import alone_with, pieces

DEFAULT_SAMPLES = 2000


def sample(
    data: Dataset,
    n: int = DEFAULT_SAMPLES,
    seed: int = 0,
    length_filter: str | LengthFilter | None = "quantile",
    lengths: Sequence[int] | np.ndarray | Callable[..., Any] | None = None,
) -> Dataset:
    """``n`` examples, equally many of each class, of usual length; in file order, with ``.report``.

    ``lengths`` are the examples' token counts, or a tokenizer that counts them; None = words between spaces. A class
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
    how = length_filter if isinstance(length_filter, LengthFilter) else LengthFilter(length_filter or "none")
    group, names = data.answer.groups(data)
    if not len(data):
        raise TaskError(f"The {data.split} split of '{data.task.name}' is empty; there is nothing to draw from.")
    counted = text_lengths(data, lengths)
    band = how.band(counted)
    low, high = band if band is not None else (-np.inf, np.inf)
    inside = (counted >= low) & (counted <= high)
    if not inside.any():
        raise TaskError(f"No example is {low:.4g} to {high:.4g} long. Widen the band, or draw without a length filter.")
    rank = strata.ranks(data, seed)
    wanted = _equal_parts(int(n), names)
    chosen = [
        strata.lowest_ranks(np.flatnonzero(inside & (group == k)), rank, wanted[name]) for k, name in enumerate(names)
    ]
    at = np.sort(np.concatenate(chosen))
    report = SampleReport(
        requested=int(n),
        drawn=len(at),
        total=len(data),
        seed=seed,
        length_filter=how,
        unit="words" if lengths is None else "tokens",
        band=band,
        too_short=int((counted < low).sum()),
        too_long=int((counted > high).sum()),
        wanted=wanted,
        available={name: int((inside & (group == k)).sum()) for k, name in enumerate(names)},
        per_class={name: len(part) for name, part in zip(names, chosen, strict=True)},
    )
    return data.subset(at, report)


def require_size(n: object) -> None:
    """An ``OptionError`` for what is no number of examples."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise OptionError(f"The sample size is a number of examples from 1 up, not {n!r}.")


def text_lengths(data: Dataset, lengths: Sequence[int] | np.ndarray | Callable[..., Any] | None = None) -> np.ndarray:
    """The length of each example with its pair: as given, by a tokenizer, or in words between spaces."""
    if lengths is None:
        words = [len(text.split()) for text in data.texts]
        for i, pair in enumerate(data.pairs or ()):
            words[i] += len(pair.split())
        return np.array(words, dtype=np.int64)
    if callable(lengths):
        # without truncation: the filter is about the texts, not about a model's limit
        counts: list[int] = []
        for at in pieces(len(data)):
            pairs = None if data.pairs is None else list(data.pairs[at])
            with alone_with(lengths):
                encoded = lengths(list(data.texts[at]), pairs, truncation=False, verbose=False)
            counts += [len(ids) for ids in encoded["input_ids"]]
        return np.array(counts, dtype=np.int64)
    counted = np.asarray(lengths)
    if counted.shape != (len(data),):
        raise TaskError(f"{counted.size:,} lengths were given for {len(data):,} examples; give one for each.")
    return counted


def _equal_parts(n: int, names: Sequence[str]) -> dict[str, int]:
    """n in equal parts; a remainder goes to the first classes, one each."""
    each, left = divmod(n, len(names))
    return {name: each + (k < left) for k, name in enumerate(names)}
