"""What is said of a text: cut, or with words or signs that the model does not know."""

from __future__ import annotations

from typing import Any

import pytest

from support.tiny import tiny_model, tiny_tokenizer

pytest.importorskip("streamlit")

from headviz.ui.parts import texts
from headviz.ui.parts.texts import Text


@pytest.fixture(scope="module")
def clf() -> Any:
    import headviz

    tokenizer = tiny_tokenizer()
    tokenizer.model_max_length = 24
    return headviz.wrap(tiny_model("bert"), tokenizer)


@pytest.mark.parametrize(
    ("text", "pair", "said", "unsaid"),
    [
        ("the dog " * 30, "a cat", "of the first text only", "second text"),
        ("the dog", "a cat " * 30, "of the second text only", "first text"),
        ("the dog " * 30, "a cat " * 30, " and of the second text only", "nothing"),
    ],
)
def test_it_says_which_text_was_cut(clf: Any, text: str, pair: str, said: str, unsaid: str) -> None:
    (remark,) = [r for r in texts.remarks(clf, Text(text, pair)) if "longer" in r]
    assert said in remark
    assert unsaid not in remark


@pytest.fixture(scope="module")
def demo() -> Any:
    import headviz

    return headviz.load("demo")


def test_the_demos_unknown_words_are_named(demo: Any) -> None:
    (remark,) = texts.remarks(demo, Text("The blicket is sleeping.", "A zorbled dog sleeps."))
    assert "“blicket”, “zorbled”" in remark
    assert texts.remarks(demo, Text("The dog is sleeping.", "A dog sleeps.")) == []


def test_signs_that_the_demo_does_not_know_are_named_with_what_to_type(demo: Any) -> None:
    curly = Text("The dog didn’t sleep.", "The “dog” slept – for 50 %.")
    said = " ".join(texts.remarks(demo, curly))
    assert "does not know the signs ’ “ ” – %" in said
    assert "a straight ' for ’" in said
    assert "didn" not in said
    assert texts.remarks(demo, Text("The dog didn't sleep.", 'The "dog": it slept, (and it slept)!')) == []


def test_many_texts_get_the_remarks_of_one(demo: Any, clf: Any) -> None:
    lines = {1: ("the dog", "a cat"), 2: ("the dog " * 30, "a cat"), 4: ("a cat", "the dog " * 30)}
    said = texts.remarks_on_many(clf, lines, paired=True)
    assert said[0] == "Lines 2, 4 are longer than the model's 24 tokens; the rest was left out."
    assert texts.remarks_on_many(clf, {1: lines[1]}, paired=True) == texts.remarks(clf, Text(*lines[1]))
    (said_of_words,) = texts.remarks_on_many(
        demo, {1: ("A dog sleeps.", ""), 2: ("A blicket sleeps.", "")}, paired=False
    )
    assert "“blicket”" in said_of_words
