"""Redundant pairs: heads that are harmless one by one, but not together, because each stands in for the other.

All pairs are too many to evaluate. From the single ablations two guesses are made: what a pair costs if the changes
of every example's logits add up, and how alike the two changes are. Pairs are evaluated by the one guess and the other
in turn, until the time is up. Pairs that single ablations give no sign of come last.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import OptionError
from ..evaluation.comparison import Answers, Delta, deltas, measure
from ..evaluation.significance import benjamini_hochberg
from ..evaluation.verdict import clear
from ..heads import CLASSIFICATION, HeadId, HeadMask
from ..progress import Cancel, Progress, stop_if
from ..results import Result
from ..tasks import predicted
from .ablation import Ablation, ablate
from .analysis import ENDS, METRIC, PAIRED, Analysis, Option, Picture, Table, View, in_points
from .common import SIGNIFICANT, Subject
from .recipe import EVALUATOR, Recipe, found_by

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from ..evaluation.evaluator import Evaluator
    from .given import Given


@dataclass(frozen=True)
class RedundantPair(Result):
    """Costs are full - masked. ``excess`` is what the pair costs beyond the sum of its two heads."""

    first: HeadId
    second: HeadId
    cost_first: float
    cost_second: float
    cost: float
    interval_low: float  # of the pair's cost
    interval_high: float
    excess: float
    p_value: float
    q_value: float  # over the pairs evaluated

    @property
    def interaction(self) -> float:
        """m(both on) − m(first) − m(second) + m(neither), the others on: negative = one stands in for the other."""
        return -self.excess

    def extra(self) -> dict[str, Any]:
        return {"interaction": self.interaction}


@dataclass(frozen=True)
class Redundant(Result):
    """``pairs`` are significant, costliest first. ``evaluated`` of ``candidates`` fitted into the time."""

    subject: Subject
    baseline: float
    harmless: int  # heads that are not significantly costly alone
    candidates: int
    evaluated: int
    budget_seconds: float
    seconds: float
    pairs: tuple[RedundantPair, ...]


def redundant(
    evaluator: Evaluator,
    *,
    ablation: Ablation | None = None,
    metric: str | None = None,
    seconds: float = 60.0,
    level: float = SIGNIFICANT,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Redundant:
    """Search within ``seconds`` (the single ablations, if they are still to be made, come on top).

    A head counts as harmless if its cost is not clear by itself, before any correction: the stricter reading.

    >>> import headviz
    >>> clf, data = headviz.load("demo", device="cpu"), headviz.load_task("demo", limit=20)
    >>> small = headviz.prune(clf, headviz.HeadMask.only(12, 12, ["0.0", "0.1", "11.0"]))
    >>> headviz.redundant(headviz.Evaluator(small, data), seconds=5).harmless
    3
    """
    if seconds <= 0:
        raise OptionError(f"The time budget must be above 0 seconds, not {seconds}.")
    single = ablation if ablation is not None else ablate(evaluator, metric=metric, progress=progress, cancel=cancel)
    costly = clear(single.interval_low, single.interval_high, single.p_value, level) & (single.values > 0)
    harmless = [h for h in single.base.kept if not costly[h]]  # without an interval it counts as harmless
    answers = evaluator.answers(single.base, cancel=cancel)
    order = _by_promise(evaluator, single, harmless, answers)
    start = time.perf_counter()
    found: list[tuple[HeadId, HeadId]] = []
    predictions: list[NDArray] = []
    for pair in order:
        spent = time.perf_counter() - start
        if found and spent > seconds:
            break
        stop_if(cancel)
        predictions.append(evaluator.predictions(single.base.without(pair), keep=False, cancel=cancel))
        found.append(pair)
        if progress is not None:
            share = max(len(found) / len(order), min(1.0, (time.perf_counter() - start) / seconds))
            progress(round(1000 * share), 1000)
    rows = _rows(single, found, deltas(answers, predictions, single.subject.metric), level)
    return Redundant(
        single.subject,
        measure(answers, answers.full, single.subject.metric),
        len(harmless),
        len(order),
        len(found),
        seconds,
        time.perf_counter() - start,
        rows,
    )


def _rows(
    single: Ablation, pairs: Sequence[tuple[HeadId, HeadId]], found: Sequence[Delta], level: float
) -> tuple[RedundantPair, ...]:
    q = benjamini_hochberg([d.p_value for d in found])
    rows = []
    for (a, b), d, corrected in zip(pairs, found, q, strict=True):
        cost = d.full - d.masked
        if cost > 0 and clear(d.interval_low, d.interval_high, corrected, level):
            one, two = float(single.values[a]), float(single.values[b])
            rows.append(
                RedundantPair(
                    a,
                    b,
                    one,
                    two,
                    cost,
                    0.0 - d.interval_high,  # not -0.0
                    0.0 - d.interval_low,
                    cost - one - two,
                    d.p_value,
                    corrected,
                )
            )
    return tuple(sorted(rows, key=lambda r: (-r.cost, r.first, r.second)))


def _by_promise(
    evaluator: Evaluator, single: Ablation, heads: Sequence[HeadId], answers: Answers
) -> list[tuple[HeadId, HeadId]]:
    """All pairs of ``heads``, in turn the one with the largest predicted cost and the one most alike."""
    full = evaluator.evaluate(single.base).logits.astype(np.float64)
    change = {h: _logits(evaluator, single.base, h) - full for h in heads}
    size = {h: float(np.linalg.norm(change[h])) for h in heads}

    def expected(pair: tuple[HeadId, HeadId]) -> tuple[float, float]:
        logits = full + change[pair[0]] + change[pair[1]]
        said = predicted(logits.astype(np.float32), evaluator.order, evaluator.clf.is_regression)
        metric = measure(answers, said, single.subject.metric)
        # among equals, the pair that moves the logits further is the likelier one
        return (np.inf if metric != metric else metric), -size[pair[0]] - size[pair[1]]

    def unlike(pair: tuple[HeadId, HeadId]) -> float:
        product = size[pair[0]] * size[pair[1]]
        return -float((change[pair[0]] * change[pair[1]]).sum()) / product if product > 0 else 0.0

    pairs = list(combinations(heads, 2))
    turns = zip(sorted(pairs, key=expected), sorted(pairs, key=unlike), strict=True)
    return list(dict.fromkeys(pair for turn in turns for pair in turn))


def _logits(evaluator: Evaluator, base: HeadMask, head: HeadId) -> NDArray[np.float64]:
    return evaluator.evaluate(base.without([head]), keep=False).logits.astype(np.float64)


def run(given: Given) -> Redundant:
    return redundant(
        given.evaluator,
        metric=given.option("metric"),
        seconds=given.option("seconds"),
        progress=given.progress,
        cancel=given.cancel,
    )


def figure(found: Redundant, most: int = 20) -> Figure:
    """The costliest pairs: what the two heads cost apart, added up, and together."""
    from ..charts.heads import changes
    from ..charts.palette import WORSE

    rows, unit = found.pairs[:most], found.subject.scale
    return changes(
        [f"{r.first} + {r.second}" for r in rows],
        [(unit * r.cost, unit * r.interval_low, unit * r.interval_high) for r in rows],
        [(r.p_value, r.q_value) for r in rows],
        axis=f"cost in {found.subject.metric}, points",
        colour=WORSE,
        nothing=f"no redundant pair among the {found.evaluated} evaluated of {found.candidates}",
        name="both off",
        beside=("one by one, added up", [unit * (r.cost_first + r.cost_second) for r in rows]),
    )


def view(found: Redundant) -> View:
    many, scale = len(found.pairs), found.subject.scale
    rows = [
        [
            (p.first, p.second),
            *(scale * v for v in (p.cost, p.cost_first, p.cost_second, p.excess, p.interval_low, p.interval_high)),
            p.q_value,
        ]
        for p in found.pairs
    ]
    costs = ("cost", "first alone", "second alone", "excess")
    parts = (
        Picture(
            "redundant_bars",
            lambda: figure(found),
            "What both heads of a pair cost apart and together.",
            r"c_{gh} - (c_g + c_h)",
            PAIRED,
        ),
        Table(
            "redundant_table",
            ("pair", *costs, *ENDS, "q"),
            rows,
            f"Costs in points, of pairs whose heads have no clear cost one by one ({found.harmless} heads have none). "
            "Excess: what the pair costs beyond the sum of both.",
            in_points(*costs),
        ),
    )
    return View(
        f"{many or 'No'} pair{'s' if many != 1 else ''} of heads without a clear cost of their own "
        f"cost{'' if many != 1 else 's'} something together ({found.evaluated} of {found.candidates} pairs tried).",
        parts if many else (),
        about=found.subject.about(found.baseline),
        rows=found.subject.rows,
        note="" if many else f"So there is nothing to draw; {found.harmless} heads have no clear cost alone. {PAIRED}",
    )


def recipe(options: Mapping[str, Any]) -> Recipe:
    return Recipe((found_by("redundant", EVALUATOR, seconds=options["seconds"]),), ("evaluator",))


ANALYSIS = Analysis(
    "redundant",
    "Backup pairs",
    "Which pairs have no clear cost alone, but one together?",
    "pairs of heads without a clear cost one by one, but with one together",
    "a search over the most promising pairs",
    run,
    figure,
    view,
    recipe,
    options=(METRIC, Option("seconds", 60.0, "time for the search", "share", "S")),
    kinds=(CLASSIFICATION,),
)
