"""Redundant pairs: heads that are harmless one by one, but not together, because each stands in for the other.

All pairs are too many to evaluate. From the single ablations two guesses are made: what a pair costs if the changes
of every example's logits add up, and how similar the two changes are. Pairs are evaluated by both guesses in
turn, until the time is up. Pairs that single ablations give no sign of come last.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from ...analyses.ablation import Ablation, ablate
from ...analyses.analysis import arguments, in_points
from ...analyses.common import SIGNIFICANT, Subject, first_draw, require_classes, require_seconds, subject_of
from ...answers.comparison import Answers
from ...display.figures.heads import changes
from ...display.figures.style import WORSE
from ...display.table import Column, Picture, Table, View
from ...errors import OptionError
from ...evaluation.verdict import clear
from ...heads import HeadId, HeadMask, in_order
from ...progress import Cancel, Progress, stop_if
from ...results import Result, drawn
from ...scores.statistics import draw
from ...statistics.significance import LEVEL, benjamini_hochberg

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from ...analyses.analysis import Request
    from ...evaluation.evaluator import Evaluator

TESTED = "q: Benjamini-Hochberg of the excess over the pairs tried; interval of the excess: same examples, 95 %."


@dataclass(frozen=True)
class RedundantPair(Result):
    """Costs are full - masked. ``excess`` is what the pair costs beyond the sum of its two heads; p and q test it."""

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
    excess_low: float = float("nan")
    excess_high: float = float("nan")

    @property
    def interaction(self) -> float:
        """m(both on) − m(first) − m(second) + m(neither), the others on: negative = one stands in for the other."""
        return -self.excess

    def extra(self) -> dict[str, Any]:
        return {"interaction": self.interaction}


@dataclass(frozen=True)
class Redundant(Result):
    """``pairs`` cost clearly more than the sum of both, the largest excess first.

    ``evaluated`` of ``candidates`` fitted into the time.
    """

    subject: Subject
    baseline: float
    harmless: int  # heads that are not significantly costly alone
    candidates: int
    evaluated: int
    budget_seconds: float
    seconds: float
    pairs: tuple[RedundantPair, ...]

    def plot(self, most: int = 20) -> Figure:
        """The excess of at most so many pairs, the largest first."""
        return drawn(self, most=most)


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
    require_seconds(seconds)
    require_classes(evaluator)
    evaluator = first_draw(evaluator)
    if ablation is None:
        single = ablate(evaluator, metric=metric, progress=progress, cancel=cancel)
    else:
        single = _same(ablation, subject_of(evaluator, metric or ablation.subject.metric))
    costly = clear(single.interval_low, single.interval_high, single.p_value, level) & (single.values > 0)
    harmless = [h for h in single.base.kept if not costly[h]]  # without an interval it counts as harmless
    answers = evaluator.answers(single.base, cancel=cancel)
    logits = {h: _logits(evaluator, single.base, h) for h in harmless}
    order = _by_promise(evaluator, single, logits, answers)
    alone = {h: _predicted(evaluator, of_head) for h, of_head in logits.items()}
    start = time.perf_counter()
    pairs: list[tuple[HeadId, HeadId]] = []
    predictions: list[NDArray] = []
    for pair in order:
        if pairs and time.perf_counter() - start > seconds:
            break
        stop_if(cancel)
        predictions.append(evaluator.predictions(single.base.without(pair), keep=False, cancel=cancel))
        pairs.append(pair)
        if progress is not None:
            share = max(len(pairs) / len(order), min(1.0, (time.perf_counter() - start) / seconds))
            progress(round(1000 * share), 1000)
    metric = single.subject.metric
    costs = answers.deltas(predictions, metric, tested=False)
    excesses = [excess(answers, alone[a], alone[b], p, metric) for (a, b), p in zip(pairs, predictions, strict=True)]
    q_values = benjamini_hochberg([e.p_value for e in excesses])
    rows = []
    for (a, b), d, e, q in zip(pairs, costs, excesses, q_values, strict=True):
        if e.value > 0 and clear(e.low, e.high, q, level):
            one_by_one = float(single.values[a]), float(single.values[b])
            ends = 0.0 - d.interval_high, 0.0 - d.interval_low  # not -0.0
            rows.append(
                RedundantPair(a, b, *one_by_one, d.full - d.masked, *ends, e.value, e.p_value, q, e.low, e.high)
            )
    return Redundant(
        single.subject,
        answers.measure(answers.full, metric),
        len(harmless),
        len(order),
        len(pairs),
        seconds,
        time.perf_counter() - start,
        tuple(in_order(rows, [-r.excess for r in rows], seed=0)),
    )


_SAME_FIELDS = {"digest": "model", "data_digest": "data", "metric": "metric", "stand_in": "stand-in for heads"}


def _same(single: Ablation, subject: Subject) -> Ablation:
    """The ablation, if it is of this model and these data, in this metric, with the same in the heads' place."""
    for name, title in _SAME_FIELDS.items():
        if getattr(single.subject, name) != getattr(subject, name):
            raise OptionError(
                f"The ablation is of another {title} than this search. Leave it out, or measure it again."
            )
    return single


