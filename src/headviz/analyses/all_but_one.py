"""All heads of a layer off but one: how far does the best single head go? [M §3.3, Tables 2, 3, 5, 6]"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from ..display.figures.style import FAINT, NEUTRAL, frame, tone, whisker
from ..display.recipes import Code, call
from ..display.sentences import NAMED, points_changed
from ..display.table import Column, Picture, Table, View
from ..errors import OptionError
from ..evaluation.verdict import MARGIN, MARGIN_OPTION, within
from ..heads import HeadId, HeadMask, highest
from ..options import changed
from ..progress import Cancel, Progress, after
from ..reference import find
from ..results import Result
from ..statistics.significance import benjamini_hochberg
from .analysis import arguments, in_points
from .common import Subject, empty_grid, first_draw, first_remark, predict_all, require_evaluator, subject_of, sweep

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from ..evaluation.mask_evaluator import MaskEvaluator
    from .analysis import Request

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
    remark: str = ""  # where (nearly) all answers are of one class


@dataclass(frozen=True, eq=False)
class AllButOne(Result):
    """``chosen_on`` is the data the heads were chosen on. Where they are reported on the same, costs look smaller."""

    subject: Subject
    select: Select
    chosen_on: Subject
    baseline: float
    deltas: NDArray[np.float64]  # [L, H] on ``chosen_on``; NaN where a head is not there
    rows: tuple[BestHead, ...]  # layers that still have heads
    margin: float = MARGIN  # points that may be lost and still count as nothing


def all_but_one(
    evaluator: MaskEvaluator,
    select: Select = "other",
    other: MaskEvaluator | None = None,
    *,
    metric: str | None = None,
    margin: float = MARGIN,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> AllButOne:
    """Choose each layer's best head on ``other`` (``select="other"``) or on the reported data itself.

    >>> import headviz
    >>> clf, data = headviz.load("demo", device="cpu"), headviz.load_task("demo", limit=20)
    >>> small = headviz.prune(clf, headviz.HeadMask.only(12, 12, ["0.0", "0.1", "11.0"]))
    >>> result = headviz.all_but_one(headviz.Evaluator(small, data), "same")
    >>> [(row.layer, row.head) for row in result.rows]
    [(0, 0), (11, 0)]
    """
    require_evaluator(evaluator)
    if select not in ("same", "other"):
        raise OptionError(f"Unknown choice '{select}' of select. Choose one of: same, other.")
    if select == "other" and other is None:
        raise OptionError("Heads are chosen on other examples: give an evaluator of them (--select other, other=).")
    chooser = evaluator if select == "same" or other is None else other
    present = evaluator.clf.present
    if chooser.clf.digest != evaluator.clf.digest:
        raise OptionError("The heads must be chosen with the same model that they are reported for.")
    evaluator, chooser = first_draw(evaluator), first_draw(chooser)
    subject, chosen_on = subject_of(evaluator, metric), subject_of(chooser, metric)
    heads = present.kept
    total = len(heads) + present.num_layers + 2
    masks = [_only(present, h) for h in heads]
    _, deltas = sweep(chooser, masks, chosen_on.metric, progress=after(progress, 0, total), cancel=cancel)
    table = empty_grid(present)
    for head, delta in zip(heads, deltas, strict=True):
        table[head] = delta.delta
    order = [*highest(table), *heads]  # heads without a value come last
    best = [next(h for h in order if h.layer == layer) for layer in sorted({h.layer for h in heads})]
    best_masks = [_only(present, h) for h in best]
    step_progress = after(progress, len(heads) + 1, total)
    answers, predictions = predict_all(evaluator, best_masks, progress=step_progress, cancel=cancel)
    reported = [
        # the model itself: no difference, whatever the examples
        replace(d, interval_low=0.0, interval_high=0.0) if mask == present else d
        for mask, d in zip(best_masks, answers.deltas(predictions, subject.metric), strict=True)
    ]
    q_values = benjamini_hochberg([d.p_value for d in reported])
    rows, nan = [], float("nan")
    for head, d, q, predicted in zip(best, reported, q_values, predictions, strict=True):
        change = d.delta, d.interval_low, d.interval_high, d.p_value, float(q)
        if np.isnan(table[head]):  # no head was chosen, so this is not what the layer's best one loses
            change = nan, nan, nan, nan, nan
        rows.append(BestHead(*head, *change, answers.remark(predicted, evaluator.data.label_names)))
    if progress is not None:
        progress(total, total)
    baseline = answers.measure(answers.full, subject.metric)
    return AllButOne(subject, select, chosen_on, baseline, table, tuple(rows), margin)


def _only(present: HeadMask, kept: HeadId) -> HeadMask:
    """Every other head of its layer off, all other layers untouched."""
    return present.without((kept.layer, h) for h in range(present.num_heads) if h != kept.head)


def run(request: Request) -> AllButOne:
    evaluator, select = request.evaluator, request.option("select")
    other = request.on(request.sample()) if select == "other" else None
    return all_but_one(evaluator, select, other, **arguments(request, "metric", "margin"))


def figure(result: AllButOne) -> Figure:
    """What each layer's best single head changes, with its interval; Michel et al.'s table next to it for MNLI."""
    rows, unit = result.rows, result.subject.scale
    values, low, high = ([unit * getattr(r, name) for r in rows] for name in ("delta", "interval_low", "interval_high"))
    fig = go.Figure()
    fig.add_hline(y=0, line={"color": FAINT, "width": 1})
    fig.add_scatter(
        x=[r.layer for r in rows],
        y=values,
        mode="markers",
        name="ours",
        marker={"size": 10, "color": [tone(r.interval_low, r.interval_high) for r in rows]},
        error_y=whisker(values, low, high),
        customdata=[[HeadId(r.layer, r.head).dotted, r.p_value, r.q_value] for r in rows],
        hovertemplate="only head %{customdata[0]} kept<br>%{y:+.2f} points<br>p %{customdata[1]:.3g}, "
        "q %{customdata[2]:.3g}<extra></extra>",
    )
    if result.subject.task == "mnli" and len(result.deltas) == 12:
        name = "table3" if result.select == "same" else "table6"
        fig.add_scatter(
            x=list(range(12)),
            y=find("michel", name).numbers(name),
            mode="markers",
            name="published: Michel et al. 2019, BERT-base",
            marker={"symbol": "diamond-open", "size": 9, "color": NEUTRAL},
        )
    named = result.subject.rows
    ticks = {"tickvals": list(range(len(named))), "ticktext": list(named)} if named else {"dtick": 1}
    fig.update_xaxes(title="layer in which one head is kept", **ticks)
    fig.update_yaxes(title=f"change of {result.subject.called}, points")
    return frame(fig, 360, top=34)


def finding(result: AllButOne) -> str:
    if not result.rows:
        return "No layer of this model has heads."
    # where one head gives (nearly) the same answer to everything
    remark = first_remark([(f"With one head in {_layer(result, r)}, ", r.remark) for r in result.rows], "layer")
    measured = [r for r in result.rows if r.delta == r.delta]
    if not measured:
        return f"{remark}{result.subject.called} has no value with one head in a layer."
    scale, worst = result.subject.scale, min(measured, key=lambda r: r.delta)
    most = [_layer(result, r) for r in measured if r.delta == worst.delta]
    enough = sum(within(r.interval_low, result.margin / scale) for r in result.rows)
    lost = "No layer loses anything on these examples."
    if scale * worst.delta <= -0.05:  # what is written as 0.0 is no loss
        low, high = (worst.interval_low, worst.interval_high) if len(most) == 1 else (None, None)
        named, change = " and ".join(most), points_changed(worst.delta, low, high, scale)
        named = f"{len(most)} layers" if len(most) > NAMED else f"{named[0].upper()}{named[1:]}"
        lost = f"{named} {'loses' if len(most) == 1 else 'each lose'} most: {change}."
    layers, loss = f"{len(measured)} layer{'s' * (len(measured) > 1)}", f"a loss of more than {result.margin:g} points"
    sentence = f"In {enough} of {layers} one head is enough: {loss} is excluded."
    if not enough:
        sentence = f"In no layer is one head shown to be enough: {loss} is possible{' in each' * (len(measured) > 1)}."
    missing = len(result.rows) - len(measured)
    lost += f" In {missing} more layer{'s' * (missing > 1)} the metric has no value." if missing else ""
    if result.select == "same":
        lost += " The heads were chosen on these same examples, so the cost looks smaller than it is."
    return f"{remark}{sentence} {lost}"


def _layer(result: AllButOne, row: BestHead) -> str:
    return result.subject.rows[row.layer] if result.subject.rows else f"layer {row.layer}"


def view(result: AllButOne) -> View:
    subject, scale = result.subject, result.subject.scale
    where = "the reported data" if result.select == "same" else "other examples"
    columns = (
        Column("best head", value=lambda r: HeadId(r.layer, r.head)),
        in_points("change", lambda r: scale * r.delta, lambda r: (scale * r.interval_low, scale * r.interval_high)),
        Column("p", value=attrgetter("p_value")),
        Column("q", value=attrgetter("q_value")),
        Column("answers", value=attrgetter("remark")),
    )
    return View(
        finding(result),
        (
            Picture(
                "all_but_one_bars",
                lambda: figure(result),
                f"Change of {subject.called} when only the best head of one layer is left, chosen on {where}.",
                r"\Delta_l = \max_h m(\text{only } h \text{ of layer } l) - m(\text{full})",
                "Heads chosen on the reported data make the cost look smaller; those chosen on other examples do not.",
            ),
            Table.of(
                "all_but_one_table",
                columns,
                result.rows,
                caption="The best single head of each layer; changes in points.",
                height=None if len(result.rows) <= 24 else 400,
            ),
        ),
        about=(
            *subject.lines(result.baseline),
            ("heads chosen on", f"{result.chosen_on.data}, {result.chosen_on.n:,} examples ({result.select})"),
        ),
        rows=subject.rows,
    )


def recipe(options: Mapping[str, Any]) -> str:
    chosen_on = ["same"] if options["select"] == "same" else ["other", Code("headviz.evaluator_of(clf, some)")]
    code = call("headviz.all_but_one", Code("evaluator"), *chosen_on, **changed(options, (MARGIN_OPTION,)))
    return f"result = {code}"
