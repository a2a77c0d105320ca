"""Attention against attribution of one head on one example, one point per connection. [T Fig. 6.5]"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy
from numpy.typing import NDArray

from ...attribution.conductance import conductance
from ...display.figures import maps
from ...display.figures.style import note
from ...display.numbers import number, signed
from ...display.table import Column, Picture, Table, View
from ...errors import MaskError, OptionError, unknown_choice
from ...heads import HeadId
from ...results import Result

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from ...analyses.analysis import Request
    from ...attribution.maps import Maps

COEFFICIENTS = {"spearman": "spearmanr", "kendall": "kendalltau", "pearson": "pearsonr"}  # their names in scipy


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
    value = float("nan") if constant else float(getattr(scipy.stats, COEFFICIENTS[coefficient])(x, y).statistic)
    return Scatter(where, maps.tokens, maps.target_label, maps.method, x, y, coefficient, value, maps.error)


def run(request: Request) -> Scatter:
    head = HeadId.parse(request.option("head"))
    maps = conductance(
        request.clf, request.option("text"), request.option("text-pair"), target=request.option("target")
    )
    return scatter(maps, head, request.option("coefficient"))


def figure(result: Scatter) -> Figure:
    """Every connection of one head: attention across, attribution up."""
    pairs = [f"{q} → {k}" for q in result.tokens for k in result.tokens]
    value = "undefined, one of the two is constant" if np.isnan(result.value) else f"{result.value:+.3f}"
    fig = maps.scatter(
        result.attention, result.attribution, pairs, "attention", f"{result.method} for “{result.target}”"
    )
    note(fig, f"{result.head}: {result.coefficient} {value}")
    return fig.update_layout(margin_t=34)


def view(result: Scatter) -> View:
    order = np.argsort(-np.abs(result.attribution), kind="stable")
    tokens, size = result.tokens, len(result.tokens)
    rows = [
        [f"{tokens[i // size]} → {tokens[i % size]}", float(result.attention[i]), float(result.attribution[i])]
        for i in order
    ]
    return View(
        f"{result.coefficient} of attention and attribution in {result.head}: {signed(result.value)}.",
        (
            Picture("scatter", lambda: figure(result), f"One point per connection; explained: {result.target}."),
            Table(
                "scatter_table",
                ("connection", Column("attention", "%.4f"), result.method),
                rows,
                "The strongest attribution first.",
                shortened=12,
                height=300,
            ),
        ),
        about=(
            ("explained", result.target),
            ("connections", str(len(result.attention))),
            ("relative error", number(result.error)),
        ),
    )
