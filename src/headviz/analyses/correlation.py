"""Pre-trained against fine-tuned: how attention and attribution correlate, head by head. [T §6.5, Fig. 6.1]

A pre-trained model has no trained classifier, so its F comes from several fresh heads; or from the masked-language
model's logit of the true token. ``source`` says which. Random heads explain random answers, so the mean of their
signed correlations is near zero by construction. Therefore |ρ| stands next to it, taken under each head before the
mean, and the levels of every fresh head. What fine-tuning does to the level is stated only with an interval over
several fine-tuning seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from ..display.figures.style import frame, grid
from ..display.numbers import number
from ..display.table import Picture, Table, View, columns
from ..errors import OptionError, unknown_choice
from ..evaluation.verdict import verdict
from ..models.network import require_model
from ..progress import Cancel, Progress, tracked
from ..results import Result
from ..scores.catalogue import SCORES
from ..scores.map_values import NAMES
from ..scores.masked_words import masked_rows, masked_source
from ..scores.statistics import mean_of
from ..statistics.intervals import interval_of_mean
from .common import check_score

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from ..models.classifier import Classifier
    from .analysis import Request

Grid = NDArray[np.float64]
FRESH, MASKED = "fresh-head", "masked-lm"  # where a pre-trained model's F comes from
BANDS = ((-1.0, 0.0), (0.0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1.0))


@dataclass(frozen=True)
class Band(Result):
    """Share of the measured heads with low ≤ correlation < high (the last band includes 1)."""

    low: float
    high: float
    pretrained: float
    fine_tuned: float


@dataclass(frozen=True)
class Level(Result):
    """Means over the heads of one model's grid."""

    model: str
    signed: float
    absolute: float  # of |ρ|


@dataclass(frozen=True)
class Change(Result):
    """Mean |ρ| after fine-tuning minus before, with its 95 % interval over the fine-tuning seeds (Student's t)."""

    seeds: int
    difference: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class CorrelationGrids(Result):
    """L×H grids; NaN where a head is not there or has no correlation."""

    score: str
    data: str
    n: int
    source: str  # where the pre-trained model's F comes from
    pretrained: Grid
    spread: Grid  # standard deviation over the fresh heads; NaN with one
    fine_tuned: Grid
    difference: Grid  # fine-tuned - pre-trained
    bands: tuple[Band, ...]
    absolute: Grid  # mean of |ρ| over the fresh heads
    before: tuple[Level, ...]  # of each fresh head
    after: tuple[Level, ...]  # of each fine-tuning seed
    change: Change | None  # of the level of |ρ|; None with fewer than two fine-tuning seeds


