"""Dataset: frozen, checked, identified by its content."""

import numpy as np
import pytest

from headviz.errors import TaskError
from headviz.tasks import TASKS, Dataset

RTE, STSB = TASKS["rte"], TASKS["stsb"]


def _data(**changes: object) -> Dataset:
    given: dict = {
        "task": RTE,
        "split": "dev",
        "texts": ("a", "b", "c"),
        "pairs": ("x", "y", "z"),
        "labels": [0, 1, 0],
        "slices": ("u", "v", "u"),
        "slice_name": "kind",
    }
    return Dataset(**{**given, **changes})


def test_it_is_frozen_and_does_not_share_the_callers_array() -> None:
    with pytest.raises(ValueError, match="read-only"):
        _data().gold[0] = 1
    mine = np.array([0, 1, 0])
    data = _data(labels=mine)
    digest = data.digest
    mine[0] = 1
    assert data.gold.tolist() == [0, 1, 0]
    assert _data().digest == digest


@pytest.mark.parametrize(
    "changes",
    [
        {"texts": ("a", "b", "d")},
        {"texts": ("ab", "", "c")},
        {"pairs": ("x", "y", "q")},
        {"pairs": None},
        {"labels": [0, 1, 1]},
        {"labels": None},
        {"slices": ("u", "u", "u")},
        {"slices": None},
        {"task": TASKS["wnli"]},  # the same numbers, another meaning
        {"task": STSB},
        {"texts": ("ax", "b", "c"), "pairs": ("", "y", "z")},  # a character moved from one text to its pair
    ],
)
def test_digest_sees_every_change(changes: dict) -> None:
    assert _data(**changes).digest != _data().digest


def test_digest_is_of_the_content_alone() -> None:
    other = _data(split="train", origin="elsewhere", notes=("x",), slice_name="other")
    assert other.digest == _data().digest
    assert other == _data()
    assert hash(other) == hash(_data())
    assert len(_data().digest) == 64


def test_subset_keeps_the_order_given() -> None:
    data = _data().subset([2, 0])
    assert data.texts == ("c", "a")
    assert data.pairs == ("z", "x")
    assert data.gold.tolist() == [0, 0]
    assert data.slices == ("u", "u")
    assert data.digest != _data().subset([0, 2]).digest
    with pytest.raises(TaskError, match="no example 3"):
        _data().subset([3])
    with pytest.raises(TaskError, match="no example -1"):
        _data().subset([-1])


def test_only_slice() -> None:
    assert _data().only_slice("u").texts == ("a", "c")
    with pytest.raises(TaskError, match=r"No example has kind 'w'\. Choose one of: u, v"):
        _data().only_slice("w")
    with pytest.raises(TaskError, match="no slices"):
        _data(slices=None).only_slice("u")


def test_regression() -> None:
    data = _data(task=STSB, labels=[0, 2.5, 5])
    assert data.gold.dtype == np.float64
    assert data[1].label == 2.5
    with pytest.raises(TaskError, match="has no classes"):
        data.class_counts()
    with pytest.raises(TaskError, match="not a finite number"):
        _data(task=STSB, labels=[0, float("nan"), 1])


@pytest.mark.parametrize("labels", [[0, 1, 2], [0, -1, 1], [0.0, 1.0, 0.0]])
def test_labels_out_of_range_or_of_the_wrong_kind(labels: list) -> None:
    with pytest.raises(TaskError, match="Class labels must"):
        _data(labels=labels)


def test_lengths_must_agree() -> None:
    with pytest.raises(TaskError, match="2 pairs were given for 3 texts"):
        _data(pairs=("x", "y"))