def _by_promise(
    evaluator: Evaluator, single: Ablation, logits: Mapping[HeadId, NDArray], answers: Answers
) -> list[tuple[HeadId, HeadId]]:
    """All pairs of heads in ``logits``, in turn the one with the largest predicted cost and the most similar one."""
    full = evaluator.evaluate(single.base).logits.astype(np.float64)
    change = {h: of_head - full for h, of_head in logits.items()}
    size = {h: float(np.linalg.norm(change[h])) for h in logits}

    def expected(pair: tuple[HeadId, HeadId]) -> tuple[float, float]:
        predicted = _predicted(evaluator, full + change[pair[0]] + change[pair[1]])
        metric = answers.measure(predicted, single.subject.metric)
        # among equals, the pair that moves the logits further is the likelier one
        return (np.inf if metric != metric else metric), -size[pair[0]] - size[pair[1]]

    def unlike(pair: tuple[HeadId, HeadId]) -> float:
        product = size[pair[0]] * size[pair[1]]
        return -float((change[pair[0]] * change[pair[1]]).sum()) / product if product > 0 else 0.0

    every = list(combinations(logits, 2))
    pairs = in_order(every, [0.0] * len(every), seed=0)  # so that those that tie below stand in a drawn order
    turns = zip(sorted(pairs, key=expected), sorted(pairs, key=unlike), strict=True)
    return list(dict.fromkeys(pair for turn in turns for pair in turn))


def _logits(evaluator: Evaluator, base: HeadMask, head: HeadId) -> NDArray[np.float64]:
    return evaluator.evaluate(base.without([head]), keep=False).logits.astype(np.float64)


def _predicted(evaluator: Evaluator, logits: NDArray[np.float64]) -> NDArray:
    return evaluator.data.answer.predicted(logits.astype(np.float32), evaluator.order)


def run(request: Request) -> Redundant:
    return redundant(request.evaluator, **arguments(request, "metric", "seconds"))


def figure(result: Redundant, most: int = 20) -> Figure:
    """The pairs of the largest excess, with its interval; the stroke is what both cost together."""
    rows, unit = result.pairs[:most], result.subject.scale
    return changes(
        [f"{r.first} + {r.second}" for r in rows],
        [(unit * r.excess, unit * r.excess_low, unit * r.excess_high) for r in rows],
        [(r.p_value, r.q_value) for r in rows],
        axis=f"excess in {result.subject.called}, points",
        colour=WORSE,
        nothing=f"no redundant pair among the {result.evaluated} evaluated of {result.candidates}",
        name="excess",
        second=("cost of both together", [unit * r.cost for r in rows]),
    )


