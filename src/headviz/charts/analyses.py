"""Analyses to plotly figures: one figure per result type. No streamlit.

Published figures are drawn hollow and named as such; ours are solid. Text and background are the page's.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from ..analyses.ablation import Ablation
from ..analyses.all_but_one import AllButOne
from ..analyses.by_slice import BySlice
from ..analyses.correlation import CorrelationGrids
from ..analyses.cross_dataset import CrossDataset
from ..analyses.dynamics import Dynamics
from ..analyses.harmful import Harmful
from ..analyses.pruning_curve import PruningCurves
from ..analyses.redundant import Redundant
from ..analyses.scatter import Scatter
from ..analyses.speed import Speed
from . import curves, heads

DRAW: dict[type, Callable[[Any], go.Figure]] = {
    Ablation: heads.ablation,
    BySlice: heads.by_slice,
    AllButOne: curves.all_but_one,
    CrossDataset: heads.cross_dataset,
    PruningCurves: curves.pruning_curves,
    Speed: curves.speed,
    Dynamics: curves.dynamics,
    CorrelationGrids: heads.correlation_grids,
    Scatter: heads.scatter,
    Harmful: heads.harmful,
    Redundant: heads.redundant,
}


def figure(result: Any) -> go.Figure:
    """The figure of any analysis."""
    return DRAW[type(result)](result)


def write_html(fig: go.Figure, path: str | Path, title: str = "headviz") -> Path:
    """A page of its own, with plotly inside: it opens without a network and has no cloud button."""
    place = Path(path)
    fig.update_layout(title={"text": title, "font": {"size": 15}}, margin_t=64)
    fig.write_html(place, include_plotlyjs=True, config={"showSendToCloud": False, "displaylogo": False})
    return place
