"""Attention against attribution of one head on one example, one point per connection. [T Fig. 6.5]"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ..errors import MaskError, OptionError, unknown_choice
from ..heads import HeadId
from ..results import Result

if TYPE_CHECKING:
    from ..attribution.maps import Maps

COEFFICIENTS = {"spearman": stats.spearmanr, "kendall": stats.kendalltau, "pearson": stats.pearsonr}


@dataclass(frozen=True, eq=False)
class Scatter(Result):
    """Points in reading order of the map: connection (query, key) is point query·T + key."""

    head: HeadId
    tokens: tuple[str, ...]
    target: str
    method: str
    attention: NDArray[np.float64]  # [T²]
    attribution: NDArray[np.float64]  # [T²]
    coefficient: str
    value: float  # NaN where one of the two is constant
    error: float  # estimated error of the attribution, relative


def scatter(maps: Maps, head: tuple[int, int], coefficient: str = "spearman") -> Scatter:
    """Read one head off the maps of one example; no score averaged over examples comes from here."""
    if coefficient not in COEFFICIENTS:
        raise OptionError(unknown_choice("coefficient", coefficient, COEFFICIENTS))
    layers, heads = maps.attention.shape[:2]
    where = HeadId(*head)
    if not (0 <= where.layer < layers and 0 <= where.head < heads):
        raise MaskError(
            f"Head {where.dotted} does not exist: layers are 0 to {layers - 1}, heads 0 to {heads - 1}, from zero."
        )
    x = maps.attention[where].astype(np.float64).ravel()
    y = maps.attribution[where].astype(np.float64).ravel()
    if np.isnan(x).any():
        raise MaskError(f"Head {where.dotted} was removed from this model, so it has no attention map.")
    constant = np.ptp(x) == 0 or np.ptp(y) == 0
    value = float("nan") if constant else float(COEFFICIENTS[coefficient](x, y).statistic)
    return Scatter(where, maps.tokens, maps.target_label, maps.method, x, y, coefficient, value, maps.error)
