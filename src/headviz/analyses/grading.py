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
from ..errors import OptionError, shown
from ..heads import CLASSIFICATION, HeadId
from ..progress import Cancel, Progress, tracked
from ..recipes.structure import Name
from ..results import Result
from ..scores.catalogue import SCORES, score_named
from .analysis import Analysis, Option, Picture, Table, View
from .orders import Half, auroc, halves_of, overlap, planted_in, precision, spearman
from .recipe import Recipe, found_by

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping

    from plotly.graph_objects import Figure

    from ..models.classifier import Classifier
    from ..tasks import Dataset
    from .given import Given

RANDOM, ABLATION, SHAPLEY = "random", "ablation", "shapley"
SEEDS = 20  # orders that the random score is averaged over
LEAST = 40  # examples
TIMED = 8  # examples that a score is timed on, with nothing from the cache
KEPT = "What is kept of what the model knows: 1 = everything, 0 = one class for all. Dotted: random orders."
MEASURED = """Measured on one half of the data, removed on the other, both ways. CPR, CMD: areas of the Mechanistic \
Interpretability Benchmark. AUROC, precision: against the heads whose part is known."""
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
    cpr: float  # area of the share of the metric kept, lowest first, from no head to all: high is good
    cmd: float  # area of its distance from the full metric: low is good
    lead: float  # area minus that of random orders
    lead_low: float
    lead_high: float
    behind: float | None  # the best area minus this one; None for the best
    behind_low: float | None
    behind_high: float | None
    agreement: float  # Spearman with the exact cost of removing each head, on the other half
    shapley: float | None  # Spearman with Shapley values, on the other half; None where they are not graded
    precision: float | None  # share of known heads among as many of the highest; None where none is known
    stability: float  # share of the lowest fifth that both halves name
    seconds: float  # of processor time per example: other work on the machine does not count


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
    label_order: Sequence[str] | str | None = None,
    cancel: Cancel | None = None,
    kept: MutableMapping[str, Measured] | None = None,
) -> Grades:
    """Grade head scores on a classifier and labelled data. Without ``scores`` all that it has, but for the slow ones.

    Areas are of accuracy, or of Pearson's r for a regression. ``kept`` has what was measured before on the same model
    and data, and gets what is measured now: an interrupted call goes on. Raises ``UserError`` for a model that is no
    better than one class for all, fewer than 40 examples, or an unknown score.

    >>> import headviz
    >>> clf, data = headviz.load("demo"), headviz.load_task("demo", limit=48)
    >>> found = headviz.grade(clf, data, ["taylor", "magnitude", "random"])
    >>> found.scores[-1].score == found.best
    False
    """
    from ..models.network import require_model
    from ..scores import score_heads
    from ..tasks.dataset import require_dataset

    require_model(clf)
    require_dataset(data)
    usual = [name for name, score in SCORES.items() if clf.kind in score.kinds and not score.slow]
    if isinstance(scores, str) or not isinstance(scores, Sequence | None):
        raise OptionError(f"scores are a list of names, such as ['taylor', 'random'], not {shown(scores)}.")
    names = list(dict.fromkeys(usual if scores is None else scores))
    for name in names:
        score_named(name)
    if not names:
        raise OptionError("Name at least one score to grade.")
    if len(data) < LEAST:
        raise OptionError(f"Grading needs at least {LEAST} examples, to measure on one half and remove on the other.")
    halves = [Half(clf, half, label_order) for half in halves_of(data)]
    truth = Truth(
        [score_heads(clf, half.data, ABLATION, label_order=label_order, cancel=cancel).values for half in halves],
        planted_in(clf),
    )
    found: MutableMapping[str, Measured] = {} if kept is None else kept
    work = sorted([*names, *([RANDOM] if RANDOM not in names else [])], key=lambda name: name != SHAPLEY)
    for name in tracked(work, progress, cancel):
        if name not in found:
            found[name] = _measured(clf, halves, truth, name, cancel)
    base = found[RANDOM]
    best = max((name for name in names if name != RANDOM), key=lambda name: found[name].area, default=RANDOM)
    grades = [_graded(name, found[name], base, found[best] if name != best else None) for name in names]
    grades.sort(key=lambda g: -g.area)
    known = 0 if truth.planted is None else len(truth.planted)
    return Grades(tuple(grades), best, known, len(data), data.task.title)


@dataclass
class Truth:
    """What scores are compared with: of both halves, exact costs and, once they are measured, Shapley values."""

    costs: Sequence[NDArray]
    planted: frozenset[HeadId] | None
    shapley: Sequence[NDArray] | None = None


@dataclass(frozen=True)
class Measured(Result):
    """What the intervals of one score are made of; arrays are [1 + draws]."""

    areas: NDArray[np.float64]
    top: float
    cpr: float
    cmd: float
    auroc: float | None
    precision: float | None
    agreement: float
    shapley: float | None
    stability: float
    seconds: float

    @property
    def area(self) -> float:
        return float(self.areas[0])


