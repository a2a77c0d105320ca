"""The gallery of One head: its titles, how many heads it shows, and a word that the text does not have."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("streamlit")

from headviz.ui.pages import head


def test_a_title_that_does_not_fit_ends_with_dots() -> None:
    assert head.title("L6·H7 0.14 own text") == "L6·H7 0.14 own text"
    assert head.title("L6·H7 0.14 relative-clause") == "L6·H7 0.14 relative-c…"


@pytest.mark.parametrize(
    ("shown", "known", "said"), [(24, 144, "24 of 144 heads"), (12, 12, "all 12 heads"), (1, 1, "the one head")]
)
def test_it_says_how_many_heads_it_leaves_out(shown: int, known: int, said: str) -> None:
    assert head.how_many(shown, known) == said


def test_a_word_that_is_not_in_the_text_sorts_nothing() -> None:
    result: Any = SimpleNamespace(tokens=["[CLS]", "the", "dog", "the", "##s", "[SEP]"])
    assert head.missing(result, "") == head.missing(result, "Dog") == head.missing(result, "s cat") == ""
    assert head.missing(result, "cat") == (
        "This text has no token “cat”. Search for one of: [CLS], the, dog, ##s, [SEP]."
    )
