"""Long computations that several sessions share: who wants them, who stopped them, and what is left."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from headviz.errors import Cancelled
from headviz.ui.shell import jobs


class Work:
    """Counts until it is let go or cancelled."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.times = 0

    def __call__(self, progress: jobs.Progress, cancel: jobs.Cancel) -> str:
        self.times += 1
        while not self.go.is_set():
            if cancel():
                raise Cancelled
            progress(1, 2)
            time.sleep(0.005)
        return "result"


@pytest.fixture
def work() -> Iterator[Work]:
    one = Work()
    yield one
    one.go.set()


@pytest.fixture
def be(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Act as a session."""
    monkeypatch.setattr(jobs, "_jobs", type(jobs._jobs)())
    return lambda name: monkeypatch.setattr(jobs, "_who", lambda: name)


def test_drawing_the_page_again_does_not_undo_a_stop(be: Any, work: Work) -> None:
    be("anna")
    job = jobs.start("key", work)
    jobs.stop("key")
    for _ in range(3):
        assert jobs.start("key", work, again=False) is job
    assert job.finished.wait(5)
    assert job.stopped
    assert jobs.start("key", work, again=False) is job
    jobs.forget("key")  # 'Continue'
    again = jobs.start("key", work, again=False)
    assert again is not job
    work.go.set()
    assert again.finished.wait(5)
    assert (again.result, work.times) == ("result", 2)


def test_one_session_stops_and_another_keeps_its_computation(be: Any, work: Work) -> None:
    be("anna")
    job = jobs.start("key", work)
    be("ben")
    assert jobs.start("key", work) is job
    jobs.stop("key")
    jobs.start("key", work)  # ben's page is drawn again
    be("anna")
    jobs.stop("key")
    assert job.finished.wait(5)
    assert job.stopped


def test_who_stopped_may_join_again_while_others_go_on(be: Any, work: Work) -> None:
    be("anna")
    job = jobs.start("key", work)
    be("ben")
    jobs.start("key", work)
    jobs.stop("key")
    assert not job.cancelled()
    jobs.forget("key")  # 'Continue'
    assert jobs.start("key", work) is job
    be("anna")
    jobs.stop("key")
    assert not job.cancelled()
    work.go.set()
    assert job.finished.wait(5)
    assert job.result == "result"


def test_continuing_does_not_wait_for_the_computations_turn(be: Any, work: Work) -> None:
    be("anna")
    job = jobs.start("urgent", work)
    be("ben")
    waiting = jobs.start("key", work, rank=1)
    jobs.stop("key")
    be("anna")
    jobs.start("key", work, rank=1)
    be("ben")
    begun = time.monotonic()
    jobs.forget("key")  # 'Continue', while another computation of the model goes first
    assert time.monotonic() - begun < 1
    assert jobs.start("key", work, rank=1) is waiting
    work.go.set()
    assert job.finished.wait(5)
    assert waiting.finished.wait(5)


def test_stopping_ends_when_nobody_wants_it(be: Any, work: Work) -> None:
    be("anna")
    job = jobs.start("key", work)
    jobs.stop("key")
    jobs.forget("key")  # too late to join: it is ending
    jobs.start("key", work)
    assert job.finished.wait(5)
    assert job.stopped


@pytest.mark.slow
def test_what_the_page_said_is_said_again_when_a_result_draws_it_anew(scanned_once: None) -> None:
    from streamlit.testing.v1 import AppTest

    def page() -> None:
        import streamlit as st

        from headviz.ui.shell import jobs, state

        state.open_address("page")
        first = "told" not in st.session_state
        if first:
            st.session_state["told"] = True
            state.notify("a link is wrong")
        for text in state.take_notices():
            st.warning(text)
        if first:
            job = jobs.start("a result of its own", lambda progress, cancel: "result")
            job.finished.wait(5)
            jobs._progress("a result of its own", "Work")  # the watcher sees that it is there
        st.write("drawn")

    app = AppTest.from_function(page).run()
    assert [m.value for m in app.markdown] == ["drawn"]
    assert [w.value for w in app.warning] == ["a link is wrong"]
    assert not app.run().warning


def page(title: str, *keys: str, work: Work) -> list[jobs.Job[Any]]:
    """Draw a page that asks for these."""
    jobs.page_begins(title)
    found = [jobs.start(key, work, key, again=False) for key in keys]
    jobs.page_ends()
    return found


def test_a_page_that_shows_something_else_ends_what_it_asked_for(be: Any, work: Work) -> None:
    be("anna")
    (old,) = page("One head", "text 1", work=work)
    (new,) = page("One head", "text 2", work=work)
    assert old.finished.wait(2)
    assert old.stopped
    assert new.running
    (again,) = page("One head", "text 1", work=work)  # back to the first text: no button is needed
    assert again is not old
    assert again.running


def test_what_another_session_or_another_page_asked_for_goes_on(be: Any, work: Work) -> None:
    be("anna")
    (shared,) = page("One head", "text 1", work=work)
    (elsewhere,) = page("Heads", "costs", work=work)
    be("ben")
    page("One head", "text 1", work=work)
    be("anna")
    page("One head", "text 2", work=work)
    time.sleep(0.05)
    assert shared.running
    assert elsewhere.running


def test_a_kept_job_goes_on_until_it_is_stopped(be: Any, work: Work) -> None:
    be("anna")
    (job,) = page("One head", "text 1", work=work)
    jobs.keep("text 1")
    page("One head", "text 2", work=work)
    time.sleep(0.05)
    assert job.running
    jobs.stop("text 1")
    assert job.finished.wait(2)


@pytest.mark.slow
def test_a_closed_tab_ends_its_computations_within_two_seconds(
    be: Any, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_tabs = {"anna", "ben"}
    monkeypatch.setattr(jobs, "_has_tab", lambda session: session in open_tabs)
    be("anna")
    (own,) = page("One head", "own", work=work)
    (shared,) = page("Heads", "shared", work=work)
    be("ben")
    page("Heads", "shared", work=work)
    begun = time.monotonic()
    open_tabs.remove("anna")
    assert own.finished.wait(5)
    assert own.stopped
    assert time.monotonic() - begun < 2
    assert shared.running


class Steps:
    """Notes when it steps."""

    def __init__(self, log: list[str], name: str, steps: int) -> None:
        self.log, self.name, self.steps = log, name, steps

    def __call__(self, progress: jobs.Progress, cancel: jobs.Cancel) -> str:
        for i in range(self.steps):
            self.log.append(self.name)
            time.sleep(0.01)
            progress(i + 1, self.steps)
        return self.name


def test_one_computes_at_a_time_and_what_was_asked_for_last_goes_first(be: Any) -> None:
    be("")
    log: list[str] = []
    jobs.page_begins("Heads")
    slow = jobs.start("slow", Steps(log, "slow", 40), "Costs", rank=1)
    while len(log) < 3:
        time.sleep(0.005)
    quick = jobs.start("quick", Steps(log, "quick", 20), "One mask")
    while not quick.done:
        time.sleep(0.002)
    deadline = time.monotonic() + 2
    while not slow.turn.waits_for and time.monotonic() < deadline:
        time.sleep(0.002)
    assert slow.turn.waits_for == "One mask"
    assert quick.finished.wait(5)
    assert slow.finished.wait(5)
    first, last = log.index("quick"), len(log) - 1 - log[::-1].index("quick")
    assert log[first : last + 1].count("slow") <= 2  # the step that was under way
    assert slow.turn.waits_for == ""


def test_what_has_nothing_to_show_goes_before_the_rest_of_what_has(be: Any) -> None:
    """A grid of 64 examples waited for an evaluation of 10,000, of which a part was on the page."""
    be("")
    log: list[str] = []

    def growing(progress: jobs.Progress, cancel: jobs.Cancel) -> str:
        for i in range(40):
            log.append("large")
            time.sleep(0.01)
            if i == 4:
                jobs.offer("large", "a part")
            progress(i + 1, 40)
        return "all"

    jobs.page_begins("Scores")
    large = jobs.start("large", growing, "Evaluating")
    small = jobs.start("small", Steps(log, "small", 10), "Costs", rank=1)
    ahead = jobs.start("ahead", Steps(log, "ahead", 3), rank=jobs.LAST)
    assert all(job.finished.wait(10) for job in (large, small, ahead))
    last = {name: len(log) - 1 - log[::-1].index(name) for name in ("small", "large", "ahead")}
    assert log[: last["small"]].count("large") <= 8  # the first part, and steps that were under way
    assert last["small"] < last["large"] < last["ahead"]


@pytest.mark.slow
def test_a_part_that_is_shown_grows_beside_a_long_evaluation(be: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The grid of costs stood at 4 examples until an evaluation of 10,000 had ended."""
    be("")
    monkeypatch.setattr("headviz.ui.shell.job.PAUSE", 0.3)
    monkeypatch.setattr("headviz.ui.shell.job.SLICE", 0.1)
    log: list[str] = []

    def growing(name: str, steps: int) -> jobs.Work[str]:
        def work(progress: jobs.Progress, cancel: jobs.Cancel) -> str:
            for i in range(steps):
                log.append(name)
                time.sleep(0.01)
                jobs.offer(name, f"{i} steps")
                progress(i + 1, steps)
            return "all"

        return work

    jobs.page_begins("Workbench")
    both = [
        jobs.start("evaluation", growing("evaluation", 150), "Evaluating"),
        jobs.start("costs", growing("costs", 150), "Costs", rank=1),
    ]
    assert all(one.finished.wait(20) for one in both)
    meanwhile = log[: len(log) - log[::-1].index("evaluation")]
    assert 10 < meanwhile.count("costs") < 100  # it grows, and the evaluation has most of the time


@pytest.mark.parametrize(("lane", "asked"), [("one model", 3), ("another", 1)])
def test_only_computations_of_one_model_wait_for_each_other(lane: str, asked: int) -> None:
    from headviz.ui.shell.job import Turn

    first, second = Turn("first", "one model"), Turn("second", lane, rank=1)
    answers = iter([True, True, False])
    first.begin()
    try:
        second.wait(lambda: next(answers))
    finally:
        first.end()
    assert 3 - len(list(answers)) == asked


def test_time_left_counts_only_what_is_work() -> None:
    from headviz.ui.shell.job import Turn

    turn = Turn()
    turn._since = time.monotonic()
    for _ in range(50):  # from the cache: at once
        turn.step(10)
    assert turn.seconds_for(100) is None
    for _ in range(3):
        turn._since = time.monotonic() - 0.5  # half a second of work for two examples
        turn.step(2)
    left = turn.seconds_for(100)
    assert left is not None
    assert 24 < left < 27


def test_what_ends_while_the_page_is_drawn_is_drawn_whole(be: Any, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    again: list[bool] = []
    monkeypatch.setattr(jobs, "PATIENCE", 0.05)
    monkeypatch.setattr(jobs.state, "repeat_notices", lambda: None)
    monkeypatch.setattr(jobs.st, "rerun", lambda: again.append(True))
    be("anna")
    jobs.page_begins("Workbench")
    assert jobs.request("key", "Evaluating", work) is None  # a page shows what there is so far
    work.go.set()
    job = jobs.find("key")
    assert job is not None
    assert job.finished.wait(5)
    jobs.page_ends()
    assert again == [True]

    jobs.page_begins("Workbench")
    assert jobs.request("key", "Evaluating", work) == "result"
    jobs.page_ends()
    assert again == [True]