def _measured(clf: Classifier, halves: Sequence[Half], truth: Truth, name: str, cancel: Cancel | None) -> Measured:
    per_half, seconds = _tables(clf, halves, name, cancel)
    if name == SHAPLEY:
        truth.shapley = [tables[0] for tables in per_half]
    present = clf.full_mask
    areas, tops, bench, agreements, shared, rocs, precise = [], [], [], [], [], [], []
    for measured, other in ((0, 1), (1, 0)):
        half = halves[other]
        for values in per_half[measured]:
            curve = half.curve(present, values, cancel)
            areas.append(half.area(curve))
            bench.append(half.benchmark(present, curve))
            # a random order from its other end is another random order
            again = curve if name == RANDOM else half.curve(present, -values, cancel)
            tops.append(half.area(again)[0])
            agreements.append(spearman(values, truth.costs[other]))
            if truth.shapley is not None:
                shared.append(spearman(values, truth.shapley[other]))
            if truth.planted is not None:
                rocs.append(auroc(values, truth.planted))
                precise.append(precision(values, truth.planted))
    stable = [overlap(a, b, present) for a, b in zip(*per_half, strict=True)]
    cpr, cmd = np.mean(bench, axis=0)
    return Measured(
        np.mean(areas, axis=0),
        float(np.mean(tops)),
        float(cpr),
        float(cmd),
        float(np.mean(rocs)) if rocs else None,
        float(np.mean(precise)) if precise else None,
        float(np.mean(agreements)),
        float(np.mean(shared)) if shared else None,
        float(np.mean(stable)),
        seconds,
    )


def _tables(
    clf: Classifier, halves: Sequence[Half], name: str, cancel: Cancel | None
) -> tuple[list[list[NDArray]], float]:
    """The score's tables on each half, and its processor seconds per example, none of them from the cache."""
    from ..scores import score_heads

    how: dict[str, Any] = {"label_order": halves[0].label_order, "cancel": cancel}
    began = time.process_time()
    if SCORES[name].of_whole:  # its time does not grow with the examples
        per_half = [[score_heads(clf, half.data, name, cache=False, **how).values] for half in halves]
        return per_half, (time.process_time() - began) / sum(len(half.data) for half in halves)
    score_heads(clf, halves[0].data.subset(range(TIMED)), name, cache=False, **how)
    seconds = (time.process_time() - began) / TIMED
    more: list[dict[str, Any]] = [{"seed": seed} for seed in range(SEEDS)] if name == RANDOM else [{}]
    return [[score_heads(clf, half.data, name, **how, **m).values for m in more] for half in halves], seconds


def _graded(name: str, mine: Measured, base: Measured, best: Measured | None) -> Grade:
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
        mine.cpr,
        mine.cmd,
        float(lead[0]),
        float(lead_low),
        float(lead_high),
        None if behind is None else float(behind[0]),
        ends[0],
        ends[1],
        mine.agreement,
        mine.shapley,
        mine.precision,
        mine.stability,
        mine.seconds,
    )


# how it is shown ------------------------------------------------------------------------------

COLUMNS = {  # heading -> field of a grade
    "score": "score",
    "area": "area",
    "95 % low": "area_low",
    "95 % high": "area_high",
    "lead over random": "lead",
    "area, highest removed first": "area_top",
    "CPR": "cpr",
    "CMD": "cmd",
    "agreement with exact cost": "agreement",
    "agreement with Shapley": "shapley",
    "AUROC": "auroc",
    "precision": "precision",
    "stability": "stability",
    "CPU seconds per example": "seconds",
}


def run(given: Given) -> Grades:
    asked = given.option("scores")
    names = None if asked is None else [name.strip() for name in asked.split(",") if name.strip()]
    return grade(given.clf, given.data, names, given.progress, label_order=given.label_order, cancel=given.cancel)


def figure(found: Grades) -> Figure:
    """The area of each score with its interval, the best on top; the line is that of random orders."""
    from plotly.graph_objects import Figure, Scatter

    from ..charts.style import FAINT, ROW, frame, whisker

    shown = found.scores[::-1]
    fig = frame(Figure(), 80 + ROW * len(shown), xaxis_title="area: share that is kept")
    ends = whisker([g.area for g in shown], [g.area_low for g in shown], [g.area_high for g in shown])
    fig.add_vline(shown[0].area - shown[0].lead, line={"dash": "dot", "color": FAINT})
    return fig.add_trace(
        Scatter(x=[g.area for g in shown], y=[g.score for g in shown], mode="markers", error_x=ends, name="area")
    )


def finding(found: Grades) -> str:
    """One sentence: what to use here, and what is no better than chance."""
    first = next(g for g in found.scores if g.score == found.best)
    if first.lead_low <= 0:
        return "On these examples the largest area is not shown to be better than that of random orders."
    said = f"On this model use {found.best}: it keeps {number(first.area, 2)} of what the model knows, on average over "
    said += "10 to 90 % of the heads removed"
    same = [name for name in found.equals if name != RANDOM]
    said += f", not told from {', '.join(same)}" if same else ""
    return f"{said}. Not shown to be better than random orders: {', '.join(found.untold) or 'none'}."


def view(found: Grades) -> View:
    columns = tuple(c for c, name in COLUMNS.items() if any(getattr(g, name) is not None for g in found.scores))
    rows = [[getattr(g, COLUMNS[c]) for c in columns] for g in found.scores]
    truth = f"{found.planted} heads with a known part" if found.planted else "no head's part is known: AUROC is empty"
    return View(
        finding(found),
        (
            Picture("grades", lambda: figure(found), KEPT),
            Table(
                "grades_table", columns, rows, MEASURED, dict.fromkeys(columns[1:-1], "%.3f") | {columns[-1]: "%.4f"}
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
