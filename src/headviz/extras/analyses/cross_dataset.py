"""The same ablation on two data sets: are the important heads the same ones? [M §3.4, Fig. 2]"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from ...analyses.ablation import Ablation, ablate
from ...analyses.analysis import COST, arguments
from ...analyses.common import heads_where, require_evaluator
from ...display.figures.style import FAINT, MODELS, frame, note
from ...display.numbers import number
from ...display.table import Picture, Table, View, columns
from ...errors import OptionError
from ...heads import head_name
from ...progress import Cancel, Progress, after
from ...results import Result
from ...statistics.resampling import pearson, ranks, spearman
from ...statistics.significance import LEVEL

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from plotly.graph_objects import Figure

    from ...analyses.analysis import Request
    from ...evaluation.mask_evaluator import MaskEvaluator

LEAST = 3  # heads that a correlation is of
RESAMPLES = 2000


@dataclass(frozen=True, eq=False)
class CrossDataset(Result):
    """Two ablation tables and how well the heads' costs agree. Correlations are NaN where one table is constant.

    A few heads cost much more than the rest, so Pearson's r depends on them and has no interval here: with such costs
    Fisher's covers 37 %, a bootstrap's 67 %, that of the rank correlation 94 % (``bench/coverage_of_costs.py``).
    """

    first: Ablation
    second: Ablation
    heads: int  # measured on both
    spearman: float
    interval_low: float  # of the rank correlation, by resampling heads
    interval_high: float
    pearson: float


def cross_dataset(
    first: MaskEvaluator,
    second: MaskEvaluator,
    *,
    metric: str | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> CrossDataset:
    """Ablate one model on both data sets.

    >>> import headviz
    >>> clf, data = headviz.load("demo", device="cpu"), headviz.load_task("demo", limit=20)
    >>> small = headviz.prune(clf, headviz.HeadMask.only(12, 12, ["0.0", "0.1", "11.0"]))
    >>> other = headviz.load_task("demo", split="unseen", limit=20)
    >>> result = headviz.cross_dataset(headviz.Evaluator(small, data), headviz.Evaluator(small, other))
    >>> result.heads
    3
    """
    for evaluator in (first, second):
        require_evaluator(evaluator)
    if first.clf.digest != second.clf.digest:
        raise OptionError("Cross-dataset ablation compares two data sets under one model, not two models.")
    if first.data == second.data:
        raise OptionError("Both data sets are the same. Choose two, such as mnli and mnli-mm.")
    heads = len(first.clf.present.kept)
    total = 2 * (heads + 1)
    a = ablate(first, metric=metric, progress=after(progress, 0, total), cancel=cancel)
    b = ablate(second, metric=metric, progress=after(progress, heads + 1, total), cancel=cancel)
    return relate(a, b)


def relate(first: Ablation, second: Ablation) -> CrossDataset:
    """The same from two tables that are there already."""
    measured = np.isfinite(first.values) & np.isfinite(second.values)
    x, y = first.values[measured], second.values[measured]
    if len(x) < LEAST or np.ptp(x) == 0 or np.ptp(y) == 0:
        return CrossDataset(first, second, len(x), np.nan, np.nan, np.nan, np.nan)
    return CrossDataset(first, second, len(x), spearman(x, y), *rank_interval(x, y), pearson(x, y))


def rank_interval(x: NDArray, y: NDArray) -> tuple[float, float]:
    """Of the rank correlation of two tables of heads, by resampling heads. NaN for fewer than four."""
    if len(x) < LEAST + 1:
        return np.nan, np.nan
    drawn = np.random.default_rng(0).integers(0, len(x), (RESAMPLES, len(x)))
    x, y = (r - r.mean(axis=1, keepdims=True) for r in (ranks(values[drawn]) for values in (x, y)))
    with np.errstate(invalid="ignore"):  # a draw in which all heads cost the same has no correlation
        correlations = (x * y).sum(axis=1) / np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
    low, high = np.nanquantile(correlations, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def run(request: Request) -> CrossDataset:
    return cross_dataset(request.evaluator, request.on(request.second()), **arguments(request, "metric"))


def figure(result: CrossDataset) -> Figure:
    """One point per head, cost on one data set against cost on the other."""
    a, b = result.first, result.second
    measured = np.isfinite(a.values) & np.isfinite(b.values)
    x, y = (t.subject.scale * t.values[measured] for t in (a, b))
    fig = go.Figure(
        go.Scatter(
            x=x,
            y=y,
            mode="markers",
            showlegend=False,
            name="heads",
            text=[head_name(h, a.subject.rows) for h in heads_where(measured)],
            marker={"size": 8, "color": MODELS[0], "opacity": 0.75},
            hovertemplate="%{text}<br>%{x:+.2f} points, %{y:+.2f} points<extra></extra>",
        )
    )
    ends = [float(min(x.min(), y.min())), float(max(x.max(), y.max()))] if len(x) else [0.0, 1.0]
    fig.add_scatter(
        x=ends, y=ends, mode="lines", line={"color": FAINT, "dash": "dot"}, hoverinfo="skip", showlegend=False
    )
    note(fig, f"{agreement(result)}, {result.heads} heads")
    fig.update_xaxes(title=f"cost on {a.subject.data}, points", zeroline=True)
    fig.update_yaxes(title=f"cost on {b.subject.data}, points", zeroline=True)
    return frame(fig, 400, top=34)


def why_none(result: CrossDataset) -> str:
    """Why the costs have no correlation."""
    if result.heads < LEAST:
        return f"fewer than {LEAST} heads have a known cost on both data sets"
    return "on one of the data sets all heads cost the same"


def agreement(result: CrossDataset) -> str:
    if not np.isfinite(result.spearman):
        return f"no correlation: {why_none(result)}"
    interval = (
        f" [{number(result.interval_low)}, {number(result.interval_high)}]" if np.isfinite(result.interval_low) else ""
    )
    return f"rank correlation {number(result.spearman)}{interval}, Pearson's r {number(result.pearson)}"


def sentence(result: CrossDataset) -> str:
    if not np.isfinite(result.spearman):
        return f"Whether the costs agree is unknown: {why_none(result)}."
    return f"Costs on both data sets: {agreement(result)}."


def view(result: CrossDataset) -> View:
    tables = (result.first, result.second)
    names = [t.subject.data for t in tables]
    rows: list[list[Any]] = [
        [head, *(t.subject.scale * float(t.values[head]) for t in tables)]
        for head in heads_where(np.isfinite(result.first.values))
    ]
    rows.sort(key=lambda r: -r[1])
    return View(
        sentence(result),
        (
            Picture(
                "cross_scatter",
                lambda: figure(result),
                f"Each point is one head: what it costs on {names[0]} and on {names[1]}.",
                COST,
                "The interval is from resampling heads. Pearson's r has none: it depends on few heads.",
            ),
            Table(
                "cross_table",
                ("head", *columns("%.2f", *names)),
                rows,
                f"The cost of each head on both, in points, the costliest on {names[0]} first.",
                shortened=12,
                height=300,
            ),
        ),
        about=tuple((f"data {i}", f"{t.subject.data}, {t.subject.n:,} examples") for i, t in enumerate(tables, 1)),
        rows=result.first.subject.rows,
    )
