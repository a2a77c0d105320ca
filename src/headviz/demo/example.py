"""One labelled sentence pair of the demo corpus."""

from typing import NamedTuple

ENTAILMENT, NEUTRAL, CONTRADICTION = LABELS = ("entailment", "neutral", "contradiction")


class Example(NamedTuple):
    """A premise, a hypothesis, their label and the phenomenon that decides it."""

    premise: str
    hypothesis: str
    label: str
    phenomenon: str


class Draft(NamedTuple):
    """What a phenomenon's rule returns: the two sentences and what names their combination.

    `frame` says how the pair is built, `word` which content word it turns on. Some (frame, word)
    combinations are kept out of training altogether, for the unseen split.
    """

    premise: str
    hypothesis: str
    frame: str
    word: str
