"""A score measured in parts, each anywhere and in any order, and joined to the table that one process would make.

    parts = [measure_part(clf, data, i, score=…) for i in range(count(score, len(data)))]
    table = join(clf, data, parts, score=…)      # = score_heads(clf, data, score, cache=False), bit for bit

A part is some whole windows of ``collect``: the same examples share their batches, so nothing rounds differently, as
long as device and number of threads are the same. Not for small samples: a part has its own cost of beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import OptionError
from ..heads import HeadScores
from .catalogue import DEFAULT, PRESETS, score_named
from .chunk import Tables
from .collect import windows
from .scoring import Job
from .sweeps import SWEEPS

if TYPE_CHECKING:
    from ..models.classifier import Classifier
    from ..tasks import Dataset

PART = 128  # examples of a part, at least, but for the last one


def count(score: str | None, examples: int) -> int:
    """How many parts a score or preset over so many examples has; 1 where no example is needed."""
    name = PRESETS[score].score if score in PRESETS else (score or DEFAULT)
    sweep = score_named(name).needs
    return 1 if sweep is None else len(list(slices(examples, SWEEPS[sweep].window)))


def slices(examples: int, window: int) -> Iterator[slice]:
    """Whole windows, together at least ``PART`` examples."""
    start = 0
    for w in windows(examples, window):
        if w.stop - start >= PART or w.stop == examples:
            yield slice(start, w.stop)
            start = w.stop


def measure_part(clf: Classifier, data: Dataset, part: int, **options: Any) -> Tables:
    """The values of one part's examples; options as for ``score_heads``. Empty beyond the last part.

    Equal examples are measured once, so a data set with many of them may have fewer parts than ``count`` says.
    """
    return measure(Job(clf, data, **{**options, "cache": False}), part)


def measure(job: Job, part: int) -> Tables:
    """The same for a job that has been made already."""
    found = job.collector
    if found is None:
        return {}
    cut = list(slices(len(found.order), found.sweep.window))
    if part < 0:
        raise OptionError(f"Parts are numbered from 0 up, not {part}.")
    return found.measure(cut[part], job.progress, job.cancel) if part < len(cut) else {}


def join(clf: Classifier, data: Dataset, parts: Sequence[Tables], **options: Any) -> HeadScores:
    """The table of all parts, in the order of their numbers."""
    job = Job(clf, data, **{**options, "cache": False})
    found = job.collector
    if found is None:
        return job.result()
    cut = list(slices(len(found.order), found.sweep.window))
    sizes = [len(next(iter(tables.values()), np.zeros(0))) for tables in parts]
    if [n for n in sizes if n] != [c.stop - c.start for c in cut]:
        raise OptionError(
            f"These {len(parts)} parts hold {sum(sizes)} examples and do not make up this sample of {len(data)}. "
            "Measure every part of the same sample, with the same score."
        )
    for where, tables in zip(cut, parts, strict=False):
        found.place(where, tables)
    return job.result()
