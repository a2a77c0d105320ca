"""200 simple pairs written by hand, which no split of the corpus contains: the model is measured on them."""

import csv
from functools import cache
from pathlib import Path
from typing import NamedTuple

from .example import Example

FILE = Path(__file__).parent / "simple_pairs.tsv"


class SimplePair(NamedTuple):
    """One pair, the tense of its verb, and what kind of subject it has."""

    example: Example
    tense: str
    subject: str


@cache
def simple_pairs() -> tuple[SimplePair, ...]:
    """The pairs in the order of the file."""
    with FILE.open(encoding="utf-8", newline="") as file:
        return tuple(
            SimplePair(
                Example(row["premise"], row["hypothesis"], row["label"], row["phenomenon"]),
                row["tense"],
                row["subject"],
            )
            for row in csv.DictReader(file, delimiter="\t")
        )


@cache
def simple_texts() -> frozenset[tuple[str, str]]:
    """The two sentences of every pair."""
    return frozenset((pair.example.premise, pair.example.hypothesis) for pair in simple_pairs())
