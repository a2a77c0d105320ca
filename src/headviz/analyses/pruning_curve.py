"""Metric against percentage pruned, by any score and in the order of single ablations. [M §4, Fig. 3, 6]

Heads are masked lowest score first. Michel et al. call the order of single ablations *on the evaluation data* the
oracle: it has seen the answers that it is judged by. It looks at one head at a time, so another order may beat it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import takewhile
from math import inf
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from ..answers.metrics import constant_name, continued, corrected
from ..display.figures.style import CLASSES, FAINT, NEUTRAL, band, constant_line, frame, limits, safe, whisker
from ..display.numbers import number, points
from ..display.recipes import Code, call
from ..display.table import Column, Picture, Table, View
from ..errors import OptionError, require_kind
from ..evaluation.verdict import MARGIN, MARGIN_OPTION, at_most, clear_from, excluded, verdict, within
from ..heads import DRAWS, LEAST_STEP, HeadId, HeadMask, Seed, draws, grid_values, lowest, tied, ties_text
from ..options import changed
from ..progress import Cancel, Progress, part
from ..results import Result
from ..scores.catalogue import TO_PRUNE_BY
from ..statistics.intervals import over_draws
from .ablation import ablate
from .analysis import SEED, in_points
from .common import ORACLE, Subject, check_score, constant_of, first_draw, predict_all, subject_of

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from ..evaluation.mask_evaluator import MaskEvaluator
    from .analysis import Request

ORACLE_NAME = "single ablations on the evaluation data"


@dataclass(frozen=True)
class CurvePoint(Result):
    """One sparsity on one curve; the interval and p value are of ``value - baseline``, paired.

    ``corrected`` is the value as a share of what the full model has above the best constant answer. ``remark`` says
    so where (nearly) all answers are of one class. ``over_random`` is the lower end of what it keeps more than the
    random order with as many heads off; NaN where that is not known.

    Where it is another mask in another order of the heads that tie, values are means over ten drawn orders, and the
    interval and p are those of ``over_draws``. ``mask`` is the first order's, ``masks`` counts the different ones, and
    the values go from ``ties_low`` to ``ties_high``.
    """

    sparsity: float
    mask: HeadMask
    value: float
    delta: float
    interval_low: float
    interval_high: float
    p_value: float
    corrected: float = float("nan")
    remark: str = ""
    over_random: float = float("nan")
    masks: int = 1
    ties_low: float = float("nan")
    ties_high: float = float("nan")


@dataclass(frozen=True)
class Curve(Result):
    """One order of heads. ``margin`` is the loss, in the metric's unit, that counts as none.

    Of its ``heads``, ``tied`` have the same value as another.
    """

    name: str
    points: tuple[CurvePoint, ...]
    margin: float = MARGIN / 100
    tied: int = 0
    heads: int = 0

    @property
    def kept(self) -> tuple[CurvePoint, ...]:
        """The points up to which every loss beyond the margin is excluded."""
        return tuple(takewhile(lambda p: within(p.interval_low, self.margin), self.points))

    @property
    def free(self) -> float:
        """The largest sparsity up to which no step leaves a loss beyond the margin possible."""
        return max((p.sparsity for p in self.kept[1:]), default=0.0)  # the first is the model itself

    @property
    def lost(self) -> CurvePoint | None:
        """The first clear loss: an interval below zero."""
        return next((p for p in self.points if verdict(p.interval_low, p.interval_high) == "loss"), None)

    def extra(self) -> dict[str, Any]:
        return {"free": self.free, "lost_from": None if self.lost is None else self.lost.sparsity}


@dataclass(frozen=True)
class Order:
    """The masks that an order of heads goes through: one plan, or several where heads tie, equally long."""

    plans: tuple[list[HeadMask], ...]
    tied: int
    heads: int


def ordered_by(
    present: HeadMask,
    values: Any,
    step: float,
    until: float = 1.0,
    keep_per_layer: int = 0,
    among: Sequence[HeadId] | None = None,
    seed: int = 0,
) -> Order:
    """The lowest values first, with ten draws of the order among equals."""
    heads = present.kept if among is None else among
    of_heads = grid_values(values, heads)
    plans = (stepwise(present, values, step, until, keep_per_layer, among, seed=s) for s in draws(of_heads, seed))
    return Order(tuple(plans), tied(of_heads), len(heads))


def averaged(points: Sequence[CurvePoint]) -> CurvePoint:
    """One point of several orders of the heads that tie."""
    first, masks = points[0], len({p.mask for p in points})
    if masks == 1:
        return first

    ends = over_draws(*([getattr(p, n) for p in points] for n in ("interval_low", "interval_high", "p_value")))
    low, high, p_value = map(float, ends)
    means: dict[str, Any] = {
        n: fmean(getattr(p, n) for p in points) for n in ("value", "delta", "corrected", "over_random")
    }
    values, remarks = [p.value for p in points], [p.remark for p in points if p.remark]
    remark = remarks[0] if remarks else ""
    if 0 < len(remarks) < len(points):
        remark = f"{remark[:-1]}, in {len(remarks)} of {len(points)} orders."
    return replace(
        first,
        **means,
        interval_low=low,
        interval_high=high,
        p_value=p_value,
        remark=remark,
        masks=masks,
        ties_low=min(values),
        ties_high=max(values),
    )


def ties_of_curves(curves: Sequence[Curve], word: str = "by") -> str:
    """The sentence on heads that tie in an order, with a blank before it; empty where none do."""
    ties = [f"{ties_text(c.tied, c.heads)} {word} {c.name}" for c in curves if c.tied]
    return f" {', '.join(ties)}: their values are means over {DRAWS} drawn orders of equals." if ties else ""


def stepwise(
    present: HeadMask,
    values: Any,
    step: float,
    until: float = 1.0,
    keep_per_layer: int = 0,
    among: Sequence[HeadId] | None = None,
    *,
    seed: Seed,
) -> list[HeadMask]:
    """The full model, then round(k·step·N) heads off until the first share ≥ ``until``.

    N is all heads, those that were removed from the model too, or with ``among`` just these heads, which alone may go.
    """
    kappa = Fraction(repr(float(step)))  # 3 · 0.1 is 0.3 exactly
    among, size = (present.kept, present.size) if among is None else (among, len(among))
    removed = size - len(among)
    masks, k = [present], 0
    while (removed + len(masks[-1].off) - len(present.off)) / size < until - 1e-9:
        k += 1
        count = round(k * kappa * size) - removed
        if count <= 0:
            continue
        off = lowest(values, min(count, len(among)), among, keep_per_layer, seed=seed)
        mask = present.without(off)
        if mask == masks[-1]:
            if count > len(off):  # nothing more may go
                break
            continue
        masks.append(mask)
    return masks


def check_steps(step: float, until: float, keep_per_layer: int, heads: int) -> None:
    """Check the options of a curve before anything is computed. ``heads`` are those of one layer."""
    if not (0 < step <= 1 and 0 < until <= 1):
        raise OptionError(f"step and until must lie above 0 and be at most 1, not {step:g} and {until:g}.")
    if step < LEAST_STEP:
        raise OptionError(f"A step is at least {LEAST_STEP:g} of the heads, not {step:g}: a smaller one removes none.")
    if not 0 <= keep_per_layer < heads:
        raise OptionError(
            f"A layer has {heads} heads, so from 0 to {heads - 1} of them can be kept, not {keep_per_layer}: "
            "otherwise none may go."
        )


def curves_sentence(curves: Sequence[Curve], scale: float, margin: float) -> str:
    """First what hides a loss, then how far nothing beyond the margin can be lost, then where a loss is clear."""
    fair = [c for c in curves if c.name != ORACLE_NAME]  # which has seen the answers
    best = max(fair or curves, key=_quality)
    sentence = one_class_remark(best)
    if best.free > 0:
        last = best.kept[-1]
        sentence += (
            f"{100 * best.free:.0f} % of the heads can go in the order of {best.name} "
            f"{at_most(last.interval_low, scale)} (margin {margin:g})."
        )
        if equals := [c.name for c in fair if c.free == best.free and c is not best]:
            sentence += f" As many can in the order of {' and of '.join(equals)}."
        if len(fair) > 1:
            sentence += f" {best.name} is the best of {len(fair)} orders here: expect a little less on new examples."
    elif (first := _first_step(best)) is not None:
        most = " excludes most" if len(fair) > 1 and first.interval_low == first.interval_low else ""
        sentence += f"At the first step, {100 * first.sparsity:.0f} %, the order of {best.name}"
        sentence += f"{most}: {excluded(first.interval_low, scale, margin)}."
    sentence += "" if fair else " This order has seen the answers: fewer can go on new examples."
    if best.lost is not None:
        change = f" ({points(best.lost.delta, scale)} points)"
        lost = clear_from([(p.sparsity, [(p.interval_low, p.interval_high)]) for p in best.points], change)
        whose = f"In the order of {best.name} a" if len(fair) > 1 else "A"
        size = ", at first within that margin" if best.lost.sparsity <= best.free else ""
        sentence += "" if lost is None else f" {whose} loss is {lost[1]}{size}."
    return sentence + beats_random(curves)


def _quality(curve: Curve) -> tuple[float, float]:
    """How good an order is: how many heads can go, then how small the loss is that is still possible there."""
    last = curve.kept[-1] if curve.free > 0 else _first_step(curve)
    low = float("nan") if last is None else last.interval_low
    return curve.free, low if low == low else float("-inf")


def _first_step(curve: Curve) -> CurvePoint | None:
    """The first step with heads off whose change is known."""
    return next((p for p in curve.points if p.delta == p.delta and p.mask != curve.points[0].mask), None)


def beats_random(curves: Sequence[Curve]) -> str:
    """Which orders keep clearly more than a random one, and where; empty without a random order."""
    if not any(p.over_random == p.over_random for c in curves for p in c.points):
        return ""
    others = [c for c in curves if c.name != ORACLE_NAME and any(p.over_random == p.over_random for p in c.points)]
    better = [f"{c.name} {_where(c)}" for c in others if any(p.over_random > 0 for p in c.points)]
    worse = [c.name for c in others if not any(p.over_random > 0 for p in c.points)]
    if not better:
        return " No order is clearly better than the random one."
    sentence = f" Better than the random order, each share by itself: {', '.join(better)}."
    return sentence + (f" Nowhere: {', '.join(worse)}." if worse else "")


def _where(curve: Curve) -> str:
    """At which shares an order beats a random one."""
    compared = [p for p in curve.points if p.over_random == p.over_random]
    better = [i for i, p in enumerate(compared) if p.over_random > 0]
    first, last = (f"{100 * compared[i].sparsity:.0f}" for i in (better[0], better[-1]))
    if len(better) == 1:
        return f"at {first} %"
    gaps = f"at {len(better)} shares " if len(better) <= better[-1] - better[0] else ""
    return f"{gaps}from {first} to {last} %"


def one_class_remark(curve: Curve) -> str:
    """From where on (nearly) all answers are of one class; a sentence with its blank, or nothing.

    Without any head it is no news.
    """
    first = next((p for p in curve.points if p.remark and p.mask.kept), None)
    if first is None:
        return ""
    if first is curve.points[0]:
        return f"The full model: {first.remark[0].lower()}{first.remark[1:]} "
    return f"With {100 * first.sparsity:.0f} % of the heads off by {curve.name}, {continued(first.remark)} "


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
    >>> result = headviz.pruning_curves(headviz.Evaluator(clf, data), orders, step=0.5)
    >>> [point.sparsity for point in result.curves[0].points]
    [0.0, 0.5, 1.0]
    """
    evaluator = first_draw(evaluator)
    subject, present = subject_of(evaluator, metric), evaluator.clf.present
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
    return measured(evaluator, plans, subject, margin, progress, cancel)


