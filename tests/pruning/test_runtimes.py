"""A model and its pruned one in PyTorch, ONNX and int8: each row is what the model and the file say themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headviz
from headviz.errors import UserError
from headviz.models.onnx import NEEDED
from headviz.pruning.runtimes import RUNTIMES, view
from support.scored_data import made
from support.tiny import tiny_classifier


@pytest.fixture(autouse=True)
def needed(written_once: None) -> None:
    for name in NEEDED:
        pytest.importorskip(name)


def both() -> tuple[Any, Any]:
    clf = tiny_classifier("bert", layers=2)
    return clf, headviz.prune(clf, {0: [1], 1: range(4)})


@pytest.mark.slow
def test_each_row_is_what_the_model_says(tmp_path: Any) -> None:
    (clf, small), data = both(), made(40)
    result = headviz.runtimes(clf, small, data, batch=2, length=8)
    assert [(r.model, r.runtime) for r in result.rows] == [(m, r) for m in ("full", "pruned") for r in RUNTIMES]
    first, pruned = result.rows[0], result.rows[3]
    whole, cut = headviz.evaluate(clf, data), headviz.evaluate(small, data)
    assert (first.speedup, first.change) == (1.0, None)
    assert first.value == pytest.approx(whole.metrics["accuracy"])
    assert pruned.value == pytest.approx(cut.metrics["accuracy"])
    assert pruned.change is not None
    own = headviz.paired(whole.gold, whole.predictions, cut.predictions)
    assert (pruned.change.difference, pruned.change.low) == pytest.approx((own.difference, own.low))
    # in float32 the file gives the model's own answers, and in int8 those that an exported file gives
    assert result.rows[1].value == first.value
    assert result.rows[4].value == pruned.value
    alone = headviz.export(small, tmp_path / "int8", "int8", data=data, batch=2, length=8)
    assert alone.change is not None
    assert result.rows[5].value - pruned.value == pytest.approx(alone.change.difference)
    assert result.rows[5].bytes == alone.bytes
    assert all(r.speedup_low <= r.speedup <= r.speedup_high and np.isfinite(r.seconds) for r in result.rows)
    assert len(view(result).parts[1].rows) == 6


@pytest.mark.slow
def test_without_data_there_is_speed_alone() -> None:
    clf, _ = both()
    result = headviz.runtimes(clf, batch=2, length=8)
    assert [r.value for r in result.rows] == [None] * 3
    assert "accuracy" not in view(result).finding


def test_other_classes_are_refused() -> None:
    clf, _ = both()
    other = tiny_classifier("bert", labels=("a", "b"))
    with pytest.raises(UserError, match="other classes"):
        headviz.runtimes(clf, other, batch=2, length=8)
