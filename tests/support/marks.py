"""Which parameters of a test run where.

A test over many things of one kind costs seconds for each. `make test` takes one of each kind, CI takes all. More
seeds of a test by chance say little each: CI takes some, `make test-soak` takes the rest before a release.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

# the other classifiers share BERT's or RoBERTa's sheet, the other translators Marian's
KINDS_OF_CLASSIFIERS = ("bert", "albert", "distilbert", "electra", "modernbert", "roberta")
KINDS_OF_TRANSLATORS = ("marian", "t5")


def all_in_ci(values: Iterable[Any], quick: Iterable[Any]) -> list[Any]:
    """The values as parameters; those that are not among the quick ones are marked as slow."""
    every, first = list(values), list(quick)
    assert all(q in every for q in first), f"{first} are not all among {every}"
    return [v if v in first else pytest.param(*_together(v), marks=pytest.mark.slow) for v in every]


def seeds(first: Iterable[Any], more: Iterable[Any]) -> list[Any]:
    """Values that differ by chance alone: the first ones in CI, the others before a release."""
    return [*first, *(pytest.param(value, marks=pytest.mark.soak) for value in more)]


def algorithms(first: Iterable[str], every: Iterable[str]) -> list[Any]:
    """Algorithms of one engine: some of each kind in CI, the others before a release."""
    some = list(first)
    return seeds(some, [name for name in every if name not in some])


def classifiers(values: Iterable[str]) -> list[Any]:
    every = list(values)
    return all_in_ci(every, [name for name in KINDS_OF_CLASSIFIERS if name in every])


def translators(values: Iterable[str]) -> list[Any]:
    every = list(values)
    return all_in_ci(every, [name for name in KINDS_OF_TRANSLATORS if name in every])


def _together(value: Any) -> tuple[Any, ...]:
    """A tuple is one value for each argument of the test."""
    return value if isinstance(value, tuple) else (value,)
