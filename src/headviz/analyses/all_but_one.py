"""All heads of a layer off but one: how far does the best single head go? [M §3.3, Tables 2, 3, 5, 6]"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import OptionError
from ..evaluation.comparison import measure
from ..evaluation.significance import benjamini_hochberg
from ..heads import HeadId, HeadMask
from ..progress import Cancel, Progress, after
from ..results import Result
from .common import Subject, empty_grid, subject, sweep

if TYPE_CHECKING:
    from ..evaluation.evaluator import Evaluator

Select = Literal["same", "other"]


@dataclass(frozen=True)
class BestHead(Result):
    """One layer's row: its best single head, and what keeping only that head changes."""

    layer: int
    head: int
    delta: float  # masked - full
    interval_low: float
    interval_high: float
    p_value: float
    q_value: float


@dataclass(frozen=True, eq=False)
class AllButOne(Result):
    """``chosen_on`` is the data the heads were chosen on; choosing and reporting on the same data flatters."""

    subject: Subject
    select: Select
    chosen_on: Subject
    baseline: float
    deltas: NDArray[np.float64]  # [L, H] on ``chosen_on``; NaN where a head is not there
    rows: tuple[BestHead, ...]  # layers that still have heads


def all_but_one(
    evaluator: Evaluator,
    select: Select = "other",
    other: Evaluator | None = None,
    *,
    metric: str | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> AllButOne:
    """Choose each layer's best head on ``other`` (``select="other"``) or on the reported data itself."""
    if select not in ("same", "other"):
        raise OptionError(f"Unknown choice '{select}' of select. Choose one of: same, other.")
    if select == "other" and other is None:
        raise OptionError(
            "select='other' needs a second data set to choose the heads on, such as a train sample."
        )
    chooser = evaluator if select == "same" or other is None else other
    present = evaluator.clf.present
    if chooser.clf.digest != evaluator.clf.digest:
        raise OptionError("The heads must be chosen with the same model that they are reported for.")
    about, chosen_on = subject(evaluator, metric), subject(chooser, metric)
    total = len(present.kept) + present.num_layers + 2
    heads = present.kept
    masks = [_only(present, h) for h in heads]
    _, found = sweep(chooser, masks, chosen_on.metric, progress=after(progress, 0, total), cancel=cancel)
    table = empty_grid(present)
    for head, delta in zip(heads, found, strict=True):
        table[head] = delta.delta
    best = [
        HeadId(layer, int(np.nanargmax(table[layer])))
        for layer in range(present.num_layers)
        if not np.isnan(table[layer]).all()
    ]
    kept = [_only(present, h) for h in best]
    answers, reported = sweep(
        evaluator, kept, about.metric, progress=after(progress, len(heads) + 1, total), cancel=cancel
    )
    q = benjamini_hochberg([d.p_value for d in reported])
    rows = tuple(
        BestHead(h.layer, h.head, d.delta, d.interval_low, d.interval_high, d.p_value, float(q[i]))
        for i, (h, d) in enumerate(zip(best, reported, strict=True))
    )
    if progress is not None:
        progress(total, total)
    return AllButOne(about, select, chosen_on, measure(answers, answers.full, about.metric), table, rows)


def _only(present: HeadMask, kept: HeadId) -> HeadMask:
    """Every other head of its layer off, all other layers untouched."""
    return present.without((kept.layer, h) for h in range(present.num_heads) if h != kept.head)
