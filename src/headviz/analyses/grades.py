"""What grading finds, and how it is shown: one sentence, the areas, the curves behind them, the costs and the table.

The grades of the demo are recorded, with the command, date and version.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from operator import attrgetter
from typing import Any, overload

from plotly.graph_objects import Figure, Scatter

from ..answers.metrics import constant_name, metric_title
from ..demo import DATA
from ..display.figures.style import CLASSES, FAINT, NEUTRAL, ROW, frame, whisker
from ..display.numbers import number
from ..display.table import Column, Picture, Table, View
from ..results import Result
from ..storage.exchange import restored

RANDOM = "random"
SHARES = tuple(k / 10 for k in range(1, 10))  # of the heads removed


@dataclass(frozen=True)
class Grade(Result):
    """One score. Intervals: 95 %, over examples and the half that it was measured on.

    Those behind the best hold for all pairs of scores at once, because the best was picked.
    """

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
    stability: float | None  # share of the lowest fifth that both halves name; None for random orders: they see no data
    seconds: float  # of processor time per example: other work on the machine does not count
    curve: tuple[float, ...] = ()  # what is left at each of ``SHARES`` heads removed; empty in older records
    tied: tuple[int, ...] = ()  # heads that tie with another, in the table of each half; empty in older records
    ties_low: float | None = None  # where they do, the area is a mean over ten drawn orders, which go from here
    ties_high: float | None = None  # to here

    __iter__ = None  # type: ignore[assignment]  # pandas takes rows that are no lists as their fields

    @property
    def heads_tied(self) -> str | None:
        """How many heads tie in each half's table; None where it was not recorded."""
        return ", ".join(map(str, self.tied)) or None

    @property
    def over_ties(self) -> str | None:
        """From the lowest to the highest area over the orders of heads that tie; None where none does."""
        return None if self.ties_low is None else f"{self.ties_low:.3f} to {self.ties_high:.3f}".replace("-", "−")

    @property
    def behind_best(self) -> str | None:
        """How far behind the best, with the paired interval; None for the best."""
        if self.behind is None:
            return None
        return f"{self.behind:.3f} [{self.behind_low:.3f}, {self.behind_high:.3f}]".replace("-", "−")


@dataclass(frozen=True)
class Grades(Result):
    """``scores`` from the largest area to the smallest; the object counts and gives them as a list does."""

    scores: tuple[Grade, ...]
    best: str
    planted: int  # heads whose part is known
    n: int
    data: str
    splits: int = 0  # of the data into halves; 0 in records whose intervals are each by itself, over examples alone
    metric: str = ""  # that orders are graded in; empty in older records
    cut_off: str = ""  # how many texts are cut to the model's length, in words

    def __iter__(self) -> Iterator[Grade]:
        return iter(self.scores)

    def records(self) -> list[dict[str, Any]]:
        """Rows with all fields, which is what pandas makes of the grades."""
        return [asdict(grade) for grade in self.scores]

    def __len__(self) -> int:
        return len(self.scores)

    @overload
    def __getitem__(self, at: int) -> Grade: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Grade, ...]: ...
    def __getitem__(self, at: int | slice) -> Grade | tuple[Grade, ...]:
        return self.scores[at]

    @property
    def not_better(self) -> tuple[str, ...]:
        """Scores that these examples do not show to be better than random orders; some may be worse."""
        return tuple(g.score for g in self.scores if g.score != RANDOM and g.lead_low <= 0)

    @property
    def equals(self) -> tuple[str, ...]:
        """Scores that these examples cannot tell from the best."""
        return tuple(g.score for g in self.scores if g.behind_low is not None and g.behind_low <= 0)


