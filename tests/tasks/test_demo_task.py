"""The demo task: shipped with headviz, no network, with a phenomenon for each example."""

import importlib
import importlib.util
import sys
from types import ModuleType

import pytest

from headviz.demo.reading import Example
from headviz.tasks import load_task


def _shipped() -> bool:
    if importlib.util.find_spec("headviz.demo") is None:
        return False
    return hasattr(importlib.import_module("headviz.demo"), "read_split")


with_data = pytest.mark.skipif(not _shipped(), reason="this checkout has no demo data")


def test_rows_become_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [Example("a", "b", "neutral", "negation"), Example("c", "d", "entailment", "numbers")]
    stand_in = ModuleType("headviz.demo")
    stand_in.read_split = {"unseen": rows}.__getitem__  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "headviz.demo", stand_in)
    data = load_task("demo", "unseen")
    assert list(data) == [("a", "b", "neutral", "negation"), ("c", "d", "entailment", "numbers")]
    assert data.gold.tolist() == [1, 0]
    assert data.slice_name == "ability"


@with_data
@pytest.mark.parametrize("split", ["train", "dev", "unseen"])
def test_splits(split: str) -> None:
    from headviz.demo import read_split

    data = load_task("demo", split)
    rows = list(read_split(split))
    assert len(data) == len(rows) > 0
    assert data.label_names == ("entailment", "neutral", "contradiction")
    assert min(data.class_counts().values()) > 0
    assert data.slice_name == "ability"
    assert len(data.slice_counts()) >= 10
    first = data[0]
    assert first == (rows[0].premise, rows[0].hypothesis, rows[0].label, rows[0].phenomenon)


@with_data
def test_limit_keeps_every_phenomenon() -> None:
    data, whole = load_task("demo", limit=300), load_task("demo")
    assert len(data) == 300
    for name, count in whole.slice_counts().items():
        assert abs(data.slice_counts().get(name, 0) - 300 * count / len(whole)) <= 3, name
