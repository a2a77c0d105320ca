"""Metric against percentage pruned, by any score and by the oracle order. [M §4, Fig. 3, 6]

Heads are masked lowest score first. The oracle order is that of single-head ablation *on the reported data*: it
knows the answers, and shows what a score could reach, not what a score may use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import OptionError
from ..evaluation.comparison import measure
from ..heads import HeadMask, lowest
from ..progress import Cancel, Progress, part
from ..recipes.structure import Call, Each, Get, Import, Let, Name
from ..results import Result
from . import published
from .analysis import (
    ENDS,
    METRIC,
    MICHEL,
    SAMPLES,
    SEED,
    STEP,
    Analysis,
    Lines,
    Option,
    Picture,
    Table,
    View,
    in_points,
)
from .common import ORACLE, Subject, check_score, subject, sweep
from .recipe import EVALUATOR, Recipe, found_by, scored_by

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from ..evaluation.evaluator import Evaluator
    from .given import Given


ORACLE_NAME = "oracle (ablation)"


@dataclass(frozen=True)
class CurvePoint(Result):
    """One sparsity on one curve; the interval and p value are of ``value - baseline``, paired."""

    sparsity: float
    mask: HeadMask
    value: float
    delta: float
    interval_low: float
    interval_high: float
    p_value: float


@dataclass(frozen=True)
class Curve(Result):
    """One order of heads."""

    name: str
    points: tuple[CurvePoint, ...]

    @property
    def free(self) -> float:
        """The largest sparsity up to which no point is significantly worse (its interval stays at or above 0)."""
        reached = 0.0
        for point in self.points:
            if point.interval_high < 0:
                break
            reached = point.sparsity
        return reached

    def extra(self) -> dict[str, Any]:
        return {"free": self.free}


@dataclass(frozen=True)
class PruningCurves(Result):
    """Several curves of one model on one data set."""

    subject: Subject
    baseline: float
    curves: tuple[Curve, ...]


def pruning_curves(
    evaluator: Evaluator,
    orders: Mapping[str, NDArray],
    *,
    step: float = 0.1,
    until: float = 1.0,
    keep_per_layer: int = 0,
    metric: str | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> PruningCurves:
    """One curve per L×H score table in ``orders`` (high = keep); for the oracle give ``Ablation.values``."""
    about, present = subject(evaluator, metric), evaluator.clf.present
    check_steps(step, until, keep_per_layer, present.num_heads)
    if not orders:
        raise OptionError("A pruning curve needs at least one score table.")
    for name, values in orders.items():
        if np.shape(values) != (present.num_layers, present.num_heads):
            raise OptionError(
                f"Score '{name}' has shape {np.shape(values)}; the model has "
                f"{present.num_layers} layers × {present.num_heads} heads."
            )
    plans = {name: _masks(present, values, step, until, keep_per_layer) for name, values in orders.items()}
    masks = [mask for plan in plans.values() for mask in plan]
    answers, found = sweep(evaluator, masks, about.metric, keep=False, progress=progress, cancel=cancel)
    baseline = measure(answers, answers.full, about.metric)
    curves, used = [], 0
    for name, plan in plans.items():
        own = found[used : used + len(plan)]
        used += len(plan)
        curves.append(
            Curve(
                name,
                tuple(
                    CurvePoint(m.sparsity, m, d.masked, d.delta, d.interval_low, d.interval_high, d.p_value)
                    for m, d in zip(plan, own, strict=True)
                ),
            )
        )
    return PruningCurves(about, baseline, tuple(curves))


def check_steps(step: float, until: float, keep_per_layer: int, heads: int) -> None:
    """Refuse what no curve can be made of, before anything is computed. ``heads`` are those of one layer."""
    if not (0 < step <= 1 and 0 < until <= 1):
        raise OptionError(f"step and until must lie above 0 and be at most 1, not {step:g} and {until:g}.")
    if not 0 <= keep_per_layer < heads:
        raise OptionError(
            f"A layer has {heads} heads, so from 0 to {heads - 1} of them can be kept, not {keep_per_layer}: "
            "otherwise none may go."
        )


def _masks(present: HeadMask, values: Any, step: float, until: float, keep_per_layer: int) -> list[HeadMask]:
    """The full model, then round(k·step·N) heads off until the first sparsity ≥ ``until``."""
    kappa = Fraction(repr(float(step)))  # 3 · 0.1 is 0.3 exactly
    masks, k = [present], 0
    while masks[-1].sparsity < until - 1e-9:
        k += 1
        count = round(k * kappa * present.size) - len(present.off)
        if count <= 0:
            continue
        off = lowest(values, min(count, len(present.kept)), present.kept, keep_per_layer)
        mask = present.without(off)
        if mask == masks[-1]:
            if count > len(off):  # nothing more may go
                break
            continue
        masks.append(mask)
    return masks


def run(given: Given) -> PruningCurves:
    from .ablation import ablate

    steps = {"step": given.option("step"), "until": given.option("until")}
    keep, metric = given.option("keep-per-layer"), given.option("metric")
    check_steps(**steps, keep_per_layer=keep, heads=given.clf.num_heads)
    names = [name.strip() for name in given.option("scores").split(",") if name.strip()]
    for name in names:
        check_score(name)
    orders = {}
    for name in names:
        if name == ORACLE:
            first = part(given.progress, 0, 2)
            table = ablate(given.evaluator, metric=metric, progress=first, cancel=given.cancel)
            orders[ORACLE_NAME] = table.values
        else:
            orders[name] = given.score(given.clf, name, given.sample())
    return pruning_curves(
        given.evaluator,
        orders,
        **steps,
        keep_per_layer=keep,
        metric=metric,
        progress=part(given.progress, 1, 2) if ORACLE in names else given.progress,
        cancel=given.cancel,
    )


def figure(found: PruningCurves) -> Figure:
    """Metric against percentage pruned; bands are the paired interval of the change."""
    import plotly.graph_objects as go

    from ..charts.palette import CLASSES
    from ..charts.style import FAINT, band, frame, safe

    fig, unit = go.Figure(), found.subject.scale
    fig.add_hline(y=found.baseline, line={"color": FAINT, "dash": "dash", "width": 1.2})
    for k, curve in enumerate(found.curves):
        shade = CLASSES[k % len(CLASSES)]
        x = [100 * p.sparsity for p in curve.points]
        low = [found.baseline + p.interval_low for p in curve.points]
        band(fig, x, low, [found.baseline + p.interval_high for p in curve.points], shade, curve.name)
        fig.add_scatter(
            x=x,
            y=[p.value for p in curve.points],
            mode="lines+markers",
            name=curve.name,
            legendgroup=curve.name,
            line={"color": shade, "width": 2, "dash": "dot" if curve.name.startswith(ORACLE) else _again(k)},
            marker={"size": 6},
            customdata=[[unit * v for v in (p.delta, p.interval_low, p.interval_high)] for p in curve.points],
            hovertemplate="%{x:.0f} % pruned: %{y:.4g}<br>change %{customdata[0]:+.2f} points "
            "[%{customdata[1]:+.2f}, %{customdata[2]:+.2f}]<extra>" + safe(curve.name) + "</extra>",
        )
    fig.update_xaxes(title="heads pruned, %", range=[-2, 102])
    fig.update_yaxes(title=found.subject.metric)
    return frame(fig, 400, top=34)


def _again(place: int) -> str:
    """Colours that come a second time are told apart by their dashes."""
    from ..charts.palette import CLASSES

    return ("solid", "dash", "dashdot")[place // len(CLASSES) % 3]


def view(found: PruningCurves) -> View:
    best = max(found.curves, key=lambda c: c.free)
    return View(
        f"{100 * best.free:.0f} % of the heads can go without a clear loss in the order of {best.name}.",
        parts(
            found,
            "pruning_curves",
            "Heads masked lowest score first; bands are the 95 % paired intervals. The oracle knows the answers: it "
            "shows what a score could reach.",
        ),
        about=found.subject.about(found.baseline),
        rows=found.subject.rows,
    )


def parts(found: PruningCurves, key: str, caption: str) -> tuple[Picture, Table]:
    """The curves and the table of their points."""
    scale, metric = found.subject.scale, found.subject.metric
    points = [(c, p) for c in found.curves for p in c.points]
    rows = [
        [
            c.name,
            p.sparsity,
            len(p.mask.off),
            p.value,
            *(scale * v for v in (p.delta, p.interval_low, p.interval_high)),
            p.p_value,
        ]
        for c, p in points
    ]
    formula = r"m(\text{masked}) \text{ against } |\text{off}| / |\text{heads}|"
    return (
        Picture(key, lambda: figure(found), caption, formula),
        Table(
            f"{key}_table",
            ("order", "share off", "heads off", metric, "change", *ENDS, "p"),
            rows,
            "Changes in points.",
            in_points("change") | {"share off": "%.3f", metric: "%.2f" if scale == 1 else "%.4f"},
            [p.mask for _, p in points],
            "Choose a row to take its mask to the Mask lab.",
            height=300,
        ),
    )


def recipe(options: Mapping[str, Any]) -> Recipe:
    names = [name for name in options["scores"].split(",") if name != ORACLE]
    oracle = Get(Call("ablate", (EVALUATOR,)), "values")
    return Recipe(
        (
            Import("headviz.analyses.ablation", ("ablate",)),
            Let("names", names),
            Let("tables", Each(scored_by(Name("name")), "name", Name("names"))),
            Let("orders", Call("dict", (Call("zip", ([Name("*names"), ORACLE_NAME], [Name("*tables"), oracle])),))),
            *found_by("pruning_curve", "pruning_curves", EVALUATOR, Name("orders")),
        ),
        ("evaluator", "some"),
    )


def only(found: PruningCurves, names: Sequence[str]) -> PruningCurves:
    """The same with some of the curves."""
    return replace(found, curves=tuple(c for c in found.curves if c.name in names))


ANALYSIS = Analysis(
    "pruning-curves",
    "Pruning curves",
    "How much can go, in the order of each score and in the best order there is?",
    "metric against percentage pruned, by scores and by the oracle",
    f"{MICHEL}, §4, Figures 3 and 6",
    run,
    figure,
    view,
    recipe,
    options=(
        METRIC,
        Option("scores", "conductance-spearman", "score orders; 'oracle' is ablation's own", metavar="A,B,…"),
        STEP,
        Option("until", 1.0, "last sparsity", "share", "S"),
        Option("keep-per-layer", 0, "heads that stay in every layer", "number", "N"),
        SAMPLES,
        SEED,
    ),
    published=published.without_loss,
    lines=Lines(lambda found: [c.name for c in found.curves], only),
)