KEPT = "What is kept of what the model knows, in {metric}: 1 = everything, 0 = {level}. Dotted: random orders."
CURVES = "What is kept with ever more heads removed, the lowest first. Dotted: random orders; grey: the other scores."
COST = "The area against the time that a score takes. A name stands where no cheaper score keeps more."
MEASURED = """Measured on one half of the data, removed on the other, both ways{splits}. {balanced}Heads tied: in \
the tables of both halves; where some do, values are means over ten drawn orders of them. Behind the best: paired on \
the same examples, 95 %, {together}. CPR, CMD: areas of the Mechanistic Interpretability Benchmark. Exact costs and \
Shapley values are of the task's own metric."""
PLANTED = " AUROC, precision: against the heads whose part is known."
FIRST = 5  # curves that have a colour: the eye separates no more
LEAST_SECONDS = 1e-5  # the axis is logarithmic


def _column(title: str, field: str, form: str = "%.3f") -> Column:
    return Column(title, form, attrgetter(field))


COLUMNS = (
    _column("score", "score", ""),
    _column("area", "area"),
    _column("95 % low", "area_low"),
    _column("95 % high", "area_high"),
    _column("heads tied", "heads_tied", ""),
    _column("area over orders of ties", "over_ties", ""),
    _column("behind the best [low, high]", "behind_best", ""),
    _column("lead over random", "lead"),
    _column("area, highest removed first", "area_top"),
    _column("CPR", "cpr"),
    _column("CMD", "cmd"),
    _column("agreement with exact cost", "agreement"),
    _column("agreement with Shapley", "shapley"),
    _column("AUROC", "auroc"),
    _column("precision", "precision"),
    _column("stability", "stability"),
    _column("CPU seconds per example", "seconds", "%.4f"),
)


def figure(result: Grades) -> Figure:
    """The area of each score with its interval, the best on top; the line is that of random orders."""
    shown = result.scores[::-1]
    fig = frame(Figure(), 80 + ROW * len(shown), xaxis_title="area: share that is kept")
    ends = whisker([g.area for g in shown], [g.area_low for g in shown], [g.area_high for g in shown])
    fig.add_vline(shown[0].area - shown[0].lead, line={"dash": "dot", "color": FAINT})
    return fig.add_trace(
        Scatter(x=[g.area for g in shown], y=[g.score for g in shown], mode="markers", error_x=ends, name="area")
    )


def curves(result: Grades) -> Figure:
    """What is left of what the model knows against the heads removed, a line for each score that has its points."""
    fig = Figure()
    drawn = [g for g in result if g.curve]
    first = [g.score for g in drawn if g.score != RANDOM][:FIRST]
    for g in sorted(drawn, key=lambda g: g.score in first):  # the coloured ones on top
        line = {"color": FAINT, "width": 1}
        if g.score in first:
            line = {"color": CLASSES[first.index(g.score)], "width": 2}
        elif g.score == RANDOM:
            line = {"color": NEUTRAL, "width": 2, "dash": "dot"}
        fig.add_scatter(
            x=[0, *(100 * share for share in SHARES)],
            y=[1.0, *g.curve],
            mode="lines",
            name=g.score,
            line=line,
            showlegend=g.score in (*first, RANDOM),
            hovertemplate="%{x:.0f} % removed: %{y:.3f} kept",
        )
    fig.update_xaxes(title="heads removed, %")
    fig.update_yaxes(title="share that is kept")
    return frame(fig, 380, top=34)


def cost(result: Grades) -> Figure:
    """The area against the seconds per example, on a logarithmic axis; random orders cost nothing and are left out."""
    shown = sorted((g for g in result if g.score != RANDOM), key=_seconds)
    named = [g.area > max((c.area for c in shown[:at]), default=float("-inf")) for at, g in enumerate(shown)]
    areas, times = [g.area for g in shown], [_seconds(g) for g in shown]
    fig = Figure()
    fig.add_scatter(
        x=times,
        y=areas,
        mode="markers+text",
        text=[g.score if has_name else "" for g, has_name in zip(shown, named, strict=True)],
        # no cheaper score keeps more, so there is room on the left; the cheapest stands at the edge
        textposition=["bottom right", *(["top left"] * (len(shown) - 1))],
        customdata=[g.score for g in shown],
        marker={"size": 8, "color": [CLASSES[0] if has_name else FAINT for has_name in named]},
        error_y=whisker(areas, [g.area_low for g in shown], [g.area_high for g in shown]),
        hovertemplate="%{customdata}: %{y:.3f}, %{x:.2g} s<extra></extra>",
        showlegend=False,
    )
    decades = 1 if times and max(times) > 10 * min(times) else None  # a shorter axis may hold no power of ten
    fig.update_xaxes(title="CPU seconds per example", type="log", dtick=decades)
    fig.update_yaxes(title="area")
    return frame(fig, 340)


