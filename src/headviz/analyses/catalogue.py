"""The analyses by name. Each describes itself in its module; plugins add theirs to the table."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import (
    ablation,
    all_but_one,
    by_slice,
    correlation,
    cross_dataset,
    dynamics,
    harmful,
    pruning_curve,
    redundant,
    scatter,
    speed,
    stacks,
)
from .analysis import Analysis

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_MODULES = (
    ablation,
    by_slice,
    all_but_one,
    cross_dataset,
    pruning_curve,
    stacks,
    speed,
    dynamics,
    harmful,
    redundant,
    correlation,
    scatter,
)
ANALYSES: dict[str, Analysis] = {module.ANALYSIS.name: module.ANALYSIS for module in _MODULES}


def figure(found: Any) -> Figure:
    """The figure of any result, as the module of its type draws it."""
    drawn: Figure = import_module(type(found).__module__).ANALYSIS.figure(found)
    return drawn
