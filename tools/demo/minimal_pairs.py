"""Minimal pairs: two pairs of sentences that differ in one stretch of words, and in their label.

One rule draws both from one seed with two labels. No pair of the training split is among them.
"""

from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import count
from random import Random

from .corpus import split_of
from .example import LABELS, Example
from .phenomena import PHENOMENA

LONGEST = 3  # words of the stretch that differs
TRIES = 40_000  # drafts of one seed; some phenomena have few minimal pairs, so further seeds follow


def minimal_pairs(phenomenon: str, number: int) -> list[tuple[Example, Example]]:
    """``number`` different minimal pairs of one phenomenon, always the same."""
    made: dict[tuple[Example, Example], None] = {}
    for seed in count():
        for pair in _drawn(phenomenon, seed):
            made[pair] = None
            if len(made) == number:
                return list(made)
    raise AssertionError


def _drawn(phenomenon: str, seed: int) -> Iterator[tuple[Example, Example]]:
    rule, choice = PHENOMENA[phenomenon], Random(f"headviz minimal {phenomenon} {seed}")
    for _ in range(TRIES):
        labels, number = choice.sample(LABELS, 2), choice.getrandbits(40)
        drafts = [rule(Random(number), label) for label in labels]
        if any(split_of(draft, phenomenon) == "train" or draft.premise == draft.hypothesis for draft in drafts):
            continue
        one, other = (
            Example(d.premise, d.hypothesis, label, phenomenon) for d, label in zip(drafts, labels, strict=True)
        )
        if _one_stretch(one, other):
            yield one, other


def _one_stretch(one: Example, other: Example) -> bool:
    """Whether exactly one stretch of at most ``LONGEST`` words was exchanged, added or left out."""
    a, b = (f"{e.premise} | {e.hypothesis}".split() for e in (one, other))
    changes = [c for c in SequenceMatcher(None, a, b, autojunk=False).get_opcodes() if c[0] != "equal"]
    return len(changes) == 1 and max(changes[0][2] - changes[0][1], changes[0][4] - changes[0][3]) <= LONGEST
