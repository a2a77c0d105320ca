"""The abilities that the demo model is asked for: one rule each, listed here once."""

from collections.abc import Callable
from random import Random

from ..example import Draft
from .counting import number, quantifier
from .lexical import antonym, hypernym, synonym
from .polarity import negation, veridical
from .relations import comparative, spatial, temporal
from .structure import conjunction, relative_clause, role_swap

Rule = Callable[[Random, str], Draft]

PHENOMENA: dict[str, Rule] = {
    "synonym": synonym,
    "hypernym": hypernym,
    "antonym": antonym,
    "negation": negation,
    "veridical": veridical,
    "quantifier": quantifier,
    "number": number,
    "role-swap": role_swap,
    "conjunction": conjunction,
    "relative-clause": relative_clause,
    "temporal": temporal,
    "spatial": spatial,
    "comparative": comparative,
}
