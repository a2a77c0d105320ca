"""One way to JSON."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

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
        np.array([[1.0, np.nan], [np.inf, 0.5]]), HeadId(3, 5), HeadMask.full(2, 2).without([(0, 0)]), Inner(np.nan),
        (Inner(1.0),), {"a": np.float32(0.5)},
    )  # fmt: skip
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