def _seconds(grade: Grade) -> float:
    return max(grade.seconds, LEAST_SECONDS)


def finding(result: Grades) -> str:
    """One sentence: what to use here, and what is no better than chance."""
    first = next(g for g in result.scores if g.score == result.best)
    if first.lead_low <= 0:
        return "On these examples the largest area is not shown to be better than that of random orders."
    verdict = f"On this model use {result.best}" if result.splits else f"On one split {result.best} comes first"
    sentence = (
        f"{verdict}: it keeps {number(first.area, 2)} of what the model knows, on average over "
        "10 to 90 % of the heads removed"
    )
    if not result.splits:
        sentence += "; which others are as good was not tested for all at once"
    elif equals := [name for name in result.equals if name != RANDOM]:
        sentence += f", not significantly better than {', '.join(equals)}"
    if not result.not_better:
        return f"{sentence}. Every score graded is shown to be better than random orders."
    worse = [g.score for g in result.scores if g.lead_high < 0]
    if unclear := [name for name in result.not_better if name not in worse]:
        sentence += f". Not shown to be better than random orders: {', '.join(unclear)}"
    return f"{sentence}. Worse than random orders: {', '.join(worse)}." if worse else f"{sentence}."


def table_of(result: Grades) -> Table:
    """The scores with the columns in which some score has a value."""
    splits, together = "", "each score by itself, over examples alone"
    if result.splits:
        splits, together = f", in {result.splits} splits", "for all scores at once, because the best was picked"
    balanced = "Balanced accuracy is the mean over the classes. " if result.metric == "balanced_accuracy" else ""
    caption = MEASURED.format(splits=splits, together=together, balanced=balanced) + (PLANTED if result.planted else "")
    return Table.of("grades_table", COLUMNS, result.scores, caption=caption).filled()


def view(result: Grades) -> View:
    truth = f"{result.planted} heads with a known part" if result.planted else "no head's part is known"
    kept = KEPT.format(
        metric=metric_title(result.metric) if result.metric else "the metric of its job",
        level=constant_name(result.metric) if result.metric else "the best constant answer",
    )
    pictures = [Picture("grades", lambda: figure(result), kept)]
    if any(g.curve for g in result):
        pictures.append(Picture("grades_curves", lambda: curves(result), CURVES))
    if any(g.score != RANDOM for g in result):
        pictures.append(Picture("grades_cost", lambda: cost(result), COST))
    return View(
        finding(result),
        (*pictures, table_of(result)),
        about=(("data", f"{result.data}, {result.n:,} examples"), ("truth", truth)),
    )


FILE = "grades.json"


@dataclass(frozen=True)
class Recorded(Result):
    """Grades that were measured once, and how."""

    grades: Grades
    date: str
    version: str
    command: str

    @property
    def about(self) -> str:
        return f"Recorded on {self.date} with headviz {self.version}: {self.command}"


@cache
def recorded() -> Recorded | None:
    """The board of the demo; None where the package came without it."""
    path = DATA / FILE
    return read(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None


def read(record: dict[str, Any]) -> Recorded:
    """What ``Recorded.to_dict`` wrote. Older records have no curves."""
    recorded: Recorded = restored(Recorded, record, (0, 0))
    return recorded
