"""Wrong types and values in Python calls: a ``UserError`` in one line, never an error from inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headviz
from headviz.errors import UserError
from headviz.heads import HeadMask
from support.tiny import tiny_classifier

NO_MODEL: list[Any] = ["demo", None, 3, object(), {"a": 1}, np.zeros(3)]
NO_DATA: list[Any] = ["demo", None, 3, ["a text"], {"text": ["a"]}]
MASKS: dict[str, Callable[[], Any]] = {
    "half a layer": lambda: HeadMask.full(1.5, 2),  # type: ignore[arg-type]
    "yes layers": lambda: HeadMask.full(True, 2),
    "words": lambda: HeadMask.full("2", 2),  # type: ignore[arg-type]
    "none": lambda: HeadMask.full(0, 2),
    "very many": lambda: HeadMask.full(10**5000, 2),
    "a truth value as a head": lambda: HeadMask.full(2, 2).without([(True, False)]),
    "half a head": lambda: HeadMask.full(2, 2).without([(0.5, 1)]),  # type: ignore[list-item]
    "a head of 5,000 digits": lambda: HeadMask.full(2, 2).without(["0." + "9" * 5000]),
    "no heads": lambda: HeadMask.full(2, 2).without(3),  # type: ignore[arg-type]
    "a number for hex": lambda: HeadMask.from_hex(3, 2, 2),  # type: ignore[arg-type]
    "hex of half a layer": lambda: HeadMask.from_hex("f", 1.5, 2),  # type: ignore[arg-type]
    "a row for a table": lambda: HeadMask.from_array([1, 0]),
    "uneven rows": lambda: HeadMask.from_array([[1, 0], [1]]),
    "an empty table": lambda: HeadMask.from_array([]),
    "a count that is none": lambda: HeadMask.full(2, 2).without_random(1.5),  # type: ignore[arg-type]
    "another type": lambda: HeadMask.full(2, 2) | {(0, 0)},  # type: ignore[operator]
}


@pytest.fixture(scope="module")
def clf() -> Any:
    return tiny_classifier(layers=2, heads=2, hidden=8)


def line(call: Callable[[], Any]) -> str:
    with pytest.raises(UserError) as wrong:
        call()
    text = str(wrong.value)
    assert "\n" not in text
    assert len(text) < 500
    return text


@pytest.mark.parametrize("what", MASKS)
def test_a_mask_that_is_none(what: str) -> None:
    line(MASKS[what])


@pytest.mark.parametrize("given", NO_MODEL, ids=lambda v: type(v).__name__)
def test_what_is_no_model(given: Any) -> None:
    data = headviz.load_task("demo", limit=4)
    for call in (
        lambda: headviz.evaluate(given, data),
        lambda: headviz.Evaluator(given, data),
        lambda: headviz.score_heads(given, data),
        lambda: headviz.conductance(given, "a text"),
        lambda: headviz.token_attributions(given, "a text"),
        lambda: headviz.prune(given, HeadMask.full(2, 2)),
    ):
        assert "headviz.load" in line(call)


@pytest.mark.parametrize("given", NO_DATA, ids=lambda v: type(v).__name__)
def test_what_is_no_data(given: Any, clf: Any) -> None:
    for call in (
        lambda: headviz.evaluate(clf, given),
        lambda: headviz.Evaluator(clf, given),
        lambda: headviz.score_heads(clf, given),
        lambda: headviz.sample(given, 4),
    ):
        assert "headviz.load_task" in line(call)


CALLS: dict[str, Callable[[Any], Any]] = {
    "no text": lambda clf: headviz.conductance(clf, 3),
    "text of None": lambda clf: headviz.conductance(clf, None),
    "no steps": lambda clf: headviz.conductance(clf, "a dog", steps="many"),
    "a hundred million steps": lambda clf: headviz.conductance(clf, "a dog", steps=10**8),
    "a mask of words": lambda clf: headviz.conductance(clf, "a dog", mask="fff"),
    "a mask of another grid": lambda clf: headviz.conductance(clf, "a dog", mask=HeadMask.full(9, 9)),
    "no target": lambda clf: headviz.conductance(clf, "a dog", target=1.5),
    "a negative tolerance": lambda clf: headviz.conductance(clf, "a dog", tolerance=-1),
    "a tolerance of words": lambda clf: headviz.conductance(clf, "a dog", tolerance="small"),
    "pruned by words": lambda clf: headviz.prune(clf, "0.1"),
    "a task that is none": lambda clf: headviz.load_task(3),
    "a split that is none": lambda clf: headviz.load_task("demo", split=None),
    "columns that are none": lambda clf: headviz.load_task("custom", data=".", text_columns=3),
    "data that are none": lambda clf: headviz.load_task("custom", data=3),
    "a limit that is none": lambda clf: headviz.load_task("demo", limit="many"),
    "a limit of yes": lambda clf: headviz.load_task("demo", limit=True),
    "a huge limit": lambda clf: headviz.load_task("demo", limit=10**12),
    "a model that is none": lambda clf: headviz.load(3),
    "a model of bytes": lambda clf: headviz.load(b"demo"),
    "a device that is none": lambda clf: headviz.load("demo", device=3.5),
    "the device meta": lambda clf: headviz.load("demo", device="meta"),
    "a precision that is none": lambda clf: headviz.load("demo", dtype=3),
    "half an example": lambda clf: headviz.sample(headviz.load_task("demo", limit=4), 1.5),
    "an unknown score": lambda clf: headviz.score_heads(clf, headviz.load_task("demo", limit=4), score=3),
    "an unknown option": lambda clf: headviz.score_heads(clf, headviz.load_task("demo", limit=4), nonsense=1),
    "a wrapped nothing": lambda clf: headviz.wrap(None, None),
    "a wrapped word": lambda clf: headviz.wrap("bert", "tokenizer"),
    "batches of no tokens": lambda clf: headviz.evaluate(clf, headviz.load_task("demo", limit=4), batch_tokens=0),
}


@pytest.mark.parametrize("what", CALLS)
def test_a_wrong_argument(what: str, clf: Any) -> None:
    line(lambda: CALLS[what](clf))
