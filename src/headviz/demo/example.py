"""One labelled sentence pair of the demo, its labels and its kinds."""

from typing import NamedTuple

ENTAILMENT, NEUTRAL, CONTRADICTION = LABELS = ("entailment", "neutral", "contradiction")

# the abilities that every pair asks for one of
PHENOMENA = tuple(
    "synonym hypernym antonym negation veridical quantifier number role-swap conjunction relative-clause temporal "
    "spatial comparative".split()
)


class Example(NamedTuple):
    """A premise, a hypothesis, their label and the phenomenon that decides it."""

    premise: str
    hypothesis: str
    label: str
    phenomenon: str
