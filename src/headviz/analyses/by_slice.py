"""Slice by slice: which heads does each slice hang on? The ablation table, split by the data's slices.

A slice is one kind of examples. A head that costs little on average may be all that one of them has. Every head is
compared with the full model on each slice alone, and on all the other examples, so that a specialist shows as one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..answers.comparison import Answers
from ..answers.metrics import constant_name
from ..display.figures.heads import marked_map
from ..display.numbers import points
from ..display.table import Column, Picture, Table, View
from ..errors import OptionError
from ..evaluation.verdict import clear
from ..heads import HeadId, HeadMask, head_name, highest
from ..progress import Cancel, Progress, after, tracked
from ..results import Result
from ..statistics.significance import benjamini_hochberg
from ..storage.exchange import MaskLike
from .analysis import arguments, in_points
from .common import SIGNIFICANT, Subject, cost_tables, first_draw, first_remark, predict_all, subject_of

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from ..evaluation.mask_evaluator import MaskEvaluator
    from ..tasks import Dataset
    from .analysis import Request

MOST = 60  # slices; a column with more different values hardly names slices


@dataclass(frozen=True)
class SliceCost(Result):
    """One slice, and the head that it loses most without. None where its metric has no value."""

    name: str
    n: int
    baseline: float
    head: HeadId | None
    cost: float  # of that head, here
    interval_low: float
    interval_high: float
    p_value: float
    q_value: float  # over all heads and slices
    elsewhere: float  # what the same head costs on all other examples
    significant: int  # heads with a clear cost
    constant: float | None = None  # what the best constant answer reaches on this slice
    remark: str = ""  # where (nearly) all answers of ``base`` on this slice are of one class


@dataclass(frozen=True, eq=False)
class BySlice(Result):
    """``slices`` are those that lose most first; the tables are S×L×H in their order, NaN where nothing was measured.

    The costs are metric of ``base`` minus metric without the head, on the examples of that slice.
    """

    subject: Subject
    base: HeadMask
    baseline: float
    slice_name: str
    slices: tuple[SliceCost, ...]
    values: NDArray[np.float64]
    interval_low: NDArray[np.float64]
    interval_high: NDArray[np.float64]
    p_value: NDArray[np.float64]
    q_value: NDArray[np.float64]  # Benjamini-Hochberg over all heads and slices tested
    seconds: float
    remark: str = ""  # where (nearly) all answers of ``base`` are of one class

    def significant(self, level: float = SIGNIFICANT) -> NDArray[np.bool_]:
        """Where a head's cost on a slice differs from nothing: q is below ``level``, the interval excludes zero."""
        return clear(self.interval_low, self.interval_high, self.q_value, level)

    def heads_to_draw(self, most: int = 24) -> list[HeadId]:
        """The heads to draw: for each slice its costliest, then others with a clear cost.

        At most ``most``; every slice's costliest head comes before any slice's second.
        """
        orders = []
        for values, certain in zip(self.values, self.significant() & (self.values > 0), strict=True):
            ranked = highest(values)
            orders.append(ranked[:1] + [h for h in ranked[1:] if certain[h]])
        turns = zip_longest(*orders)
        heads = list(dict.fromkeys(h for turn in turns for h in turn if h is not None))[:most]
        return sorted(heads, key=self._place)

    def _place(self, head: HeadId) -> tuple[int, float, HeadId]:
        """Heads in the order of the slices that lose most without them, so that specialists form a diagonal."""
        costs = self.values[:, *head]
        return int(np.nanargmax(costs)), -float(np.nanmax(costs)), head

    def extra(self) -> dict[str, Any]:
        return {"tested": int(np.isfinite(self.p_value).sum()), "significant": int(self.significant().sum())}


