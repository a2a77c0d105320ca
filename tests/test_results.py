"""One way to JSON."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

import headviz
from headviz import HeadId, HeadMask
from headviz.attribution.paths import paths
from headviz.results import Result, Shown, plain
from support.graded import graded_as
from support.tiny import tiny_classifier


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
    clf = tiny_classifier()
    data = headviz.load_task("demo", limit=6)
    mask = clf.full_mask.without("1.2")
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
    assert "3×4 heads, 1 removed" in lines[1]
    assert "6 examples" in lines[2]
    assert "accuracy" in lines[3]


# every result goes on as JSON and as a pandas table -------------------------------------------------


PAIR = "the small dog runs .", "the dog sleeps ."
MASK = {1: [1, 3]}


@pytest.fixture(scope="module")
def given() -> tuple[Any, Any, Any]:
    clf, data = tiny_classifier(), headviz.load_task("demo", limit=8)
    return clf, data, headviz.evaluator_of(clf, data)


# what makes a result of (clf, data, evaluator) -> its rows and some of its columns
RESULTS: dict[str, tuple[Callable[..., Any], int | None, set[str]]] = {
    "maps": (lambda c, d, e: headviz.conductance(c, *PAIR, steps=2), None, {"layer", "head", "query", "attribution"}),
    "tokens": (lambda c, d, e: headviz.token_attributions(c, *PAIR, steps=2), None, {"token", "value"}),
    "explanations": (lambda c, d, e: headviz.token_explanations(c, *PAIR, orders=1), None, {"token", "rollout"}),
    "evaluation": (lambda c, d, e: headviz.evaluate(c, d, MASK), 1, {"accuracy", "n", "mask"}),
    "comparison": (lambda c, d, e: e.compare(MASK), 1, {"metric", "delta", "interval_low"}),
    "growing": (lambda c, d, e: list(e.growing(MASK))[-1], 1, {"metric", "delta"}),
    "ablation": (lambda c, d, e: headviz.ablate(e), 12, {"layer", "head", "values", "p_value"}),
    "scores": (lambda c, d, e: headviz.score_heads(c, d, "taylor"), 12, {"layer", "head", "values", "stderr"}),
    "slices": (lambda c, d, e: headviz.by_slice(e), None, {"name", "cost"}),
    "grades": (lambda c, d, e: graded_as(taylor=0.8, random=0.5), 2, {"score", "area", "lead_low"}),
    "cost of a model": (lambda c, d, e: c.cost(), 1, {"parameters", "flops", "length"}),
    "paired": (lambda c, d, e: headviz.paired([0, 1] * 9, [0, 1] * 9, [1, 0] * 9), 1, {"metric", "difference", "p"}),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_become_tables_and_json(name: str, given: tuple[Any, Any, Any]) -> None:
    make, rows, columns = RESULTS[name]
    result = make(*given)
    frame = result.to_frame()
    assert columns <= set(frame.columns)
    assert rows is None or len(frame) == rows
    assert len(frame)
    pd.testing.assert_frame_equal(pd.DataFrame(result), frame)
    assert json.loads(result.to_json()) == result.to_dict()


DONOR = "the small dog runs .", "the dog runs ."
DRAWN: dict[str, Callable[..., Any]] = {
    **{name: make for name, (make, _, _) in RESULTS.items() if name != "cost of a model"},
    "contributions": lambda c, d, e: headviz.contributions(c, *PAIR),
    "paths": lambda c, d, e: paths(c, [(PAIR, DONOR)], receivers=1, depth=1, edges=4),
    "pairs": lambda c, d, e: headviz.patch_pairs(headviz.load("demo", device="cpu"), [(PAIR, DONOR), (DONOR, PAIR)]),
}


@pytest.mark.parametrize("name", DRAWN)
def test_results_draw_themselves(name: str, given: tuple[Any, Any, Any]) -> None:
    assert DRAWN[name](*given).plot().to_dict()["data"]


def test_maps_keep_their_values(given: tuple[Any, Any, Any]) -> None:
    maps = headviz.conductance(given[0], *PAIR, steps=2)
    size = maps.attribution.shape
    assert np.allclose(maps.to_frame()["attribution"].to_numpy().reshape(size), maps.attribution)
    assert np.allclose(maps.to_dict()["attention"], maps.attention)


def test_what_is_shown_is_a_result_but_for_things_with_a_life_of_their_own() -> None:
    def below(kind: type) -> set[type]:
        return {kind, *(one for sub in kind.__subclasses__() for one in below(sub))}

    others = {kind.__name__ for kind in below(Shown) if not issubclass(kind, Result)}
    assert others <= {
        "Shown",
        "HeadMask",
        "Board",
        "Dataset",
        "Model",
        "TransformerModel",
        "Classifier",
        "Translator",
        "RunView",
    }
