"""An analysis as code: the parts of ``recipes.structure`` that compute its result again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ..recipes.structure import Call, Get, Import, Let, Name

EVALUATOR = Name("evaluator")


@dataclass(frozen=True)
class Recipe:
    """Lines that end with ``found``. They may use ``clf``, ``data``, ``mask`` and what ``uses`` names."""

    lines: tuple[Any, ...]
    uses: tuple[Literal["evaluator", "some", "other", "checkpoints"], ...] = ()


def found_by(module: str, function: str, *arguments: Any, **keywords: Any) -> tuple[Import, Let]:
    """``from headviz.analyses.module import function`` and ``found = function(arguments)``."""
    return Import(f"headviz.analyses.{module}", (function,)), Let("found", Call(function, arguments, keywords))


def evaluator_of(data: str) -> Call:
    """The evaluator of the model on other data."""
    return Call("evaluator_of", (Name("clf"), Name(data)))


def scored_by(score: Any, model: str = "clf") -> Get:
    """The values of a head score on the examples ``some``."""
    return Get(Call("headviz.score_heads", (Name(model), Name("some")), {"score": score}), "values")
