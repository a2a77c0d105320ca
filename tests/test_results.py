"""One way to JSON."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

import headviz
from headviz import HeadId, HeadMask
from headviz.results import Result, plain


@dataclass(frozen=True)
class Inner:
    value: float


@dataclass(frozen=True)
class Outer(Result):
    table: np.ndarray
    head: HeadId
    mask: HeadMask
    inner: Inner
    many: tuple[Inner, ...]
    named: dict[str, float]


def test_every_kind_of_field() -> None:
    result = Outer(
        np.array([[1.0, np.nan], [np.inf, 0.5]]),
        HeadId(3, 5),
        HeadMask.full(2, 2).without([(0, 0)]),
        Inner(np.nan),
        (Inner(1.0),),
        {"a": np.float32(0.5)},
    )
    assert json.loads(result.to_json()) == {
        "table": [[1.0, None], [None, 0.5]],
        "head": "3.5",
        "mask": "7",
        "inner": {"value": None},
        "many": [{"value": 1.0}],
        "named": {"a": 0.5},
    }


def test_unknown_things_are_refused_rather_than_guessed() -> None:
    with pytest.raises(TypeError, match="no JSON form"):
        plain(object())
    assert plain(True) is True
    assert plain(np.int64(3)) == 3


def test_what_a_notebook_prints_is_one_line():
    clf = headviz.load("demo", device="cpu")
    data = headviz.load_task("demo", limit=6)
    mask = headviz.HeadMask.full(12, 12).without("3.5")
    shown = [
        clf,
        headviz.prune(clf, mask),
        data,
        headviz.evaluate(clf, data, mask),
        headviz.conductance(clf, data.texts[0], data.pairs[0], steps=2, cache=False),
        headviz.score_heads(clf, data, score="taylor"),
    ]
    lines = [repr(one) for one in shown]
    assert all("\n" not in line and len(line) < 130 for line in lines), lines
    assert "12×12 heads, 1 removed" in lines[1]
    assert "6 examples" in lines[2]
    assert "accuracy" in lines[3]
