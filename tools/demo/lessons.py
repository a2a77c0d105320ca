"""Easier pairs about time, for classification to start from.

Which clause came first follows from two things at once: which clause is named first, and by which word. Neither
says anything about the label alone, so nothing is learned for a long time. A lesson holds one of them still.
"""

from collections.abc import Callable
from itertools import cycle, islice
from random import Random

from .corpus import split_of
from .example import LABELS, NEUTRAL, Draft, Example
from .phenomena import PHENOMENA
from .simple import simple_texts

TIME = "temporal"


def _direction(text: str) -> int:
    """1 where a clause in the middle says before, -1 where it says after, 0 for all other ways to tell."""
    if text.startswith(("Before ", "After ", "First ", "While ")):
        return 0
    if " before " in text or " earlier than " in text:
        return 1
    return -1 if " after " in text or " later than " in text else 0


def _same_word(draft: Draft, label: str) -> bool:
    """Premise and hypothesis tell the order by the same word: only which clause comes first can differ."""
    direction = _direction(draft.hypothesis)
    return direction != 0 and (label == NEUTRAL or _direction(draft.premise) == direction)


def _before_and_after(draft: Draft, label: str) -> bool:
    """Both tell the order by before and after, in any place."""
    ordered = [" before " in f" {text.lower()}" or " after " in f" {text.lower()}" for text in draft[:2]]
    return ordered[1] and (ordered[0] or label == NEUTRAL)


LESSONS: dict[str, Callable[[Draft, str], bool]] = {"same word": _same_word, "before and after": _before_and_after}


def lesson(name: str, count: int, seed: int) -> list[Example]:
    """Training pairs of one lesson, labels in turn."""
    rng, fits, out = Random(f"{name} {seed}"), LESSONS[name], []
    for label in islice(cycle(LABELS), count):
        while True:
            draft = PHENOMENA[TIME](rng, label)
            pair = draft.premise, draft.hypothesis
            read = pair[0] != pair[1] and pair not in simple_texts() and split_of(draft, TIME) == "train"
            if read and fits(draft, label):
                break
        out.append(Example(draft.premise, draft.hypothesis, label, TIME))
    return out
