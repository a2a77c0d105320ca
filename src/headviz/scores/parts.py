"""A score measured in parts, each anywhere and in any order, and joined to the table that one process would make.

    scoring = Scoring(clf, data, score, cache=False)
    parts = [measure(scoring, i) for i in range(count(score, len(data)))]
    table = join(scoring, parts)                 # = score_heads(clf, data, score, cache=False), bit for bit

A part is some whole windows of ``collect``: the same examples share their batches, so nothing rounds differently, as
long as device and number of threads are the same. Not for small samples: a part has its own cost of beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..errors import OptionError
from ..heads import HeadScores
from ..progress import after
from .catalogue import DEFAULT, PRESETS, score_named
from .chunk import Tables
from .collect import windows
from .scoring import Scoring

PART = 128  # examples of a part, at least, but for the last one


def count(score: str | None, examples: int) -> int:
    """How many parts a score or preset over so many examples has; 1 where no example is needed."""
    name = PRESETS[score].score if score in PRESETS else (score or DEFAULT)
    sweep = score_named(name).sweep
    return 1 if sweep is None else len(list(slices(examples, sweep.window)))


def slices(examples: int, window: int) -> Iterator[slice]:
    """Whole windows, together at least ``PART`` examples."""
    start = 0
    for w in windows(examples, window):
        if w.stop - start >= PART or w.stop == examples:
            yield slice(start, w.stop)
            start = w.stop


def measure(scoring: Scoring, part: int) -> Tables:
    """The values of one part's examples. Empty beyond the last part. Progress is that of the whole sample.

    Equal examples are measured once, so a data set with many of them may have fewer parts than ``count`` says.
    """
    found = scoring.collector
    if found is None:
        return {} if scoring.whole is None or part else scoring.measure_whole().tables
    cut = list(slices(len(found.order), found.sweep.window))
    if part < 0:
        raise OptionError(f"Parts are numbered from 0 up, not {part}.")
    if part >= len(cut):
        return {}
    return found.measure(cut[part], after(scoring.progress, cut[part].start, len(found.order)), scoring.cancel)


def join(scoring: Scoring, parts: Sequence[Tables]) -> HeadScores:
    """The table of all parts, in the order of their numbers."""
    found = scoring.collector
    if found is None:
        if scoring.whole is not None and parts:
            scoring.take(parts[0])
        return scoring.result()
    cut = list(slices(len(found.order), found.sweep.window))
    sizes = [len(next(iter(tables.values()), np.zeros(0))) for tables in parts]
    if [n for n in sizes if n] != [c.stop - c.start for c in cut]:
        raise OptionError(
            f"These {len(parts)} parts hold {sum(sizes)} examples and do not make up this sample of "
            f"{len(scoring.data)}. Measure every part of the same sample, with the same score."
        )
    for where, tables in zip(cut, parts, strict=False):
        found.place(where, tables)
    return scoring.result()
