"""An analysis as code: the parts of ``recipes.structure`` that compute its result again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ..recipes.structure import Call, Get, Let, Name

EVALUATOR = Name("evaluator")


@dataclass(frozen=True)
class Recipe:
    """Lines that end with ``found``. They may use ``clf``, ``data``, ``mask`` and what ``uses`` names."""

    lines: tuple[Any, ...]
    uses: tuple[Literal["evaluator", "some", "other", "checkpoints"], ...] = ()


def found_by(function: str, *arguments: Any, **keywords: Any) -> Let:
    """``found = headviz.function(arguments)``."""
    return Let("found", Call(f"headviz.{function}", arguments, keywords))


def evaluator_of(data: str, **given: Any) -> Call:
    """The evaluator of the model on other data."""
    return Call("headviz.evaluator_of", (Name("clf"), Name(data)), given)


def scored_by(score: Any, model: str = "clf") -> Get:
    """The values of a head score on the examples ``some``."""
    return Get(Call("headviz.score_heads", (Name(model), Name("some")), {"score": score}), "values")
