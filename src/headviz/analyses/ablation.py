"""One head off at a time: what does each head cost, and is it significant? [M §3.2, Fig. 1, Table 1]"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from ..display.figures.bars import value_histogram
from ..display.figures.style import MODELS, NEUTRAL, SMALL, frame, grid
from ..display.numbers import interval, metric, number, points
from ..display.table import Grid, Picture, Table, View, heads_table
from ..evaluation.verdict import MARGIN, clear, undecided, within
from ..heads import HeadId, HeadMask, grid_values, highest, order_note, ordered, tied
from ..models.stand_in import ZERO, StandIn
from ..progress import Cancel, Progress, part
from ..results import Result
from ..statistics.intervals import interval_of_mean, over_draws
from ..statistics.significance import benjamini_hochberg, holm
from ..storage.exchange import MaskLike, restored
from .analysis import COST, PAIRED, arguments
from .common import SIGNIFICANT, Subject, cost_tables, evaluator_for, heads_where, subject_of, sweep

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from ..evaluation.mask_evaluator import MaskEvaluator
    from ..models.base import Model
    from ..tasks import Dataset
    from .analysis import Request


@dataclass(frozen=True, eq=False)
class Ablation(Result):
    """Tables are L×H; NaN where a head is not there, or off in ``base``.

    ``values`` is a *cost*: metric of ``base`` minus metric without the head, so high means that the head matters.
    The interval is the cost's. Of several draws of what stands in a head's place, ``values`` are means, and intervals
    and ``p_value`` are those of ``over_draws``.
    """

    subject: Subject
    base: HeadMask
    baseline: float
    values: NDArray[np.float64]
    interval_low: NDArray[np.float64]
    interval_high: NDArray[np.float64]
    p_value: NDArray[np.float64]  # raw
    q_value: NDArray[np.float64]  # Benjamini-Hochberg over all heads tested
    seconds: float
    by_draw: NDArray[np.float64] | None = (
        None  # [draws, L, H] the costs of each draw of what stands in the heads' place
    )

    @property
    def delta(self) -> NDArray[np.float64]:
        """Masked - full, as published tables print it."""
        return -self.values

    def significant(self, level: float = SIGNIFICANT) -> NDArray[np.bool_]:
        """Where the cost is clear at this false discovery rate: of those found, 5 % may be chance."""
        return clear(self.interval_low, self.interval_high, self.q_value, level)

    def certain(self) -> NDArray[np.bool_]:
        """Where the cost differs from nothing by Holm's correction: not one of them is chance, at 95 %."""
        return clear(self.interval_low, self.interval_high, holm(self.p_value), SIGNIFICANT)

    def harmful(self) -> list[HeadId]:
        """Heads whose removal improves the metric significantly, the most harmful first."""
        return ordered(self.values, heads_where(self.significant() & (self.values < 0)), seed=0)

    @property
    def tied(self) -> int:
        """How many heads cost the same as another."""
        return tied(grid_values(self.values, self.base.kept))

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Ablation:
        """An ablation as ``to_dict`` wrote it; null is NaN again."""
        ablation: Ablation = restored(cls, record, np.shape(record["values"])[:2])
        return ablation

    def extra(self) -> dict[str, Any]:
        return self._over_draws() | {
            "harmful": self.harmful(),
            "significant": int(self.significant().sum()),
            "certain": int(self.certain().sum()),
            "tested": int(np.isfinite(self.p_value).sum()),
            "tied": self.tied,
        }

    def _over_draws(self) -> dict[str, Any]:
        """The interval of each cost over the draws alone."""
        if self.by_draw is None:
            return {}
        ends = np.full((2, *self.values.shape), np.nan)
        for layer, head in heads_where(np.isfinite(self.values)):
            ends[:, layer, head] = interval_of_mean(self.by_draw[:, layer, head])[1:]
        return {"draws_low": ends[0], "draws_high": ends[1]}