def view(result: Redundant) -> View:
    many, scale = len(result.pairs), result.subject.scale
    note = f"In {result.subject.called}; Interactions asks the same of the loss. A pair may be clear in one only."
    if not many:
        note = f"So there is nothing to draw; {result.harmless} heads have no clear cost alone. {TESTED} {note}"
    columns = (
        Column("pair", value=lambda p: (p.first, p.second)),
        in_points("cost", lambda p: scale * p.cost),
        in_points("first alone", lambda p: scale * p.cost_first),
        in_points("second alone", lambda p: scale * p.cost_second),
        in_points("excess", lambda p: scale * p.excess, lambda p: (scale * p.excess_low, scale * p.excess_high)),
        Column("q", value=attrgetter("q_value")),
    )
    parts = (
        Picture(
            "redundant_bars",
            lambda: figure(result),
            "What a pair costs beyond the sum of its two heads (the excess), with its 95 % interval.",
            r"c_{gh} - (c_g + c_h)",
            TESTED,
        ),
        Table.of(
            "redundant_table",
            columns,
            result.pairs,
            caption=f"Costs in points, of pairs whose heads have no clear cost one by one ({result.harmless} heads "
            "have none). Excess: what the pair costs beyond the sum of both, with its 95 % interval and q.",
        ),
    )
    return View(
        f"{many or 'No'} pair{'s' if many != 1 else ''} of heads without a clear cost of their own "
        f"cost{'' if many != 1 else 's'} clearly more together than the sum of both "
        f"({result.evaluated:,} of {result.candidates:,} pairs tried).",
        parts if many else (),
        about=result.subject.lines(result.baseline),
        rows=result.subject.rows,
        note=note,
    )


def recipe(options: Mapping[str, Any]) -> str:
    return f"result = headviz.redundant(evaluator, seconds={options['seconds']!r})"


RESAMPLES = 200
ROUNDING = 1e-12  # a spread that is none


class Excess(NamedTuple):
    value: float
    low: float
    high: float
    p_value: float


def excess(
    answers: Answers, first: NDArray, second: NDArray, both: NDArray, metric: str, level: float = LEVEL, seed: int = 0
) -> Excess:
    """What two changes cost together beyond the sum of what each costs alone, with its interval and p.

    excess = m(first) + m(second) − m(neither off) − m(both off), on the same examples; above 0, one stands in for the
    other. For accuracy it is the mean of a number from −2 to 2 per example, with one example added in each direction,
    as in ``statistics.intervals``, of the largest size seen. For other metrics its spread comes from a bootstrap of the
    units: of examples, or of queries. Both ends and p are normal.

    ``answers`` holds gold and the answers with neither off; the others are answers to the same examples [N].

    >>> from headviz.answers.one_class import ONE_CLASS
    >>> gold = np.array([0, 1] * 20)
    >>> result = excess(ONE_CLASS.answers(gold, gold, "ab"), gold, gold, 1 - gold, "accuracy")
    >>> result.value, result.low > 0.8
    (1.0, True)
    """
    every = first, second, answers.full, both

    def beyond(values: Iterable[Any]) -> Any:
        of_first, of_second, of_neither, of_both = values
        return of_first + of_second - of_neither - of_both

    if metric == "accuracy":
        each = beyond((predicted == answers.gold).astype(float) for predicted in every)
        value, n = float(each.mean()), len(each)
        most = max(1.0, float(np.abs(each).max(initial=0.0)))
        padded = np.concatenate([each, [most, -most]])
        centre, spread = float(padded.mean()), float(padded.std() / np.sqrt(n + 2))
    else:
        value = centre = beyond(answers.measure(predicted, metric) for predicted in every)
        counts = draw(answers.units, seed, RESAMPLES)
        resampled = beyond(answers.resampled(counts, predicted, metric) for predicted in every)
        spread = float(np.nanstd(resampled)) if np.isfinite(resampled).any() else float("nan")
    if not spread > ROUNDING:
        return Excess(value, float("nan"), float("nan"), float("nan") if value != value or spread != spread else 1.0)
    half = float(scipy.special.ndtri((1 + level) / 2)) * spread
    return Excess(value, centre - half, centre + half, float(2 * scipy.special.ndtr(-abs(centre) / spread)))
