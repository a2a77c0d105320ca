"""Which parameters of a test run where.

A test over many things of one kind costs seconds for each. `make test` takes one of each kind. CI takes all where
each has something of its own to get wrong, and else one for each branch: `make test-soak` takes the rest before a
release, as it does more seeds of a test by chance.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

# the other classifiers share BERT's or RoBERTa's sheet
KINDS_OF_CLASSIFIERS = ("bert", "albert", "distilbert", "electra", "modernbert", "roberta")
# those with a way of running, an attention, or groups of keys of their own
OWN_WAYS = (
    *("mpnet", "deberta", "deberta-v2", "gpt2", "llama", "gemma2", "gpt_neox", "phi3", "t5", "esm", "mobilebert"),
    *("nomic_bert", "xlm-roberta-xl"),
)


def all_in_ci(values: Iterable[Any], quick: Iterable[Any]) -> list[Any]:
    """The values as parameters; those that are not among the quick ones are marked as slow."""
    every = list(values)
    return some_in_ci(every, quick, every)


def some_in_ci(values: Iterable[Any], quick: Iterable[Any], ci: Iterable[Any] = ()) -> list[Any]:
    """The same where CI takes, besides the quick ones, only those of ``ci``; the others run before a release."""
    every, first, more = list(values), list(quick), list(ci)
    assert all(q in every for q in first), f"{first} are not all among {every}"

    def marked(value: Any) -> Any:
        marks = [pytest.mark.slow] if value in more else [pytest.mark.slow, pytest.mark.soak]
        return pytest.param(*_together(value), marks=marks)

    return [v if v in first else marked(v) for v in every]


def seeds(first: Iterable[Any], more: Iterable[Any]) -> list[Any]:
    """Values that differ by chance alone: the first ones in CI, the others before a release."""
    return [*first, *(pytest.param(value, marks=pytest.mark.soak) for value in more)]


def algorithms(first: Iterable[str], every: Iterable[str]) -> list[Any]:
    """Algorithms of one engine: some of each kind in CI, the others before a release."""
    some = list(first)
    return seeds(some, [name for name in every if name not in some])


def classifiers(values: Iterable[str]) -> list[Any]:
    every = list(values)
    return some_in_ci(every, [name for name in KINDS_OF_CLASSIFIERS if name in every], OWN_WAYS)


def _together(value: Any) -> tuple[Any, ...]:
    """A tuple is one value for each argument of the test."""
    return value if isinstance(value, tuple) else (value,)
