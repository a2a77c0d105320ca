"""The same ablation on two data sets: are the important heads the same ones? [M §3.4, Fig. 2]"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from ..errors import OptionError
from ..evaluation.significance import LEVEL
from ..progress import Cancel, Progress, after
from ..results import Result
from .ablation import Ablation, ablate

if TYPE_CHECKING:
    from ..evaluation.evaluator import Evaluator


@dataclass(frozen=True, eq=False)
class CrossDataset(Result):
    """Two ablation tables and how well the heads' costs agree. r is NaN where one table is constant."""

    first: Ablation
    second: Ablation
    heads: int  # measured on both
    pearson: float
    p_value: float
    interval_low: float  # of r, by Fisher's transform; heads are taken as independent
    interval_high: float


def cross_dataset(
    first: Evaluator,
    second: Evaluator,
    *,
    metric: str | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> CrossDataset:
    """Ablate one model on both data sets."""
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
    both = np.isfinite(first.values) & np.isfinite(second.values)
    x, y = first.values[both], second.values[both]
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return CrossDataset(first, second, len(x), np.nan, np.nan, np.nan, np.nan)
    found = stats.pearsonr(x, y)
    if len(x) < 4:
        low = high = np.nan
    else:
        low, high = found.confidence_interval(LEVEL)
    return CrossDataset(
        first, second, len(x), float(found.statistic), float(found.pvalue), float(low), float(high)
    )
