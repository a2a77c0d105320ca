"""Lines of texts as people paste or upload them, and the table of answers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("streamlit")

from headviz.answers.one_class import ONE_CLASS
from headviz.heads import HeadId, HeadMask
from headviz.ui.pages import head
from headviz.ui.pages.compare import answers
from headviz.ui.pages.compare.heads import largest_change
from support.tiny import tiny_classifier

LABELS = ("no", "yes")


@pytest.mark.parametrize(
    ("raw", "paired", "lines", "wrong"),
    [
        ("a | b\n\nc\td\n", True, {1: ("a", "b"), 3: ("c", "d")}, []),
        ("a\fb\r\n\rc", False, {1: ("a\fb", ""), 3: ("c", "")}, []),
        ("a | b\nalone", True, {1: ("a", "b")}, ["Line 2 is not a pair"]),
        ("a | b | c", True, {}, ["Line 1 is not a pair"]),
        ("one | two", False, {1: ("one | two", "")}, []),
        ("fine\nfirst\tsecond", False, {1: ("fine", "")}, ["Line 2 has a tab"]),
    ],
)
def test_lines_are_read_one_by_one(raw: str, paired: bool, lines: answers.Lines, wrong: list[str]) -> None:
    result, said = answers.read_lines(raw, paired)
    assert result == lines
    assert len(said) == len(wrong)
    assert all(s.startswith(w) for s, w in zip(said, wrong, strict=True))


@pytest.mark.parametrize(
    ("content", "read"),
    [
        ("é\n".encode(), "é\n"),
        ("\ufeffa".encode(), "a"),
        ("a\tb".encode("utf-16"), "a\tb"),
        (b"PK\x03\x04\x00\x00", None),
    ],
    ids=["utf-8", "with a mark", "utf-16", "no text"],
)
def test_files_of_text(content: bytes, read: str | None) -> None:
    assert answers.read_text(content) == read


def test_one_bad_line_does_not_cost_the_others_their_answers() -> None:
    clf = tiny_classifier("bert", layers=2, heads=2)
    given = [answers.Column("full model", clf, HeadMask.full(2, 2))]
    lines = {1: ("a dog sleeps", "a cat runs"), 4: ("日本 ☃", "a cat runs"), 5: ("the dog", "a cat")}
    result = answers._many_answers(lines, True, given, lambda done, total: None, lambda: False)
    alone = [answers.answer(clf, [lines[i][0]], [lines[i][1]], given[0].mask)[0] for i in (1, 5)]
    assert np.allclose(result.values[0][[0, 2]], alone, atol=1e-6)
    assert np.isnan(result.values[0][1]).all()
    assert len(result.complaints) == 1
    assert result.complaints[0].startswith("Line 4: ")
    _, rows, _ = answers.many_rows(lines, True, given * 2, result.values * 2, clf.labels, ONE_CLASS.shares)
    assert [(row[0], row[-1]) for row in rows] == [(1, "same"), (4, "not answered"), (5, "same")]


def test_rows_say_the_answer_its_probability_and_the_change() -> None:
    columns: Any = [SimpleNamespace(name="full model"), SimpleNamespace(name="mask")]
    values = [np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[0.3, 0.7], [0.1, 0.9]])]
    lines = {1: ("a", ""), 3: ("b", "")}
    header, rows, sizes = answers.many_rows(lines, False, columns, values, LABELS, ONE_CLASS.shares)
    assert sizes == pytest.approx([answers.ANOTHER, 0.1])
    assert header == ["line", "text", "full model", "mask", "change"]
    assert rows == [[1, "a", "no 0.90", "yes 0.70", "no → yes"], [3, "b", "yes 0.80", "yes 0.90", "yes 0.80 → 0.90"]]
    header, rows, _ = answers.many_rows({1: ("a", "b")}, True, columns, values, LABELS, ONE_CLASS.shares)
    assert header[:3] == ["line", "text", "pair"]
    assert (rows[0][:3], len(rows[0])) == ([1, "a", "b"], len(header))


def test_a_sure_answer_that_comes_near_chance_is_not_sure() -> None:
    columns: Any = [SimpleNamespace(name="full model"), SimpleNamespace(name="mask")]
    values = [np.array([[0.9, 0.1], [0.9, 0.1], [0.52, 0.48]]), np.array([[0.49, 0.51], [0.51, 0.49], [0.51, 0.49]])]
    lines = dict.fromkeys(range(3), ("a", ""))
    _, rows, sizes = answers.many_rows(lines, False, columns, values, LABELS, ONE_CLASS.shares)
    assert [row[-1] for row in rows] == ["no → not sure", "no → not sure", "no 0.52 → 0.51"]
    assert [size >= answers.ANOTHER for size in sizes] == [True, True, False]
    several = answers.many_rows(lines, False, columns, values, LABELS, ONE_CLASS.shares, decides=False)
    assert [row[-1] for row in several[1]][:2] == ["no → yes", "no 0.90 → 0.51"]


def test_a_heads_sentence_says_what_its_strongest_connections_carry() -> None:
    attention, attribution = np.zeros((10, 10)), np.zeros((10, 10))
    attention[0, :5] = [0.9, 0.8, 0.7, 0.6, 0.5]
    attribution[0, :2] = [0.5, -0.25]
    attribution[9, 9] = 0.25
    said = head.verdict(HeadId(3, 5), attention, attribution)
    assert "carry 75 % of its attribution; 5 random ones would carry 5 %" in said
    assert "contributes nothing" in head.verdict(HeadId(3, 5), attention, 0 * attribution)


def test_the_connection_that_changes_most_is_named() -> None:
    before = np.full((3, 3), 1 / 3)
    after = before.copy()
    after[0] = [0.1, 0.1, 0.8]
    said = largest_change(HeadId(1, 2), ["a", "b", "a"], before, after).replace("\\", "")
    assert "“a” (1 of 2) looks more at “a” (2 of 2) than without the mask, 0.80 instead of 0.33" in said
    assert "looks where it looks" in largest_change(HeadId(1, 2), ["a", "b", "a"], before, before)


def test_a_word_that_is_not_in_the_text_sorts_nothing() -> None:
    result: Any = SimpleNamespace(tokens=["[CLS]", "the", "dog", "the", "##s", "[SEP]"])
    assert head.missing(result, "") == head.missing(result, "Dog") == head.missing(result, "s cat") == ""
    assert "no token “cat”. Search for one of: [CLS], the, dog, ##s, [SEP]." in head.missing(result, "cat")
