"""The transition table, against the rules it was written from."""

import itertools

import pytest

from headviz.runs.record import ACTIVE, ENDED, RESUMABLE, STATES, TRANSITIONS, IllegalTransition, follow, of_sweep

EVENTS = {"claim", "cancel", "stop", "finish", "fail", "vanish", "resume"}


def test_every_pair_is_legal_or_refused():
    for state, event in itertools.product(STATES, EVENTS):
        if (state, event) in TRANSITIONS:
            assert follow(state, event) in STATES
        else:
            with pytest.raises(IllegalTransition):
                follow(state, event, "1234abcd")


def test_active_and_ended_and_queued_cover_all():
    assert ACTIVE | ENDED | {"queued"} == set(STATES)
    assert not ACTIVE & ENDED
    assert {"done", "broken"} == ENDED - RESUMABLE


def test_only_claiming_makes_a_run_active():
    for (state, event), after in TRANSITIONS.items():
        if after in ACTIVE and state not in ACTIVE:
            assert event == "claim"


def test_an_ended_run_goes_on_only_by_resume_and_done_never():
    leaving = {(s, e) for s, e in TRANSITIONS if s in ENDED}
    assert leaving == {(s, "resume") for s in RESUMABLE}


def test_each_active_state_can_end_in_every_way_its_worker_can():
    for state in ACTIVE:
        for event in ("finish", "fail", "vanish", "stop"):
            assert TRANSITIONS[state, event] in ENDED


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
