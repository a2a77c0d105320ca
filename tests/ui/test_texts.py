"""What a text field says of its text: empty, cut, or outside the model's words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tiny import tiny_model, tiny_tokenizer

pytest.importorskip("streamlit")

from headviz.ui import texts
from headviz.ui.texts import Text
from headviz.ui.view import View, from_address, to_address


@pytest.fixture(scope="module")
def clf() -> Any:
    import headviz

    tokenizer = tiny_tokenizer()
    tokenizer.model_max_length = 24
    return headviz.wrap(tiny_model("bert"), tokenizer)


def test_an_emptied_text_stays_empty_and_its_link_says_so() -> None:
    import headviz

    data = headviz.load_task("demo", limit=6)
    view = replace(View(), example=3, blank=True)
    assert from_address(to_address(view)) == (view, [])
    shown = texts.current(view, data)
    assert (shown.text, shown.pair, shown.empty) == ("", "", True)
    again = texts.current(replace(view, blank=False), data)
    assert again.text == data[3].text
    assert not again.empty
    assert not texts.current(replace(view, b="a cat runs"), data).empty


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


def test_of_two_cut_texts_all_places_are_accounted_for(clf: Any) -> None:
    import re

    (remark,) = [r for r in texts.remarks(clf, Text("the dog " * 30, "a cat " * 30)) if "longer" in r]
    kept = [int(n) for n in re.findall(r"only the first (\d+)", remark)]
    assert sum(kept) == clf.max_length - 3  # [CLS] and two [SEP]


def test_a_single_cut_text_needs_no_name(clf: Any) -> None:
    (remark,) = [r for r in texts.remarks(clf, Text("the dog " * 30, None)) if "longer" in r]
    assert remark.startswith("The text is longer than the model's 24 tokens")


def test_the_demos_unknown_words_are_named() -> None:
    import headviz

    demo = headviz.load("demo")
    (remark,) = texts.remarks(demo, Text("The blicket is sleeping.", "A zorbled dog sleeps."))
    assert "“blicket”, “zorbled”" in remark
    assert texts.remarks(demo, Text("The dog is sleeping.", "A dog sleeps.")) == []
