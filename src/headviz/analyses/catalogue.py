"""The analyses by name. Each describes itself in its module; a plugin adds its own with ``add``."""

from __future__ import annotations

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

ANALYSES: dict[str, Analysis] = {}


def add(analysis: Analysis) -> None:
    """Put one more analysis into the catalogue; a name that is taken is refused."""
    if analysis.name in ANALYSES:
        raise OptionError(f"There is already an analysis '{analysis.name}'. Give yours another name.")
    ANALYSES[analysis.name] = analysis


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