def ablate(
    evaluator: MaskEvaluator | Model,
    data: Dataset | None = None,
    *,
    base: MaskLike | None = None,
    metric: str | None = None,
    ablation: str | StandIn = ZERO,
    reference: Dataset | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Ablation:
    """The table of all single-head ablations of a model on data, on top of ``base`` (None = the full model).

    ``ablate(clf, data)`` makes an evaluator with the usual options; ``ablate(evaluator)`` takes one that you have.

    ``ablation`` and ``reference`` say what stands in the heads' place, as in ``headviz.evaluate``; by default what the
    evaluator already puts there.

    >>> import headviz
    >>> clf, data = headviz.load("demo", device="cpu"), headviz.load_task("demo", limit=20)
    >>> only_last_layer = clf.full_mask.without([(l, h) for l in range(11) for h in range(12)])
    >>> table = headviz.ablate(clf, data, base=only_last_layer)
    >>> table.values.shape, int((table.values == table.values).sum())
    ((12, 12), 12)
    """
    start = time.perf_counter()
    evaluator = evaluator_for(evaluator, data)
    if StandIn.of(ablation).kind != ZERO:
        from ..evaluation.dispatch import with_stand_in  # imports torch, which the first page must not wait for

        evaluator = with_stand_in(evaluator, ablation, reference, cancel=cancel)
    subject = subject_of(evaluator, metric)
    whole = evaluator.whole(base)
    heads = whole.kept
    masks = [whole.without([h]) for h in heads]
    tables, baselines = [], []
    draws = list(evaluator.each_draw())
    for place, draw in enumerate(draws):
        step_progress = part(progress, place, len(draws))
        answers, deltas = sweep(draw, masks, subject.metric, reference=whole, progress=step_progress, cancel=cancel)
        tables.append(cost_tables(whole, heads, deltas))
        baselines.append(answers.measure(answers.full, subject.metric))
    values, low, high, p = tables[0]
    by_draw: NDArray | None = None
    if len(tables) > 1:
        by_draw, *others = np.stack(tables, axis=1)  # [4, draws, L, H]
        values = by_draw.mean(axis=0)
        low, high, p = over_draws(*others)

    baseline = float(np.mean(baselines))
    seconds = time.perf_counter() - start
    return Ablation(subject, whole, baseline, values, low, high, p, benjamini_hochberg(p), seconds, by_draw)


def run(request: Request) -> Ablation:
    return ablate(request.evaluator, base=request.mask(), **arguments(request, "metric"))


def figure(result: Ablation) -> Figure:
    """The grid of costs, significant heads marked, next to the histogram against the baseline."""
    fig = make_subplots(1, 2, column_widths=[0.56, 0.44], horizontal_spacing=0.24)
    unclear = undecided(result.interval_low, result.interval_high)
    grid(fig, result.subject.scale * result.values, "cost, points", 1, 1, bar_x=0.435, losses=True, undecided=unclear)
    marked = np.argwhere(result.significant())
    fig.add_scatter(
        x=marked[:, 1],
        y=marked[:, 0],
        mode="markers",
        name=f"significant (q < {SIGNIFICANT:g})",
        marker={"symbol": "circle-open", "size": 11, "color": NEUTRAL, "line": {"width": 2}},
        hoverinfo="skip",
        row=1,
        col=1,
    )
    without = (result.baseline - result.values)[np.isfinite(result.values)]
    fig.add_histogram(
        x=without,
        marker={"color": MODELS[0]},
        name="heads",
        nbinsx=30,
        showlegend=False,
        row=1,
        col=2,
        hovertemplate="%{x}: %{y} heads<extra></extra>",
    )
    fig.add_vline(x=result.baseline, line={"dash": "dash", "color": NEUTRAL, "width": 2}, row=1, col=2)
    fig.add_annotation(
        x=result.baseline,
        y=1.0,
        yref="y2 domain",
        xref="x2",
        yanchor="bottom",
        showarrow=False,
        text=f"baseline {result.baseline:.3f}",
        font={"size": SMALL},
    )
    fig.update_xaxes(title=f"{result.subject.called} without one head", row=1, col=2)
    fig.update_yaxes(title="heads", row=1, col=2)
    return frame(fig, 110 + max(220, 26 * len(result.values)), top=34, least=240 + 34 * result.base.num_heads)


def view(result: Ablation) -> View:
    subject, scale = result.subject, result.subject.scale
    costs = scale * result.values
    sure, likely = (int((chosen & (result.values > 0)).sum()) for chosen in (result.certain(), result.significant()))
    hurts = len(result.harmful())
    harm = f"{hurts} {'does' if hurts == 1 else 'do'} harm" if hurts else "none is shown to do harm"
    spared = sum(within(-high, MARGIN / scale) for high in result.interval_high[np.isfinite(result.values)])
    return View(
        f"{sure} of {int(np.isfinite(result.p_value).sum())} heads cost{'s' if sure == 1 else ''} something for "
        f"certain (Holm), {likely} at q < {SIGNIFICANT:g}; for {spared} a loss of more than {MARGIN:g} points is "
        f"excluded; {harm} (q < {SIGNIFICANT:g}).",
        (
            Picture(
                "ablation_histogram",
                lambda: value_histogram(costs, result.significant(), f"cost, points of {subject.called}"),
                f"How many heads cost how much; the full model has {subject.called} {metric(result.baseline, scale)}.",
                COST,
            ),
            heads_table(
                "ablation_table",
                highest(result.values),
                "cost",
                costs,
                (scale * result.interval_low, scale * result.interval_high),
                {"p": result.p_value, "q": result.q_value},
                form="%.2f",
                caption="All heads, the costliest first; costs in points."
                f"{order_note(result.tied, len(result.base.kept))}",
                shortened=12,
                height=300,
            ),
            *_harmful(result),
        ),
        grid=cost_grid(result),
        about=subject.lines(result.baseline),
        rows=subject.rows,
    )


def _harmful(result: Ablation) -> list[Table]:
    """The heads that the model is better without, the most harmful first; no table without any."""
    heads = result.harmful()
    if not heads:
        return []
    caption = (
        "Heads that do harm: what the model gains without each, in points. They are the best of many, so expect less "
        f"on new data.{order_note(tied(result.values[h] for h in heads), len(heads))}"
    )
    scale = -result.subject.scale
    gains, ends = scale * result.values, (scale * result.interval_high, scale * result.interval_low)
    tests = {"p": result.p_value, "q": result.q_value}
    return [heads_table("harmful_table", heads, "gain", gains, ends, tests, form="%.2f", caption=caption)]


def cost_grid(result: Ablation) -> Grid:
    """The cost of every head in points, significant ones marked."""
    subject, scale = result.subject, result.subject.scale
    ends = zip(result.interval_low, result.interval_high, strict=True)
    return Grid(
        "ablation_grid",
        result.base,
        scale * result.values,
        f"cost: points of {subject.called} lost",
        f"Points of {subject.called} that the model loses without each head, on {subject.counted} of {subject.split}.",
        tuple(heads_where(result.significant())),
        f"significant (q < {SIGNIFICANT:g})",
        undecided(result.interval_low, result.interval_high),
        {
            "cost, points": [[points(float(v), scale) for v in row] for row in result.values],
            "95 %": [[interval(a, b, scale) for a, b in zip(low, high, strict=True)] for low, high in ends],
            "q": [[number(float(v)) for v in row] for row in result.q_value],
        },
        COST,
        PAIRED,
        losses=True,
    )
