"""The transition table, against the rules it was written from."""

import itertools

import pytest

from headviz.runs.record import STATES, TRANSITIONS, IllegalTransition, follow, of_sweep

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
