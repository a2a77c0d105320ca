"""Which head score is right? Every score graded on one model, by what pruning in its order keeps.

The data are cut into halves of the same make-up. A score is measured on one half, and heads are removed by it on the
other; then the halves change places. *Area*: the mean share of what the model knows above one class for all that is
left at 10 to 90 % of the heads removed, lowest first. 1 = everything, 0 = no better than one class for all.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..charts.numbers import number
from ..errors import OptionError
from ..heads import CLASSIFICATION, HeadId
from ..progress import Cancel, Progress, tracked
from ..recipes.structure import Name
from ..results import Result
from ..scores.catalogue import SCORES, score_named
from .analysis import Analysis, Option, Picture, Table, View
from .orders import Half, auroc, halves_of, overlap, spearman
from .pruning_curve import ORACLE
from .recipe import Recipe, found_by

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plotly.graph_objects import Figure

    from ..models.classifier import Classifier
    from ..tasks import Dataset
    from .given import Given

RANDOM, ABLATION = "random", "ablation"
SEEDS = 20  # orders that the random score is averaged over
LEAST = 40  # examples
TIMED = 8  # examples that a score is timed on, with nothing from the cache
MIB = "areas as in the Mechanistic Interpretability Benchmark (ICML 2025)"


@dataclass(frozen=True)
class Grade(Result):
    """One score. Intervals: 95 %, over examples drawn again, the same draws for all scores."""

    score: str
    auroc: float | None  # against heads whose part is known; None where none is
    area: float  # lowest heads removed first: high is good
    area_low: float
    area_high: float
    area_top: float  # highest heads removed first: low is good
    lead: float  # area minus that of random orders
    lead_low: float
    lead_high: float
    behind: float | None  # the best area minus this one; None for the best
    behind_low: float | None
    behind_high: float | None
    agreement: float  # Spearman with the exact cost of removing each head, on the other half
    stability: float  # share of the lowest fifth that both halves name
    seconds: float  # per example


@dataclass(frozen=True)
class Grades(Result):
    """``scores`` from the largest area to the smallest."""

    scores: tuple[Grade, ...]
    best: str
    planted: int  # heads whose part is known
    n: int
    data: str

    @property
    def untold(self) -> tuple[str, ...]:
        """Scores that these examples do not show to be better than random orders; some may be worse."""
        return tuple(g.score for g in self.scores if g.score != RANDOM and g.lead_low <= 0)

    @property
    def equals(self) -> tuple[str, ...]:
        """Scores that these examples cannot tell from the best."""
        return tuple(g.score for g in self.scores if g.behind_low is not None and g.behind_low <= 0)


def grade(
    clf: Classifier,
    data: Dataset,
    scores: Sequence[str] | None = None,
    progress: Progress | None = None,
    *,
    cancel: Cancel | None = None,
) -> Grades:
    """Grade head scores on a classifier and labelled data. Without ``scores`` all that classifiers have.

    Areas are of accuracy, or of Pearson's r for a regression. Raises ``UserError`` for a model that is no better than
    one class for all, fewer than 40 examples, or an unknown score.

    >>> import headviz
    >>> clf, data = headviz.load("demo"), headviz.load_task("demo", limit=120)
    >>> found = headviz.grade(clf, data, ["taylor", "magnitude", "random"])
    >>> found.scores[-1].score == found.best
    False
    """
    from ..scores import score_heads

    usual = [name for name, score in SCORES.items() if clf.kind in score.kinds]
    names = list(dict.fromkeys(usual if scores is None else scores))
    for name in names:
        score_named(name)
    if not names:
        raise OptionError("Name at least one score to grade.")
    if len(data) < LEAST:
        raise OptionError(f"Grading needs at least {LEAST} examples, to measure on one half and remove on the other.")
    halves = [Half(clf, half) for half in halves_of(data)]
    costs = [score_heads(clf, half.data, ABLATION, cancel=cancel).values for half in halves]
    planted = _planted(clf)
    found = {}
    for name in tracked([*names, *([RANDOM] if RANDOM not in names else [])], progress, cancel):
        found[name] = _measured(clf, halves, costs, name, planted, cancel)
    base = found[RANDOM]
    best = max((name for name in names if name != RANDOM), key=lambda name: found[name].area, default=RANDOM)
    grades = [_graded(name, found[name], base, found[best] if name != best else None) for name in names]
    grades.sort(key=lambda g: -g.area)
    return Grades(tuple(grades), best, 0 if planted is None else len(planted), len(data), data.task.title)


@dataclass(frozen=True)
class _Measured:
    """What the intervals of one score are made of; arrays are [1 + draws]."""

    areas: NDArray[np.float64]
    top: float
    auroc: float | None
    agreement: float
    stability: float
    seconds: float

    @property
    def area(self) -> float:
        return float(self.areas[0])


def _measured(
    clf: Classifier,
    halves: Sequence[Half],
    costs: Sequence[NDArray],
    name: str,
    planted: frozenset[HeadId] | None,
    cancel: Cancel | None,
) -> _Measured:
    from ..scores import score_heads

    few = halves[0].data.subset(range(TIMED))
    began = time.perf_counter()
    score_heads(clf, few, name, cancel=cancel, cache=False)
    seconds = (time.perf_counter() - began) / TIMED
    per_half = []
    for half in halves:
        seeds = range(SEEDS) if name == RANDOM else (None,)
        more: list[dict[str, Any]] = [{} if seed is None else {"seed": seed} for seed in seeds]
        per_half.append([score_heads(clf, half.data, name, cancel=cancel, **m).values for m in more])
    present = clf.full_mask
    areas, tops, agreements, rocs = [], [], [], []
    for measured, half, cost in ((per_half[0], halves[1], costs[1]), (per_half[1], halves[0], costs[0])):
        for values in measured:
            areas.append(half.area(present, values, cancel))
            # a random order from its other end is another random order
            tops.append(areas[-1][0] if name == RANDOM else half.area(present, -values, cancel)[0])
            agreements.append(spearman(values, cost))
            if planted is not None:
                rocs.append(auroc(values, planted))
    stable = [overlap(a, b, present) for a, b in zip(*per_half, strict=True)]
    return _Measured(
        np.mean(areas, axis=0),
        float(np.mean(tops)),
        float(np.mean(rocs)) if rocs else None,
        float(np.mean(agreements)),
        float(np.mean(stable)),
        seconds,
    )


def _graded(name: str, mine: _Measured, base: _Measured, best: _Measured | None) -> Grade:
    low, high = np.percentile(mine.areas[1:], [2.5, 97.5])
    lead = mine.areas - base.areas
    lead_low, lead_high = np.percentile(lead[1:], [2.5, 97.5])
    behind = None if best is None else best.areas - mine.areas
    ends = (None, None) if behind is None else tuple(float(x) for x in np.percentile(behind[1:], [2.5, 97.5]))
    return Grade(
        name,
        mine.auroc,
        mine.area,
        float(low),
        float(high),
        mine.top,
        float(lead[0]),
        float(lead_low),
        float(lead_high),
        None if behind is None else float(behind[0]),
        ends[0],
        ends[1],
        mine.agreement,
        mine.stability,
        mine.seconds,
    )


def _planted(clf: Classifier) -> frozenset[HeadId] | None:
    """The heads that the demo's training gave a part to; None for any other weights."""
    from ..demo import planted_heads
    from ..models.loading import load

    shipped = load("demo", device="cpu").digest
    return frozenset(planted_heads()) if clf.digest == shipped else None


