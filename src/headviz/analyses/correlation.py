"""Pre-trained against fine-tuned: how attention and attribution correlate, head by head. [T §6.5, Fig. 6.1]

A pre-trained model has no trained classifier, so its F comes from a fresh head, and its grid is the mean over
several of them; or from the masked-language model's logit of the true token. ``source`` says which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import OptionError, unknown_choice
from ..progress import Cancel, Progress, tracked
from ..results import Result
from . import published
from .analysis import CLASSES, SAMPLES, SEED, THESIS, Analysis, Option, Picture, Table, View
from .common import check_score

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from ..models.classifier import Classifier
    from .given import Given

Grid = NDArray[np.float64]
FRESH, MASKED = "fresh-head", "masked-lm"  # where a pre-trained model's F comes from
STATISTICS = ("spearman", "kendall", "pearson")
BANDS = ((-1.0, 0.0), (0.0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1.0))


@dataclass(frozen=True)
class Band(Result):
    """Share of the measured heads with low ≤ correlation < high (the last band includes 1)."""

    low: float
    high: float
    pretrained: float
    fine_tuned: float


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


def correlation_grids(
    fine_tuned: Classifier,
    pretrained: Sequence[Classifier],
    measure: Callable[[Classifier], NDArray],
    *,
    score: str,
    data: str,
    n: int,
    source: str | None = None,
    bands: Sequence[tuple[float, float]] = BANDS,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> CorrelationGrids:
    """``measure`` gives a model's L×H table; ``pretrained`` are the same encoder under different fresh heads."""
    if not pretrained:
        raise OptionError("The pre-trained model is missing. Name the model that was fine-tuned.")
    models = [fine_tuned, *pretrained]
    for model in pretrained:
        if (model.num_layers, model.num_heads) != (fine_tuned.num_layers, fine_tuned.num_heads):
            raise OptionError(
                f"'{model.name}' has {model.num_layers}×{model.num_heads} heads and '{fine_tuned.name}' "
                f"{fine_tuned.num_layers}×{fine_tuned.num_heads}: they are not the same model before and after."
            )
    grids = [np.asarray(measure(model), dtype=float) for model in tracked(models, progress, cancel)]
    tuned, fresh = grids[0], np.stack(grids[1:])
    counted = np.isfinite(fresh).sum(axis=0)
    total = np.nansum(fresh, axis=0)
    mean = np.divide(total, counted, out=np.full_like(total, np.nan), where=counted > 0)
    squares = np.nansum((fresh - mean) ** 2, axis=0)
    spread = np.sqrt(np.divide(squares, counted - 1, out=np.full_like(total, np.nan), where=counted > 1))
    shares = tuple(Band(low, high, in_band(mean, low, high), in_band(tuned, low, high)) for low, high in bands)
    how = source or f"a fresh classification head, mean over {len(pretrained)} seeds"
    return CorrelationGrids(score, data, n, how, mean, spread, tuned, tuned - mean, shares)


def in_band(grid: Grid, low: float, high: float) -> float:
    """Share of the measured heads with low ≤ value < high; the band that ends at 1 includes it."""
    values = grid[np.isfinite(grid)]
    if values.size == 0:
        return float("nan")
    inside = (values >= low) & ((values < high) | ((high >= 1.0) & (values == high)))
    return float(inside.mean())


def run(given: Given) -> CorrelationGrids:
    score, source = given.option("score"), given.option("source")
    check_score(score)
    if source not in (FRESH, MASKED):
        raise OptionError(unknown_choice("source", source, (FRESH, MASKED)))
    if source == MASKED and score not in (f"conductance-{s}" for s in STATISTICS):
        raise OptionError(f"--source masked-lm is for correlations: conductance-{', conductance-'.join(STATISTICS)}.")
    clf, data, base = given.clf, given.sample(), given.option("base")
    known: dict[str, Any] = {
        "score": score,
        "data": f"{data.task.name} {data.split}",
        "n": len(data),
        "progress": given.progress,
        "cancel": given.cancel,
    }
    if source == FRESH:
        fresh = [given.load(base, fresh_labels=clf.labels, seed=s) for s in range(given.option("heads"))]
        return correlation_grids(clf, fresh, lambda model: given.score(model, score, data), **known)
    from .masked_place import SOURCE, masked_correlations

    def measure(model: Classifier) -> NDArray:
        if model is clf:
            table: NDArray = given.score(model, score, data)
            return table
        statistic = score.removeprefix("conductance-")
        return masked_correlations(model, data, statistic, seed=given.option("seed"), progress=given.progress)

    return correlation_grids(clf, [given.load(base, masked_lm=True)], measure, source=SOURCE, **known)


def figure(found: CorrelationGrids) -> Figure:
    """Pre-trained, fine-tuned and their difference on one scale."""
    from plotly.subplots import make_subplots

    from ..charts.style import frame, grid

    grids = {"pre-trained": found.pretrained, "fine-tuned": found.fine_tuned, "difference": found.difference}
    fig = make_subplots(1, 3, subplot_titles=list(grids), horizontal_spacing=0.05)
    every = [float(v) for table in grids.values() for v in table.ravel()]
    for column, (name, table) in enumerate(grids.items(), 1):
        grid(fig, table, name, 1, column, values=every, show_bar=column == 3)
        fig.update_yaxes(title="layer" if column == 1 else None, row=1, col=column)
    return frame(fig, 110 + max(200, 22 * len(found.fine_tuned)), top=34)


def view(found: CorrelationGrids) -> View:
    known = np.isfinite(found.difference)
    higher = int((found.difference[known] > 0).sum())
    shares = ("pre-trained, %", "fine-tuned, %")
    return View(
        f"Fine-tuning raises {found.score} in {higher} of {int(known.sum())} heads.",
        (
            Picture(
                "correlation_grids", lambda: figure(found), f"{found.score} of every head; pre-trained: {found.source}."
            ),
            Table(
                "correlation_bands",
                ("correlation", *shares),
                [[f"{b.low:g} to {b.high:g}", 100 * b.pretrained, 100 * b.fine_tuned] for b in found.bands],
                "Share of the measured heads in each band.",
                dict.fromkeys(shares, "%.1f"),
            ),
        ),
        about=(("data", f"{found.data}, {found.n:,} examples"), ("pre-trained", found.source)),
    )


ANALYSIS = Analysis(
    "correlation",
    "Before and after fine-tuning",
    "Where does fine-tuning make a head's attention count?",
    "pre-trained against fine-tuned correlation of every head",
    f"{THESIS}, Figure 6.1, §6.5.2",
    run,
    figure,
    view,
    options=(
        Option("base", None, "the pre-trained model it was made from", metavar="BASE", required=True),
        Option("score", "conductance-spearman", "a correlation score", metavar="NAME"),
        Option("source", FRESH, f"pre-trained model's F: {FRESH} or {MASKED}", metavar="F"),
        Option("heads", 5, "fresh heads to average", "count", "N"),
        SAMPLES,
        SEED,
    ),
    published=published.bands,
    kinds=(CLASSES,),
    page="heads",
)
