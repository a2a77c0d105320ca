"""Minimal pairs of the demo: two pairs of sentences that differ in one stretch of words, and in their label.

The generator draws both from one seed with two labels. None of them was in the training data.
"""

from collections.abc import Iterator
from difflib import SequenceMatcher
from random import Random

from ..errors import OptionError, is_one_of, shown, unknown_choice
from .corpus import split_of
from .example import LABELS, Example
from .phenomena import PHENOMENA

LONGEST = 3  # words of the stretch that differs


def minimal_pairs(phenomenon: str, count: int, seed: int = 0) -> list[tuple[Example, Example]]:
    """``count`` minimal pairs of one phenomenon; the same arguments give the same pairs. Fewer where it has no more.

    >>> import headviz
    >>> [(one, other)] = headviz.minimal_pairs("negation", 1)
    >>> one.label == other.label
    False
    """
    if not is_one_of(phenomenon, PHENOMENA):
        raise OptionError(unknown_choice("kind of example", phenomenon, PHENOMENA))
    for name, value in (("count", count), ("seed", seed)):
        if not isinstance(value, int) or value < 0:
            raise OptionError(f"{name} must be a whole number of at least 0, not {shown(value)}.")
    found: list[tuple[Example, Example]] = []
    for one, other in _drawn(phenomenon, seed):
        if len(found) == count:
            break
        if (one, other) not in found:
            found.append((one, other))
    return found


def _drawn(phenomenon: str, seed: int, tries: int = 40_000) -> Iterator[tuple[Example, Example]]:
    rule, choice = PHENOMENA[phenomenon], Random(f"headviz minimal {phenomenon} {seed}")
    for _ in range(tries):
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
