"""The bar that scripts and notebooks can show: it counts what the work tells it, to the end."""

from typing import Any

import numpy as np
import pytest

import headviz
from headviz.tasks import Dataset
from headviz.tasks.catalogue import get_task
from support.tiny import tiny_classifier


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    from tqdm import tqdm

    made: list[Any] = []
    began = tqdm.__init__

    def begin(self: Any, *args: Any, **more: Any) -> None:
        began(self, *args, **more)
        made.append(self)

    monkeypatch.setattr(tqdm, "__init__", begin)
    return made


def test_the_bar_follows_the_work(bars: list[Any]) -> None:
    with headviz.progress_bar("scoring") as bar:
        for done in (0, 3, 8):
            bar(done, 8)
            assert (bars[0].n, bars[0].total) == (done, 8)
    assert "scoring" in bars[0].desc


def test_long_work_takes_it_and_fills_it(bars: list[Any]) -> None:
    clf = tiny_classifier()
    data = Dataset(
        get_task("mnli"), "dev", ("a dog sleeps",) * 4, ("a cat runs",) * 4, np.zeros(4, dtype=np.int64)
    )
    work = (
        lambda bar: headviz.evaluate(clf, data, progress=bar),
        lambda bar: headviz.score_heads(clf, data, score="taylor", progress=bar),
        lambda bar: headviz.ablate(headviz.Evaluator(clf, data), progress=bar),
        lambda bar: headviz.conductance(clf, "a dog sleeps", "a cat runs", progress=bar),
    )
    for call in work:
        with headviz.progress_bar("working") as bar:
            call(bar)
        assert bars[-1].n == bars[-1].total > 0
