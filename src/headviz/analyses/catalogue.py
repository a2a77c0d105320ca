"""The analyses by name. Each describes itself in its module; a plugin adds its own with ``add``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import OptionError
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

ANALYSES: dict[str, Analysis] = {}


def add(analysis: Analysis) -> None:
    """Put one more analysis into the catalogue; a name that is taken is refused."""
    if analysis.name in ANALYSES:
        raise OptionError(f"There is already an analysis '{analysis.name}'. Give yours another name.")
    ANALYSES[analysis.name] = analysis


def figure(found: Any) -> Figure:
    """The figure of any result, as the module of its type draws it."""
    drawn: Figure = import_module(type(found).__module__).ANALYSIS.figure(found)
    return drawn


for _module in (
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
):
    add(_module.ANALYSIS)