# how it is shown ------------------------------------------------------------------------------


def run(given: Given) -> Grades:
    asked = given.option("scores")
    names = None if asked is None else [name.strip() for name in asked.split(",") if name.strip()]
    if names is not None:  # what pruning curves call the order of single ablations
        names = [ABLATION if name == ORACLE else name for name in names]
    return grade(given.clf, given.data, names, given.progress, cancel=given.cancel)


def figure(found: Grades) -> Figure:
    """The area of each score with its interval, the best on top; the line is that of random orders."""
    from plotly.graph_objects import Figure, Scatter

    from ..charts.style import ROW, frame, whisker

    shown = found.scores[::-1]
    fig = frame(Figure(), 80 + ROW * len(shown), xaxis_title="what is left of what the model knows, mean of 10–90 %")
    ends = whisker([g.area for g in shown], [g.area_low for g in shown], [g.area_high for g in shown])
    fig.add_vline(shown[0].area - shown[0].lead, line_dash="dot", line_width=1)
    return fig.add_trace(
        Scatter(x=[g.area for g in shown], y=[g.score for g in shown], mode="markers", error_x=ends, name="area")
    )


def finding(found: Grades) -> str:
    """One sentence: what to use here, and what is no better than chance."""
    first = next(g for g in found.scores if g.score == found.best)
    if first.lead_low <= 0:
        return "On these examples the largest area is not shown to be better than that of random orders."
    said = f"On this model use {found.best}: removing heads by it keeps {number(first.area, 2)} of what the model knows"
    same = [name for name in found.equals if name != RANDOM]
    said += f", not told from {', '.join(same)}" if same else ""
    return f"{said}. Not shown to be better than random orders: {', '.join(found.untold) or 'none'}."


def view(found: Grades) -> View:
    rows = [
        [g.score, g.area, g.area_low, g.area_high, g.lead, g.area_top, g.agreement, g.auroc, g.stability, g.seconds]
        for g in found.scores
    ]
    columns: tuple[str, ...]
    columns = ("score", "area", "95 % low", "95 % high", "lead over random", "area, highest removed first")
    columns += ("agreement with exact cost", "AUROC", "stability", "seconds per example")
    truth = f"{found.planted} heads with a known part" if found.planted else "no head's part is known: AUROC is empty"
    return View(
        finding(found),
        (
            Picture("grades", lambda: figure(found), "1 = everything is kept, 0 = one class for all."),
            Table(
                "grades_table",
                columns,
                rows,
                "Measured on one half of the data, removed on the other, both ways.",
                dict.fromkeys(columns[1:9], "%.3f") | {"seconds per example": "%.4f"},
            ),
        ),
        about=(("data", f"{found.data}, {found.n:,} examples"), ("truth", truth)),
    )


def recipe(options: Mapping[str, Any]) -> Recipe:
    asked = options.get("scores")
    names = [name.strip() for name in asked.split(",")] if asked else None
    return Recipe((found_by("grade", Name("clf"), Name("data"), *([names] if names else [])),))


ANALYSIS = Analysis(
    "grade",
    "Which score is right?",
    "Whose order of removing heads keeps most of what the model knows?",
    "grade head scores: by pruning in their order, exact cost, stability, and known heads",
    MIB,
    run,
    figure,
    view,
    recipe,
    options=(Option("scores", None, "names separated by commas (default: all)", metavar="A,B"),),
    kinds=(CLASSIFICATION,),
    command="grade",
)
