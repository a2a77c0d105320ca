"""Pre-trained against fine-tuned: how attention and attribution correlate, head by head. [T §6.5, Fig. 6.1]

A pre-trained model has no trained classifier, so its F comes from a fresh head, and its grid is the mean over
several of them; or from the masked-language model's logit of the true token. ``source`` says which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import OptionError
from ..progress import Cancel, Progress, tracked
from ..results import Result

if TYPE_CHECKING:
    from ..models.classifier import Classifier

Grid = NDArray[np.float64]
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
    shares = tuple(
        Band(low, high, in_band(mean, low, high), in_band(tuned, low, high)) for low, high in bands
    )
    how = source or f"a fresh classification head, mean over {len(pretrained)} seeds"
    return CorrelationGrids(score, data, n, how, mean, spread, tuned, tuned - mean, shares)


def in_band(grid: Grid, low: float, high: float) -> float:
    """Share of the measured heads with low ≤ value < high; the band that ends at 1 includes it."""
    values = grid[np.isfinite(grid)]
    if values.size == 0:
        return float("nan")
    inside = (values >= low) & ((values < high) | ((high >= 1.0) & (values == high)))
    return float(inside.mean())
