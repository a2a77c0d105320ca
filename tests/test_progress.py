"""The bar that scripts and notebooks can show: it counts what the work tells it, to the end."""

import io
import sys
import time
from typing import Any

import numpy as np
import pytest

import headviz
from headviz.errors import Cancelled
from headviz.progress import after, part, phase_bar, tracked
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


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_is_drawn_into_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    with headviz.progress_bar("scoring") as bar:
        bar(1, 2)
        time.sleep(0.6)
        bar(2, 2)
    assert sys.stderr.getvalue() == ""


def test_the_bar_follows_the_work(bars: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with headviz.progress_bar("scoring") as bar:
        for done in (0, 3, 8):
            bar(done, 8)
            assert (bars[0].n, bars[0].total) == (done, 8)
    assert "scoring" in bars[0].desc


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, as the test sets it."""
    now = [100.0]
    monkeypatch.setattr("headviz.progress.time.monotonic", lambda: now[0])
    return now


def test_each_phase_has_a_clock_of_its_own(bars: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with phase_bar() as bar:
        for phase, total in (("timing", 12), ("scoring", 500), ("timing", 12)):
            bar(phase, 0, total)
            begun = bars[0].start_t
            bar(phase, total, total)
            assert (bars[0].n, bars[0].total, bars[0].start_t) == (total, total, begun)
            assert phase in bars[0].desc
            time.sleep(0.01)
            assert bars[0].start_t >= time.time() - 5


@pytest.mark.parametrize(("each", "told"), [(90.0, "15 minutes"), (3600.0, "10.0 hours"), (50.0, "")])
def test_long_work_says_once_how_long_it_takes_and_how_it_takes_less(
    capsys: pytest.CaptureFixture[str], clock: list[float], each: float, told: str
) -> None:
    with headviz.progress_bar("ablating", "--limit N takes fewer examples.") as bar:
        for done in range(4):
            bar(2 + done, 13)
            clock[0] += each
    shown = capsys.readouterr().err
    assert shown == (f"headviz: note: ablating takes about {told}. --limit N takes fewer examples.\n" if told else "")


def test_a_phase_whose_time_was_told_before_is_not_told_again(
    capsys: pytest.CaptureFixture[str], clock: list[float]
) -> None:
    with phase_bar(quiet="training") as bar:
        for phase in ("training", "tuning", "training", "tuning"):
            for done in range(3):
                bar(phase, done, 30)
                clock[0] += 90.0
    assert capsys.readouterr().err == "headviz: note: tuning takes about 44 minutes.\n"


def test_long_work_takes_it_and_fills_it(bars: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    clf = tiny_classifier()
    data = Dataset(get_task("mnli"), "dev", ("a dog sleeps",) * 4, ("a cat runs",) * 4, np.zeros(4, dtype=np.int64))
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


def test_tracked_tells_the_beginning_and_every_item_by_its_size() -> None:
    told: list[tuple[int, int]] = []
    items = ["ab", "c", "def"]
    assert list(tracked(items, lambda done, total: told.append((done, total)), size=len)) == items
    assert told == [(0, 6), (2, 6), (3, 6), (6, 6)]


def test_tracked_stops_before_the_next_item_and_does_not_count_the_unfinished_one() -> None:
    told: list[int] = []
    items = tracked(range(5), lambda done, _: told.append(done), lambda: told == [0, 1, 2])
    assert [next(items), next(items)] == [0, 1]
    with pytest.raises(Cancelled):
        next(items)
    assert told == [0, 1, 2]


def test_no_items_are_no_progress() -> None:
    assert list(tracked([], lambda *_: pytest.fail("there is nothing to tell"), lambda: True)) == []


def test_the_progress_of_a_part_counts_as_the_progress_of_the_whole() -> None:
    told: list[tuple[int, int]] = []

    def whole(done: int, total: int) -> None:
        told.append((done, total))

    for tell in (part(whole, 1, 3), after(whole, 7, 10)):
        assert tell is not None
        tell(0, 4)
        tell(2, 4)
    assert told == [(4, 12), (6, 12), (9, 10)]  # a later part's beginning is not told twice
    assert [part(None, 1, 3), after(None, 7, 10)] == [None, None]
