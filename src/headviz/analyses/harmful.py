"""Heads that do harm: those whose removal improves the metric significantly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..heads import HeadId, head_name
from ..results import Result
from ..ties import order_told, tied
from . import ablation as single
from .ablation import Ablation
from .analysis import ENDS, MASKABLE, METRIC, PAIRED, Analysis, Picture, Table, View, in_points
from .common import SIGNIFICANT, Subject

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from .given import Given


@dataclass(frozen=True)
class HarmfulHead(Result):
    """``delta`` is masked - full: what removing the head gains."""

    head: HeadId
    delta: float
    interval_low: float
    interval_high: float
    p_value: float
    q_value: float


@dataclass(frozen=True)
class Harmful(Result):
    """The most harmful first; an empty list is a finding too. ``level`` limits the q values."""

    subject: Subject
    baseline: float
    level: float
    tested: int
    heads: tuple[HarmfulHead, ...]


def harmful(ablation: Ablation, level: float = SIGNIFICANT) -> Harmful:
    """Read off an ablation table. The gains are chosen as the best of many, so expect less on new data.

    >>> import headviz
    >>> clf, data = headviz.load("demo", device="cpu"), headviz.load_task("demo", limit=20)
    >>> small = headviz.prune(clf, headviz.HeadMask.only(12, 12, ["0.0", "0.1", "11.0"]))
    >>> headviz.harmful(headviz.ablate(headviz.Evaluator(small, data))).tested
    3
    """
    rows = tuple(
        HarmfulHead(
            h,
            float(-ablation.values[h]),
            float(0.0 - ablation.interval_high[h]),
            float(0.0 - ablation.interval_low[h]),
            float(ablation.p_value[h]),
            float(ablation.q_value[h]),
        )
        for h in ablation.harmful(level)
    )
    tested = int((ablation.p_value == ablation.p_value).sum())
    return Harmful(ablation.subject, ablation.baseline, level, tested, rows)


def run(given: Given) -> Harmful:
    return harmful(single.run(given))


def figure(found: Harmful) -> Figure:
    """What removing each harmful head gains."""
    from ..charts.heads import changes
    from ..charts.palette import BETTER

    unit = found.subject.scale
    return changes(
        [head_name(r.head, found.subject.rows) for r in found.heads],
        [(unit * r.delta, unit * r.interval_low, unit * r.interval_high) for r in found.heads],
        [(r.p_value, r.q_value) for r in found.heads],
        axis=f"gain in {found.subject.metric} without the head, points",
        colour=BETTER,
        nothing=f"no head is shown to do harm (q < {found.level:g}, {found.tested} tested)",
    )


def view(found: Harmful) -> View:
    many, scale = len(found.heads), found.subject.scale
    rows = [
        [r.head, *(scale * v for v in (r.delta, r.interval_low, r.interval_high)), r.p_value, r.q_value]
        for r in found.heads
    ]
    parts = (
        Picture(
            "harmful_bars",
            lambda: figure(found),
            "What the model gains without each of these heads.",
            r"\Delta_h = m(\text{full without } h) - m(\text{full})",
            PAIRED,
        ),
        Table(
            "harmful_table",
            ("head", "gain", *ENDS, "p", "q"),
            rows,
            "Gains in points. They are the best of many, so expect less on new data."
            f"{order_told(tied(r.delta for r in found.heads), many)}",
            in_points("gain"),
        ),
    )
    return View(
        f"{many} of {found.tested} heads {'does' if many == 1 else 'do'} harm at q < {found.level:g}."
        if many
        else f"No head of {found.tested} is shown to do harm (q < {found.level:g}).",
        parts if many else (),
        about=found.subject.about(found.baseline),
        rows=found.subject.rows,
        note="" if many else f"So there is nothing to draw. {PAIRED}",
    )


ANALYSIS = Analysis(
    "harmful",
    "Harmful heads",
    "Which heads is the model better without?",
    "heads whose removal improves the metric significantly",
    "the table of single ablations",
    run,
    figure,
    view,
    lambda _: "found = headviz.harmful(headviz.ablate(evaluator))",
    MASKABLE,
    (METRIC,),
    over_draws=True,
)
