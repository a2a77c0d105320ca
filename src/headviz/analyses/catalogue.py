"""The analyses by name, in the order of the page. Each describes itself in its module; plugins add theirs."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .. import plugins
from .analysis import Analysis

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from ..answers.answer import Answer

_MODULES = (
    "ablation",
    "by_slice",
    "all_but_one",
    "cross_dataset",
    "pruning_curve",
    "speed",
    "dynamics",
    "redundant",
    "interactions",
    "grading",
    "roles",
    "correlation",
    "scatter",
)
_FOUND = [import_module(f".{name}", __package__).ANALYSIS for name in _MODULES]
ANALYSES: Mapping[str, Analysis] = plugins.Entries("analyses", _FOUND)


def analyses_for(answer: Answer) -> list[Analysis]:
    """The analyses that are made for models with this answer."""
    return [analysis for analysis in ANALYSES.values() if analysis.fits(answer)]


def made_by(found: Any) -> Analysis | None:
    """The analysis whose ``run`` returns this kind of result; None for parts of results and for all else."""
    kind = type(found)
    returned = {name: a.run.__annotations__.get("return") for name, a in ANALYSES.items()}
    return next((ANALYSES[name] for name, told in returned.items() if told in (kind, kind.__name__)), None)


def figure(found: Any) -> Figure:
    """The figure of any result, as its analysis draws it."""
    analysis = made_by(found)
    assert analysis is not None
    drawn: Figure = analysis.figure(found)
    return drawn
