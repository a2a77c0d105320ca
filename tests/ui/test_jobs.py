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
        assert jobs.start_unless_stopped("key", work) is job
    assert job.finished.wait(5)
    assert job.stopped
    assert jobs.start_unless_stopped("key", work) is job
    jobs.forget("key")  # 'Continue'
    again = jobs.start_unless_stopped("key", work)
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


def test_stopping_ends_when_nobody_wants_it(be: Any, work: Work) -> None:
    be("anna")
    job = jobs.start("key", work)
    jobs.stop("key")
    jobs.forget("key")  # too late to join: it is ending
    jobs.start("key", work)
    assert job.finished.wait(5)
    assert job.stopped


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