def measured(
    evaluator: MaskEvaluator,
    orders: Mapping[str, Order],
    subject: Subject,
    margin: float,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> PruningCurves:
    """One curve per order. A mask that several orders go through is evaluated once."""
    present = evaluator.clf.present
    masks = list(dict.fromkeys(mask for order in orders.values() for plan in order.plans for mask in plan))
    answers, predicted = predict_all(evaluator, masks, progress=progress, cancel=cancel)
    predictions = dict(zip(masks, predicted, strict=True))
    baseline = answers.measure(answers.full, subject.metric)
    constant = constant_of(evaluator, subject.metric)
    labels = evaluator.data.label_names
    points = {}
    for mask, d in zip(masks, answers.deltas(predicted, subject.metric), strict=True):
        # the full model itself: no difference, whatever the examples
        ends = (0.0, 0.0) if mask == present else (d.interval_low, d.interval_high)
        remark = answers.remark(predictions[mask], labels)
        share = corrected(d.masked, baseline, constant)
        points[mask] = CurvePoint(mask.sparsity, mask, d.masked, d.delta, *ends, d.p_value, share, remark)
    random = [{mask.sparsity: mask for mask in plan} for plan in (orders[RANDOM].plans if RANDOM in orders else [[]])]

    @cache
    def over_random(mask: HeadMask, other: HeadMask) -> float:
        """The lower end of what one mask keeps more than another."""
        (d,) = answers.against(predictions[other]).deltas([predictions[mask]], subject.metric, tested=False)
        return float(d.interval_low)

    def point(mask: HeadMask, draw: int) -> CurvePoint:
        other = random[draw % len(random)].get(mask.sparsity)
        return points[mask] if other in (None, mask) else replace(points[mask], over_random=over_random(mask, other))

    def curve(name: str, order: Order) -> Curve:
        steps = zip(*order.plans, strict=True)
        means = tuple(averaged([point(mask, draw) for draw, mask in enumerate(step)]) for step in steps)
        return Curve(name, means, margin / subject.scale, order.tied, order.heads)

    return PruningCurves(subject, baseline, tuple(curve(*item) for item in orders.items()), constant, margin)


def run(request: Request) -> PruningCurves:
    steps = {"step": request.option("step"), "until": request.option("until")}
    keep, metric = request.option("keep-per-layer"), request.option("metric")
    check_steps(**steps, keep_per_layer=keep, heads=request.clf.num_heads)
    scores = request.option("scores") or TO_PRUNE_BY
    names = [name for name in map(str.strip, scores.split(",")) if name]
    for name in names:
        check_score(name)
    orders = {}
    for name in names:
        if name == ORACLE:
            first_half = part(request.progress, 0, 2)
            table = ablate(request.evaluator, metric=metric, progress=first_half, cancel=request.cancel)
            orders[ORACLE_NAME] = table.values
        else:
            orders[name] = request.score(request.clf, name, request.sample())
    return pruning_curves(
        request.evaluator,
        orders,
        **steps,
        keep_per_layer=keep,
        metric=metric,
        margin=request.option("margin"),
        seed=request.option("seed"),
        progress=part(request.progress, 1, 2) if ORACLE in names else request.progress,
        cancel=request.cancel,
    )


def figure(result: PruningCurves) -> Figure:
    """Metric against percentage pruned; bands are the paired interval of the change. Dotted: the best constant."""
    fig, unit, level = go.Figure(), result.subject.scale, result.baseline
    ends = limits([result.subject.metric], (p.value for curve in result.curves for p in curve.points))
    least, most = ends or (-inf, inf)
    fig.add_hline(y=result.baseline, line={"color": FAINT, "dash": "dash", "width": 1.2})
    if result.constant is not None:
        constant_line(fig, result.constant, result.subject.metric)
    for k, curve in enumerate(result.curves):
        shade = NEUTRAL if curve.name == ORACLE_NAME else CLASSES[k % len(CLASSES)]
        x = [100 * p.sparsity for p in curve.points]
        low = [max(level + p.interval_low, least) for p in curve.points]
        high = [min(level + p.interval_high, most) for p in curve.points]
        band(fig, x, low, high, shade, legendgroup=curve.name)
        fig.add_scatter(
            x=x,
            y=[p.value for p in curve.points],
            mode="lines+markers",
            name=curve.name,
            legendgroup=curve.name,
            line={"color": shade, "width": 2, "dash": "dot" if curve.name == ORACLE_NAME else _dash(k)},
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
    fig.update_yaxes(title=result.subject.called)
    return frame(fig, 400, top=34)


def _of_ties(curve: Curve, shade: str) -> dict[str, Any] | None:
    """Whiskers from the lowest to the highest of the orders of heads that tie."""
    if not any(p.masks > 1 for p in curve.points):
        return None
    ends = [(p.value, p.ties_low, p.ties_high) if p.masks > 1 else (p.value,) * 3 for p in curve.points]
    return {**whisker(*map(list, zip(*ends, strict=True))), "color": shade}


def _dash(place: int) -> str:
    """Colours that come a second time differ in their dashes."""
    return ("solid", "dash", "dashdot")[place // len(CLASSES) % 3]


def finding(result: PruningCurves) -> str:
    """How far heads can go, from where on a loss is clear, and which orders beat a random one."""
    return curves_sentence(result.curves, result.subject.scale, result.margin)


def view(result: PruningCurves) -> View:
    level = "" if result.constant is None else f", and {constant_name(result.subject.metric)}"
    return View(
        finding(result),
        parts(
            result,
            "pruning_curves",
            "Heads masked lowest score first; bands are the 95 % paired intervals. Dotted: the order of single "
            f"ablations, which has seen these answers{level}.",
        ),
        about=result.subject.lines(result.baseline),
        rows=result.subject.rows,
    )


def parts(result: PruningCurves, key: str, caption: str) -> tuple[Picture, Table]:
    """The curves and the table of their points."""
    scale, metric = result.subject.scale, result.subject.called
    points = [(c, p) for c in result.curves for p in c.points]
    ties = any(c.tied for c in result.curves)
    form = "%.2f" if scale == 1 else "%.4f"
    ties_columns = (
        Column("heads tied", value=lambda item: item[0].tied, meaning="heads whose score is that of another"),
        Column("lowest order", form, lambda item: item[1].ties_low),
        Column("highest order", form, lambda item: item[1].ties_high),
    )
    best = "" if result.constant is None else f" The best constant answer has {metric} {result.constant:.3f}."
    formula = r"m(\text{masked}) \text{ against } |\text{off}| / |\text{heads}|"
    return (
        Picture(key, lambda: figure(result), caption + (WHISKERS if ties else ""), formula),
        Table.of(
            f"{key}_table",
            (
                Column("order", value=lambda item: item[0].name),
                Column("share off", "%.3f", lambda item: item[1].sparsity),
                Column("heads off", value=lambda item: len(item[1].mask.off)),
                Column(metric, form, lambda item: item[1].value),
                *(ties_columns if ties else ()),
                in_points(
                    "change",
                    lambda item: scale * item[1].delta,
                    lambda item: (scale * item[1].interval_low, scale * item[1].interval_high),
                ),
                Column("p", value=lambda item: item[1].p_value),
                Column("corrected", "%.3f", lambda item: item[1].corrected),
                Column("answers", value=lambda item: item[1].remark),
            ),
            points,
            caption="Changes in points. Corrected: the share that is left of what the full model has above the best "
            f"constant answer.{best}{ties_of_curves(result.curves)}",
            masks=[p.mask for _, p in points],
            hint="Choose a row to take its mask to the Mask lab.",
            height=300,
        ),
    )


def recipe(options: Mapping[str, Any]) -> str:
    names = [name for name in (options.get("scores") or TO_PRUNE_BY).split(",") if name != ORACLE]
    settings = changed(options, (MARGIN_OPTION, SEED))
    return (
        f"names = {names!r}\n"
        "tables = [headviz.score_heads(clf, some, score=name).values for name in names]\n"
        f"orders = dict(zip([*names, {ORACLE_NAME!r}], [*tables, headviz.ablate(evaluator).values]))\n"
        f"result = {call('headviz.pruning_curves', Code('evaluator'), Code('orders'), **settings)}"
    )


def only(result: PruningCurves, names: Sequence[str]) -> PruningCurves:
    """The same with some of the curves."""
    return replace(result, curves=tuple(c for c in result.curves if c.name in names))
