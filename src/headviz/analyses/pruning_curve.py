"""Metric against percentage pruned, by any score and in the order of single ablations. [M §4, Fig. 3, 6]

Heads are masked lowest score first. Michel et al. call the order of single ablations *on the evaluation data* the
oracle: it has seen the answers that it is judged by. It looks at one head at a time, so another order may beat it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..answers.comparison import Answers
from ..answers.constant import corrected
from ..display.numbers import number
from ..display.recipes import Code, call
from ..display.table import Column, Table
from ..display.views import Picture, View
from ..errors import OptionError, require_kind
from ..evaluation.verdict import MARGIN, MARGIN_OPTION
from ..heads import HeadMask
from ..options import Option, changed
from ..progress import Cancel, Progress, part
from ..results import Result
from ..scores.catalogue import TO_PRUNE_BY
from . import published
from .analysis import METRIC, MICHEL, SAMPLES, SEED, STEP, Analysis, Lines, in_points
from .common import ORACLE, Subject, check_score, constant_of, first_draw, predict_all, subject
from .curves import ORACLE_NAME, Curve, CurvePoint, Order, averaged, check_steps, ordered_by, ties_beside, told

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from ..evaluation.mask_evaluator import MaskEvaluator
    from .given import Given


RANDOM = "random"  # the order that the others must beat
WHISKERS = " Whiskers: from the lowest to the highest of ten orders of the heads that tie."


@dataclass(frozen=True)
class PruningCurves(Result):
    """Several curves of one model on one data set."""

    subject: Subject
    baseline: float
    curves: tuple[Curve, ...]
    constant: float | None = None  # what the best constant answer reaches
    margin: float = MARGIN  # points


def pruning_curves(
    evaluator: MaskEvaluator,
    orders: Mapping[str, NDArray],
    *,
    step: float = 0.1,
    until: float = 1.0,
    keep_per_layer: int = 0,
    metric: str | None = None,
    margin: float = MARGIN,
    seed: int = 0,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> PruningCurves:
    """One curve per L×H score table in ``orders`` (high = keep); for single ablations give ``Ablation.values``.

    With an order called ``random``, every other one is compared with it, example by example.

    ``margin``: points that may be lost and still count as nothing. Heads that tie go in ten orders, drawn from
    ``seed``; a point is the mean over them.

    >>> import headviz
    >>> clf, data = headviz.load("demo", device="cpu"), headviz.load_task("demo", limit=20)
    >>> orders = {"magnitude": headviz.score_heads(clf, data, "magnitude").values}
    >>> found = headviz.pruning_curves(headviz.Evaluator(clf, data), orders, step=0.5)
    >>> [point.sparsity for point in found.curves[0].points]
    [0.0, 0.5, 1.0]
    """
    evaluator = first_draw(evaluator)
    about, present = subject(evaluator, metric), evaluator.clf.present
    check_steps(step, until, keep_per_layer, present.num_heads)
    require_kind(orders, Mapping, "{'my order': scores.values}")
    if not orders:
        raise OptionError("A pruning curve needs at least one score table.")
    for name, values in orders.items():
        if np.shape(values) != (present.num_layers, present.num_heads):
            raise OptionError(
                f"Score '{name}' has shape {np.shape(values)}; the model has "
                f"{present.num_layers} layers × {present.num_heads} heads."
            )
    plans = {n: ordered_by(present, values, step, until, keep_per_layer, seed=seed) for n, values in orders.items()}
    return measured(evaluator, plans, about, margin, progress, cancel)


def measured(
    evaluator: MaskEvaluator,
    orders: Mapping[str, Order],
    about: Subject,
    margin: float,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> PruningCurves:
    """One curve per order. A mask that several orders go through is evaluated once."""
    present = evaluator.clf.present
    masks = list(dict.fromkeys(mask for order in orders.values() for plan in order.plans for mask in plan))
    answers, said = predict_all(evaluator, masks, progress=progress, cancel=cancel)
    baseline = answers.measure(answers.full, about.metric)
    constant = constant_of(evaluator, about.metric)
    labels = evaluator.data.label_names
    made = {}
    for mask, now, d in zip(masks, said, answers.deltas(said, about.metric), strict=True):
        # the full model itself: no difference, whatever the examples
        ends = (0.0, 0.0) if mask == present else (d.interval_low, d.interval_high)
        remark = answers.remark(now, labels)
        share = corrected(d.masked, baseline, constant)
        made[mask] = CurvePoint(mask.sparsity, mask, d.masked, d.delta, *ends, d.p_value, share, remark)
    over = _over_random(dict(zip(masks, said, strict=True)), answers, about.metric)
    chance = [{mask.sparsity: mask for mask in plan} for plan in (orders[RANDOM].plans if RANDOM in orders else [[]])]

    def point(mask: HeadMask, draw: int) -> CurvePoint:
        other = chance[draw % len(chance)].get(mask.sparsity)
        return made[mask] if other in (None, mask) else replace(made[mask], over_random=over(mask, other))

    def curve(name: str, order: Order) -> Curve:
        steps = zip(*order.plans, strict=True)
        points = tuple(averaged([point(mask, draw) for draw, mask in enumerate(step)]) for step in steps)
        return Curve(name, points, margin / about.scale, order.tied, order.heads)

    return PruningCurves(about, baseline, tuple(curve(*one) for one in orders.items()), constant, margin)


def _over_random(
    said: Mapping[HeadMask, NDArray], answers: Answers, metric: str
) -> Callable[[HeadMask, HeadMask], float]:
    """The lower end of what one mask keeps more than another; each pair is compared once."""

    @cache
    def lower(mask: HeadMask, other: HeadMask) -> float:
        (d,) = answers.against(said[other]).deltas([said[mask]], metric, tested=False)
        return float(d.interval_low)

    return lower


def run(given: Given) -> PruningCurves:
    from .ablation import ablate

    steps = {"step": given.option("step"), "until": given.option("until")}
    keep, metric = given.option("keep-per-layer"), given.option("metric")
    check_steps(**steps, keep_per_layer=keep, heads=given.clf.num_heads)
    asked = given.option("scores") or TO_PRUNE_BY
    names = [name for name in map(str.strip, asked.split(",")) if name]
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
        margin=given.option("margin"),
        seed=given.option("seed"),
        progress=part(given.progress, 1, 2) if ORACLE in names else given.progress,
        cancel=given.cancel,
    )


def figure(found: PruningCurves) -> Figure:
    """Metric against percentage pruned; bands are the paired interval of the change. Dotted: one class for all."""
    import plotly.graph_objects as go

    from ..display.figures.palette import CLASSES, NEUTRAL
    from ..display.figures.style import FAINT, band, constant_line, frame, safe

    fig, unit = go.Figure(), found.subject.scale
    fig.add_hline(y=found.baseline, line={"color": FAINT, "dash": "dash", "width": 1.2})
    if found.constant is not None:
        constant_line(fig, found.constant)
    for k, curve in enumerate(found.curves):
        shade = NEUTRAL if curve.name == ORACLE_NAME else CLASSES[k % len(CLASSES)]
        x = [100 * p.sparsity for p in curve.points]
        low = [found.baseline + p.interval_low for p in curve.points]
        band(fig, x, low, [found.baseline + p.interval_high for p in curve.points], shade, legendgroup=curve.name)
        fig.add_scatter(
            x=x,
            y=[p.value for p in curve.points],
            mode="lines+markers",
            name=curve.name,
            legendgroup=curve.name,
            line={"color": shade, "width": 2, "dash": "dot" if curve.name == ORACLE_NAME else _again(k)},
            marker={"size": 6},
            error_y=_of_ties(curve, shade),
            customdata=[
                [*(unit * v for v in (p.delta, p.interval_low, p.interval_high)), number(p.corrected), safe(p.remark)]
                for p in curve.points
            ],
            hovertemplate="%{x:.0f} % pruned: %{y:.4g}<br>change %{customdata[0]:+.2f} points "
            "[%{customdata[1]:+.2f}, %{customdata[2]:+.2f}]<br>corrected for chance: %{customdata[3]}"
            "<br>%{customdata[4]}<extra>" + safe(curve.name) + "</extra>",
        )
    fig.update_xaxes(title="heads pruned, %", range=[-2, 102])
    fig.update_yaxes(title=found.subject.metric)
    return frame(fig, 400, top=34)


def _of_ties(curve: Curve, shade: str) -> dict[str, Any] | None:
    """Whiskers from the lowest to the highest of the orders of heads that tie."""
    from ..display.figures.style import whisker

    if not any(p.masks > 1 for p in curve.points):
        return None
    ends = [(p.value, p.ties_low, p.ties_high) if p.masks > 1 else (p.value,) * 3 for p in curve.points]
    return {**whisker(*map(list, zip(*ends, strict=True))), "color": shade}


def _again(place: int) -> str:
    """Colours that come a second time are told apart by their dashes."""
    from ..display.figures.palette import CLASSES

    return ("solid", "dash", "dashdot")[place // len(CLASSES) % 3]


def finding(found: PruningCurves) -> str:
    """How far heads can go, from where on a loss is clear, and which orders beat a random one."""
    return told(found.curves, found.subject.scale, found.margin)


def view(found: PruningCurves) -> View:
    return View(
        finding(found),
        parts(
            found,
            "pruning_curves",
            "Heads masked lowest score first; bands are the 95 % paired intervals. Dotted lines: the order of single "
            "ablations, which has seen these answers, and one class for all.",
        ),
        about=found.subject.about(found.baseline),
        rows=found.subject.rows,
    )


def _ties(form: str) -> tuple[Column, ...]:
    return (
        Column("heads tied", value=lambda of: of[0].tied, meaning="heads whose score is that of another"),
        Column("lowest order", form, lambda of: of[1].ties_low),
        Column("highest order", form, lambda of: of[1].ties_high),
    )


def parts(found: PruningCurves, key: str, caption: str) -> tuple[Picture, Table]:
    """The curves and the table of their points."""
    scale, metric = found.subject.scale, found.subject.metric
    points = [(c, p) for c in found.curves for p in c.points]
    ties = any(c.tied for c in found.curves)
    form = "%.2f" if scale == 1 else "%.4f"
    best = "" if found.constant is None else f" The best constant answer has {metric} {found.constant:.3f}."
    formula = r"m(\text{masked}) \text{ against } |\text{off}| / |\text{heads}|"
    return (
        Picture(key, lambda: figure(found), caption + (WHISKERS if ties else ""), formula),
        Table.of(
            f"{key}_table",
            (
                Column("order", value=lambda of: of[0].name),
                Column("share off", "%.3f", lambda of: of[1].sparsity),
                Column("heads off", value=lambda of: len(of[1].mask.off)),
                Column(metric, form, lambda of: of[1].value),
                *(_ties(form) if ties else ()),
                in_points(
                    "change",
                    lambda of: scale * of[1].delta,
                    lambda of: (scale * of[1].interval_low, scale * of[1].interval_high),
                ),
                Column("p", value=lambda of: of[1].p_value),
                Column("corrected", "%.3f", lambda of: of[1].corrected),
                Column("answers", value=lambda of: of[1].remark),
            ),
            points,
            caption="Changes in points. Corrected: the share that is left of what the full model has above the best "
            f"constant answer.{best}{ties_beside(found.curves)}",
            masks=[p.mask for _, p in points],
            hint="Choose a row to take its mask to the Mask lab.",
            height=300,
        ),
    )


def recipe(options: Mapping[str, Any]) -> str:
    names = [name for name in (options.get("scores") or TO_PRUNE_BY).split(",") if name != ORACLE]
    about = changed(options, (MARGIN_OPTION, SEED))
    return (
        f"names = {names!r}\n"
        "tables = [headviz.score_heads(clf, some, score=name).values for name in names]\n"
        f"orders = dict(zip([*names, {ORACLE_NAME!r}], [*tables, headviz.ablate(evaluator).values]))\n"
        f"found = {call('headviz.pruning_curves', Code('evaluator'), Code('orders'), **about)}"
    )


def only(found: PruningCurves, names: Sequence[str]) -> PruningCurves:
    """The same with some of the curves."""
    return replace(found, curves=tuple(c for c in found.curves if c.name in names))


ORDERS = "score orders; 'oracle' is that of single ablations on the evaluation data"
ANALYSIS = Analysis(
    "pruning-curves",
    "Pruning curves",
    "How much can go, in the order of each score and in that of single ablations on the evaluation data?",
    "metric against percentage pruned, by scores and by single ablations on the evaluation data",
    f"{MICHEL}, §4, Figures 3 and 6",
    run,
    figure,
    view,
    recipe,
    options=(
        METRIC,
        Option("scores", None, ORDERS, usual=TO_PRUNE_BY, metavar="A,B,…"),
        STEP,
        Option("until", 1.0, "last sparsity", least=0, most=1, metavar="S"),
        Option("keep-per-layer", 0, "heads that stay in every layer", metavar="N"),
        MARGIN_OPTION,
        SAMPLES,
        SEED,
    ),
    published=published.without_loss,
    lines=Lines(lambda found: [c.name for c in found.curves], only),
)
