"""Lessons about time: rightly labelled, from train alone, each holding what it promises."""

from collections import Counter

import pytest

from headviz.demo.reading import LABELS
from tools.demo.lessons import LESSONS, TIME, _direction, lesson
from tools.demo.tests.checks import CHECKS


@pytest.mark.parametrize("name", LESSONS)
def test_pairs_are_right_balanced_and_repeatable(name: str) -> None:
    pairs = lesson(name, 90, seed=2)
    assert pairs == lesson(name, 90, seed=2)
    assert pairs != lesson(name, 90, seed=3)
    assert Counter(pair.label for pair in pairs) == dict.fromkeys(LABELS, 30)
    for pair in pairs:
        assert pair.phenomenon == TIME
        assert CHECKS[TIME](pair.premise, pair.hypothesis) == pair.label


def test_the_first_lesson_holds_the_word_still() -> None:
    for pair in lesson("same word", 60, seed=0):
        assert _direction(pair.hypothesis) != 0
        if pair.label != "neutral":
            assert _direction(pair.premise) == _direction(pair.hypothesis)


def test_directions_are_read_from_the_middle_of_a_sentence() -> None:
    assert _direction("Anna left before Ben ran.") == 1
    assert _direction("Ben ran later than Anna left.") == -1
    assert _direction("Before Ben ran, Anna left.") == 0
    assert _direction("Anna left, and Ben ran.") == 0
