"""Minimal pairs of the demo: two pairs of sentences that differ in one stretch of words, and in their label.

None of them was in the training data.
"""

from functools import cache
from random import Random

from ..errors import OptionError, is_one_of, shown, unknown_choice
from .example import PHENOMENA, Example
from .tables import columns

COLUMNS = ("premise", "hypothesis", "label", "other_premise", "other_hypothesis", "other_label", "phenomenon")


def minimal_pairs(phenomenon: str, count: int, seed: int = 0) -> list[tuple[Example, Example]]:
    """``count`` minimal pairs of one phenomenon, of 200 that are shipped; fewer if ``count`` is larger.

    Seed 0 gives them in the order of the file, another seed in a random order of its own.

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
    pairs = list(_shipped()[phenomenon])
    if seed:
        Random(f"headviz minimal {phenomenon} {seed}").shuffle(pairs)
    return pairs[:count]


@cache
def _shipped() -> dict[str, list[tuple[Example, Example]]]:
    pairs: dict[str, list[tuple[Example, Example]]] = {name: [] for name in PHENOMENA}
    for a, b, label, c, d, other, name in zip(*columns("minimal_pairs.parquet", COLUMNS), strict=True):
        pairs[name].append((Example(a, b, label, name), Example(c, d, other, name)))
    return pairs
