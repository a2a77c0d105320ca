"""The time that a run still takes: it falls while a step runs, and only steps like those to come are timed."""

from __future__ import annotations

from itertools import pairwise

import pytest

from headviz.runs.carrier import Pace


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


def test_several_steps_at_a_time_share_it():
    pace = Pace()
    pace.stepped(0.0, 0, 8)
    pace.stepped(8.0, 4, 8)
    assert (pace.each, pace.remaining(8.0)) == (2.0, 8.0)