def by_slice(
    evaluator: MaskEvaluator,
    *,
    base: MaskLike | None = None,
    metric: str | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> BySlice:
    """Every single-head ablation on top of ``base`` (None = the full model), on every slice.

    >>> import headviz
    >>> clf, data = headviz.load("demo", device="cpu"), headviz.load_task("demo", limit=20)
    >>> small = headviz.prune(clf, headviz.HeadMask.only(12, 12, ["0.0", "0.1", "11.0"]))
    >>> result = headviz.by_slice(headviz.Evaluator(small, data))
    >>> result.slice_name, len(result.slices) == len(set(data.slices))
    ('ability', True)
    """
    start = time.perf_counter()
    evaluator = first_draw(evaluator)
    subject, data = subject_of(evaluator, metric), evaluator.data
    members = slices_of(data)
    whole = evaluator.whole(base)
    heads = whole.kept
    masks = [whole.without([h]) for h in heads]
    total = len(masks) + 1 + len(members)
    answers, predictions = predict_all(
        evaluator, masks, reference=whole, progress=after(progress, 0, total), cancel=cancel
    )

    tables = []
    for index in tracked(members.values(), after(progress, len(masks) + 1, total), cancel):
        deltas = answers.pick(index).deltas([p[index] for p in predictions], subject.metric)
        tables.append(cost_tables(whole, heads, deltas))
    values, low, high, p = np.stack(tables, axis=1)  # [S, L, H] each
    q = benjamini_hochberg(p)

    without = dict(zip(heads, predictions, strict=True))
    slices = [
        _slice(name, index, tables_of_slice, answers, without, subject.metric, data.label_names)
        for (name, index), *tables_of_slice in zip(members.items(), values, low, high, p, q, strict=True)
    ]
    order = sorted(range(len(slices)), key=lambda k: (-np.nan_to_num(slices[k].cost, nan=-np.inf), slices[k].name))
    return BySlice(
        subject,
        whole,
        answers.measure(answers.full, subject.metric),
        data.slice_name or "kind",
        tuple(slices[k] for k in order),
        values=values[order],
        interval_low=low[order],
        interval_high=high[order],
        p_value=p[order],
        q_value=q[order],
        seconds=time.perf_counter() - start,
        remark=answers.remark(answers.full, data.label_names),
    )


def slices_of(data: Dataset) -> Mapping[str, NDArray[np.intp]]:
    """The places of each slice's examples. Refuses data without slices, and a column with too many different values."""
    if data.slices is None:
        raise OptionError(
            f"The {data.split} split of '{data.task.name}' does not say what kind each example is. "
            "Name a slice column (--slice-column, slice_column=)."
        )
    labels = np.asarray(data.slices)
    names = list(dict.fromkeys(data.slices))
    if len(names) > MOST:
        raise OptionError(
            f"The column '{data.slice_name}' has {len(names):,} different values in {len(data):,} examples, and at "
            f"most {MOST} kinds can be compared. Name a column with fewer."
        )
    return {name: np.flatnonzero(labels == name) for name in names}


def _slice(
    name: str,
    index: NDArray,
    tables: Sequence[NDArray],
    answers: Answers,
    predictions: Mapping[HeadId, NDArray],
    metric: str,
    labels: Sequence[str],
) -> SliceCost:
    """``tables`` [L, H]: the costs on this slice, both ends of their intervals, p and q."""
    of_slice = answers.pick(index)
    costs, lows, highs, _, q_values = tables
    head = next(iter(highest(costs)), None)
    cost, low, high, p, q = (float("nan") if head is None else float(table[head]) for table in tables)
    elsewhere = float("nan")
    outside = np.setdiff1d(np.arange(len(answers.gold)), index)
    if head is not None and len(outside):
        others = answers.pick(outside)
        elsewhere = others.measure(others.full, metric) - others.measure(predictions[head][outside], metric)
    return SliceCost(
        name,
        len(index),
        of_slice.measure(of_slice.full, metric),
        head,
        *(cost, low, high, p, q),
        elsewhere,
        significant=int((clear(lows, highs, q_values, SIGNIFICANT) & (costs > 0)).sum()),
        constant=of_slice.constant(metric),
        remark=of_slice.remark(of_slice.full, labels),
    )


def run(request: Request) -> BySlice:
    return by_slice(request.evaluator, base=request.mask(), **arguments(request, "metric"))


def figure(result: BySlice) -> Figure:
    """Slices down, the heads that they hang on across; a block on the diagonal is a specialist."""
    heads = result.heads_to_draw()
    layer, head = np.array(heads, dtype=int).reshape(-1, 2).T
    values, low, high = (
        result.subject.scale * t[:, layer, head] for t in (result.values, result.interval_low, result.interval_high)
    )
    return marked_map(
        values,
        low,
        high,
        result.significant()[:, layer, head],
        [k.name for k in result.slices],
        [head_name(h, result.subject.rows) for h in heads],
        f"significant (q < {SIGNIFICANT:g})",
    )


def slice_words(result: BySlice) -> tuple[str, str]:
    """What a slice is called, and several of them: the demo's are abilities."""
    return ("ability", "abilities") if result.slice_name == "ability" else ("kind of examples", "kinds of examples")


def finding(result: BySlice) -> str:
    kind, kinds = slice_words(result)
    scale, losing = result.subject.scale, [k for k in result.slices if k.significant]
    remark = first_remark([(f"On {k.name}, ", k.remark) for k in result.slices])
    if result.remark:
        remark = f"{result.remark} "
    if not losing:
        sizes = sorted({k.n for k in result.slices})
        count = f"{sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else f"{sizes[0]}"
        return (
            f"{remark}No {kind} clearly loses something when one head is off (q < {SIGNIFICANT:g}); with "
            f"{count} examples of each, smaller costs cannot be distinguished from chance."
        )
    sentence = (
        f"{remark}{len(losing)} of {len(result.slices)} {kinds} "
        f"lose{'s' if len(losing) == 1 else ''} something when one head is off (q < {SIGNIFICANT:g})"
    )
    most = max((k for k in losing if k.head and k.q_value < SIGNIFICANT), key=lambda k: k.cost, default=None)
    if most is None or most.head is None:
        return f"{sentence}."
    name = head_name(most.head, result.subject.rows)
    sentence += f"; {most.name} most, without {name}: {points(-most.cost, scale)} points"
    others = f", and {points(-most.elsewhere, scale)} on all others"
    return f"{sentence}{others if np.isfinite(most.elsewhere) else ''}."


def view(result: BySlice) -> View:
    subject, scale = result.subject, result.subject.scale
    form, level = "%.2f" if scale == 1 else "%.3f", constant_name(subject.metric)
    columns = (
        Column("examples", value=attrgetter("n")),
        Column(subject.called, form, attrgetter("baseline")),
        Column(level, form, attrgetter("constant"), f"the {subject.called} of the best constant answer"),
        Column("costliest head", value=attrgetter("head")),
        in_points("cost", lambda k: scale * k.cost, lambda k: (scale * k.interval_low, scale * k.interval_high)),
        in_points("elsewhere", lambda k: scale * k.elsewhere),
        Column("p", value=attrgetter("p_value")),
        Column("q", value=attrgetter("q_value")),
        Column("heads that cost", value=attrgetter("significant")),
        Column("answers", value=attrgetter("remark")),
    )
    taken = {column.title for column in columns}
    kind = f"slice {result.slice_name}" if result.slice_name in taken else result.slice_name
    return View(
        finding(result),
        (
            Picture(
                "by_slice_map",
                lambda: figure(result),
                f"Points of {subject.called} that each {slice_words(result)[0]} loses without a head: the costliest of "
                "each, then others with a clear cost (rings: q < 0.05), 24 heads at most.",
                r"c_{h,k} = m_k(\text{base}) - m_k(\text{base without } h)",
                "m over the examples of kind k alone. q: Benjamini-Hochberg over all heads and kinds; intervals: "
                "paired on the same examples, 95 %.",
            ),
            Table.of(
                "by_slice_table",
                (Column(kind, value=attrgetter("name")), *columns),
                result.slices,
                caption=f"Costs in points. {level[0].upper()}{level[1:]}: the {subject.called} of the best constant "
                "answer. Elsewhere: what the same head costs all other examples. The costliest of many heads was "
                "chosen on these very examples: expect a little less on new ones.",
                masks=[result.base.without([k.head]) if k.head else None for k in result.slices],
                hint="Choose a row to switch its head off in the Mask lab.",
                height=None if len(result.slices) <= 24 else 400,
            ),
        ),
        about=subject.lines(result.baseline),
        rows=subject.rows,
    )
