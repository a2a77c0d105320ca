"""The demo's pairs of sentences: their labels and kinds, minimal pairs, and how its shipped files are read."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

from ..errors import OptionError, UserError, is_one_of, shown, unknown_choice

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


DATA = Path(__file__).parent / "data"


def shipped(name: str) -> Path:
    """The path of a shipped file, which must be there."""
    path = DATA / name
    if not path.exists():
        raise UserError(f"The demo's data are missing ({path}). Reinstall headviz, or run python -m tools.demo.ship.")
    return path


def columns(name: str, names: Sequence[str]) -> list[list[str]]:
    """Columns of a shipped Parquet file."""
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(shipped(name), columns=list(names))
    return [table[column].to_pylist() for column in names]


COLUMNS = ("premise", "hypothesis", "label", "other_premise", "other_hypothesis", "other_label", "phenomenon")


def minimal_pairs(phenomenon: str, count: int, seed: int = 0) -> list[tuple[Example, Example]]:
    """``count`` minimal pairs of one phenomenon, of 200 that are shipped; fewer if ``count`` is larger.

    A minimal pair are two examples that differ in one stretch of words, and in their label; none was trained on. Seed 0
    gives them in the order of the file, another seed in a random order of its own.

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
