"""The transition table, against the rules it was written from."""

import errno
import itertools
from itertools import pairwise
from pathlib import Path

import pytest

from headviz.errors import RunError
from headviz.runs.carrier import is_out_of_memory, outcome_of
from headviz.runs.heartbeat import Pace
from headviz.runs.queue import NICENESS, NICENESS_VARIABLE, choose_niceness, niceness
from headviz.runs.record import FAULT, OUT_OF_MEMORY, STATES, TRANSITIONS, IllegalTransition, follow, of_sweep

EVENTS = {"claim", "cancel", "stop", "finish", "fail", "vanish", "resume"}


def test_every_pair_is_legal_or_refused():
    for state, event in itertools.product(STATES, EVENTS):
        if (state, event) in TRANSITIONS:
            assert follow(state, event) in STATES
        else:
            with pytest.raises(IllegalTransition):
                follow(state, event, "1234abcd")


def test_a_worker_that_is_gone_after_a_cancel_is_cancelled_not_lost():
    assert follow("cancelling", "vanish") == "cancelled"
    assert follow("running", "vanish") == "lost"


@pytest.mark.parametrize(
    ("children", "shown"),
    [
        ([], "done"),
        (["queued", "queued"], "queued"),
        (["done", "queued"], "running"),
        (["done", "running", "failed"], "running"),
        (["cancelling", "running"], "cancelling"),
        (["done", "failed", "lost"], "failed"),
        (["done", "lost", "cancelled"], "lost"),
        (["done", "cancelled"], "cancelled"),
        (["done", "done"], "done"),
    ],
)
def test_a_sweep_shows_what_needs_attention(children, shown):
    assert of_sweep(children) == shown


# how far runs give way: the environment, then what was chosen, then the default ---------------------


def test_the_environment_stands_above_what_was_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADVIZ_HOME", str(tmp_path))
    monkeypatch.delenv(NICENESS_VARIABLE, raising=False)
    assert niceness() == NICENESS
    choose_niceness(0)
    assert niceness() == 0
    monkeypatch.setenv(NICENESS_VARIABLE, "19")
    assert niceness() == 19
    monkeypatch.setenv(NICENESS_VARIABLE, "no number")
    assert niceness() == NICENESS
    with pytest.raises(RunError, match="0 to 19"):
        choose_niceness(-5)


# what the record of a run says of the error that ended it -------------------------------------------


# torch may lack the type, and needs a device to raise it
AcceleratorError = type("AcceleratorError", (RuntimeError,), {})


@pytest.mark.parametrize(
    ("error", "memory"),
    [
        (MemoryError(), True),
        (AcceleratorError("CUDA error: out of memory"), True),
        (AcceleratorError("CUDA error: an illegal memory access was encountered"), False),
        (OSError(errno.ENOMEM, "no memory"), True),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate"), True),
        (RuntimeError("memory format is not contiguous"), False),
    ],
)
def test_only_want_of_memory_is_called_out_of_memory(error: BaseException, memory: bool) -> None:
    assert is_out_of_memory(error) is memory
    assert outcome_of(error)["code"] == (OUT_OF_MEMORY if memory else FAULT)


# the time that a run still takes: it falls while a step runs, and only steps like those to come are -


def test_it_falls_while_a_step_runs_and_never_rises_with_it():
    pace = Pace()
    pace.stepped(0.0, 0, 10)
    pace.stepped(10.0, 1, 10)  # ten seconds
    said = [pace.remaining(10.0 + t) for t in range(0, 31)]
    assert said[0] == 90.0
    assert said[5] == 85.0
    assert all(a >= b for a, b in pairwise(said))
    assert said[-1] == 80.0  # overdue: the steps after it are still to come, and no more


def test_neither_loading_nor_full_models_are_taken_for_steps():
    pace = Pace()
    pace.stepped(0.0, 0, 12)
    pace.stepped(30.0, 1, 12, full=1)  # loading and the model as given
    pace.stepped(31.0, 2, 12, full=2)  # found in the cache
    assert (pace.each, pace.remaining(35.0)) == (None, None)
    pace.stepped(36.0, 2, 12, full=2)  # a mask is chosen: no step, but part of the one that follows
    pace.stepped(51.0, 3, 12, full=2)
    assert pace.each == pytest.approx(20.0)
    assert pace.remaining(51.0) == pytest.approx(9 * 20.0)
    pace.stepped(61.0, 4, 12, full=2)
    assert pace.each == pytest.approx(15.0)


def test_what_an_earlier_attempt_made_took_no_time_of_this_one():
    pace = Pace()
    pace.stepped(100.0, 5, 8, full=1)
    assert pace.remaining(110.0) is None
    pace.stepped(104.0, 6, 8, full=1)
    assert (pace.each, pace.remaining(105.0)) == (4.0, 7.0)


def test_parts_of_steps_count():
    pace = Pace()
    pace.stepped(0.0, 0, 2)
    pace.stepped(5.0, 0.5, 2)  # ten seconds for a step
    assert pace.remaining(5.0) == pytest.approx(15.0)
    pace.stepped(12.0, 1.2, 2)
    pace.stepped(16.0, 1.6, 2)
    assert pace.remaining(16.0) == pytest.approx(4.0)


def test_several_steps_at_a_time_share_it():
    pace = Pace()
    pace.stepped(0.0, 0, 8)
    pace.stepped(8.0, 4, 8)
    assert (pace.each, pace.remaining(8.0)) == (2.0, 8.0)