def correlation_grids(
    fine_tuned: Classifier,
    pretrained: Sequence[Classifier],
    measure: Callable[[Classifier], NDArray],
    *,
    score: str,
    data: str,
    n: int,
    source: str | None = None,
    others: Sequence[Classifier] = (),
    bands: Sequence[tuple[float, float]] = BANDS,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> CorrelationGrids:
    """``measure`` gives a model's L×H table; ``pretrained`` are the same encoder under different fresh heads.

    ``others`` are the same model fine-tuned with other seeds.

    >>> import headviz
    >>> clf, data = headviz.load("demo", device="cpu"), headviz.load_task("demo", limit=4)
    >>> before = headviz.load("demo-pretrained", device="cpu", fresh_labels=clf.labels)
    >>> table = lambda model: headviz.score_heads(model, data, steps=2).values
    >>> grids = headviz.correlation_grids(clf, [before], table, score="conductance-spearman", data="demo", n=4)
    >>> grids.difference.shape
    (12, 12)
    """
    if not pretrained:
        raise OptionError("The pre-trained model is missing. Name the model that was fine-tuned.")
    models = [fine_tuned, *pretrained, *others]
    for model in models:
        require_model(model)
    for model in (*pretrained, *others):
        if (model.num_layers, model.num_heads) != (fine_tuned.num_layers, fine_tuned.num_heads):
            raise OptionError(
                f"'{model.name}' has {model.num_layers}×{model.num_heads} heads and '{fine_tuned.name}' "
                f"{fine_tuned.num_layers}×{fine_tuned.num_heads}: they are not the same model before and after."
            )
    grids = [np.asarray(measure(model), dtype=float) for model in tracked(models, progress, cancel)]
    tuned, fresh = grids[0], np.stack(grids[1 : 1 + len(pretrained)])
    mean, absolute = mean_of(fresh), mean_of(np.abs(fresh))
    counted = np.isfinite(fresh).sum(axis=0)
    squares = np.nansum((fresh - mean) ** 2, axis=0)
    spread = np.sqrt(np.divide(squares, counted - 1, out=np.full(mean.shape, np.nan), where=counted > 1))
    # each fresh head's own share: the mean grid has hardly a value off zero
    shares = tuple(
        Band(low, high, float(np.mean([in_band(g, low, high) for g in fresh])), in_band(tuned, low, high))
        for low, high in bands
    )
    name = "masked-language model" if len(pretrained) == 1 and source else "fresh head {}"
    before = tuple(_level(name.format(i), g) for i, g in enumerate(fresh))
    after = tuple(_level(f"seed {i}", g) for i, g in enumerate([tuned, *grids[1 + len(pretrained) :]]))
    tables = (mean, spread, tuned, tuned - mean)
    change = _change(before, after)
    source = source or f"a fresh classification head, mean over {len(pretrained)} seeds"
    return CorrelationGrids(score, data, n, source, *tables, shares, absolute, before, after, change)


def _level(model: str, grid: Grid) -> Level:
    values = grid[np.isfinite(grid)]
    if not values.size:
        return Level(model, float("nan"), float("nan"))
    return Level(model, float(values.mean()), float(np.abs(values).mean()))


def _change(before: Sequence[Level], after: Sequence[Level]) -> Change | None:
    if len(after) < 2:
        return None
    differences = np.array([a.absolute for a in after]) - np.mean([b.absolute for b in before])
    return Change(len(after), *interval_of_mean(differences))


def in_band(grid: Grid, low: float, high: float) -> float:
    """Share of the measured heads with low ≤ value < high; the band that ends at 1 includes it."""
    values = grid[np.isfinite(grid)]
    if not values.size:
        return float("nan")
    inside = (values >= low) & ((values < high) | ((high >= 1.0) & (values == high)))
    return float(inside.mean())


def run(request: Request) -> CorrelationGrids:
    score, source = request.option("score"), request.option("source")
    check_score(score)
    if source not in (FRESH, MASKED):
        raise OptionError(unknown_choice("source", source, (FRESH, MASKED)))
    if source == MASKED and score not in (f"conductance-{s}" for s in NAMES):
        raise OptionError(f"The source {MASKED} is for correlations: conductance-{', conductance-'.join(NAMES)}.")
    most = request.option("tokens") or None
    clf, data, base = replace(request.clf, cut_at=most), request.sample(), request.option("base")
    tuned = [place.strip() for place in request.option("tuned").split(",") if place.strip()]
    settings: dict[str, Any] = {
        "score": score,
        "data": f"{data.task.name} {data.split}",
        "n": len(data),
        "others": [replace(request.load(place), cut_at=most) for place in tuned],
        "progress": request.progress,
        "cancel": request.cancel,
    }
    if source == FRESH:
        heads = range(request.option("heads"))
        fresh = [replace(request.load(base, fresh_labels=clf.labels, seed=s), cut_at=most) for s in heads]
        return correlation_grids(clf, fresh, lambda model: request.score(model, score, data), **settings)

    copies, mlm = request.option("copies"), replace(request.load(base, masked_lm=True), cut_at=most)

    def measure(model: Classifier) -> NDArray:
        if model is not mlm:
            table: NDArray = request.score(model, score, data)
            return table
        statistic = SCORES[score].correlation
        seed = request.option("seed")
        return mean_of(masked_rows(model, data, statistic, copies=copies, seed=seed, progress=request.progress))

    return correlation_grids(clf, [mlm], measure, source=masked_source(copies), **settings)


def figure(result: CorrelationGrids) -> Figure:
    """Signed: pre-trained, fine-tuned and their difference. Below: |ρ|, before and after. One scale each."""
    after = np.abs(result.fine_tuned)
    rows = (
        {"pre-trained": result.pretrained, "fine-tuned": result.fine_tuned, "difference": result.difference},
        {"pre-trained, |ρ|": result.absolute, "fine-tuned, |ρ|": after, "difference of |ρ|": after - result.absolute},
    )
    titles = [name for grids in rows for name in grids]
    fig = make_subplots(2, 3, subplot_titles=titles, horizontal_spacing=0.05, vertical_spacing=0.16)
    for row, grids in enumerate(rows, 1):
        every = [float(v) for table in grids.values() for v in table.ravel()]
        for column, (name, table) in enumerate(grids.items(), 1):
            grid(fig, table, name, row, column, values=every, show_bar=False)
            fig.update_yaxes(title="layer" if column == 1 else None, row=row, col=column)
    return frame(fig, 140 + 2 * max(200, 22 * len(result.fine_tuned)), top=34, least=120 + 54 * after.shape[1])


def finding(result: CorrelationGrids) -> str:
    """The levels of |ρ|; which way fine-tuning moves them only with an interval over its seeds."""
    before, after = [x.absolute for x in result.before], [x.absolute for x in result.after]
    spread = f" ({min(before):.3f} to {max(before):.3f} over {len(before)} fresh heads)" if len(before) > 1 else ""
    sentence = f"Mean |ρ| is {np.mean(before):.3f} pre-trained{spread} and {np.mean(after):.3f} fine-tuned."
    change = result.change
    if change is None:
        return f"{sentence} Whether fine-tuning raises or lowers it takes several fine-tuning seeds (--tuned A,B,…)."
    ends = f"{number(change.difference)} [{number(change.low)}, {number(change.high)}] over {change.seeds} seeds"
    verb = {"gain": "raises", "loss": "lowers"}.get(verdict(change.low, change.high))
    if verb is None:
        return f"{sentence} Change {ends}: the seeds do not tell whether fine-tuning raises or lowers it."
    return f"{sentence} Fine-tuning {verb} it: {ends}."


def view(result: CorrelationGrids) -> View:
    shares = ("pre-trained, %", "fine-tuned, %")
    levels_by_kind = (("pre-trained", result.before), ("fine-tuned", result.after))
    return View(
        finding(result),
        (
            Picture(
                "correlation_grids",
                lambda: figure(result),
                f"{result.score} of every head; pre-trained: {result.source}.",
            ),
            Table(
                "correlation_bands",
                ("correlation", *columns("%.1f", *shares)),
                [[f"{b.low:g} to {b.high:g}", 100 * b.pretrained, 100 * b.fine_tuned] for b in result.bands],
                "Share of the measured heads in each band; pre-trained, the mean of each fresh head's own share.",
            ),
            Table(
                "correlation_levels",
                ("model", *columns("%.3f", "mean ρ", "mean |ρ|")),
                [[f"{kind}, {x.model}", x.signed, x.absolute] for kind, levels in levels_by_kind for x in levels],
                "Means over the heads, of each model on its own.",
            ),
        ),
        about=(("data", f"{result.data}, {result.n:,} examples"), ("pre-trained", result.source)),
    )
