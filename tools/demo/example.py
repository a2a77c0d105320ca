"""A pair that a rule has drawn, before it is known which split may show it."""

from typing import NamedTuple

from headviz.demo.reading import CONTRADICTION, ENTAILMENT, LABELS, NEUTRAL, Example

__all__ = ["CONTRADICTION", "ENTAILMENT", "LABELS", "NEUTRAL", "Draft", "Example"]


class Draft(NamedTuple):
    """What a phenomenon's rule returns: the two sentences and what names their combination.

    `frame` says how the pair is built, `word` which content word it turns on. Some (frame, word)
    combinations are kept out of training altogether, for the unseen split.
    """

    premise: str
    hypothesis: str
    frame: str
    word: str
