"""The life of a run, in one pure table: what may follow what. Nothing here reads or writes anything.

queued      its record is written, nothing runs yet
running     a worker process carries it
cancelling  asked to stop; the worker has not confirmed yet
cancelled   stopped because somebody asked; finished steps are kept, it can be resumed
failed      stopped by an error that the record names; it can be resumed once that is mended
lost        the worker went away without a word (killed, machine restarted); it can be resumed
done        every step is there
"""

from __future__ import annotations

from ..errors import RunError

QUEUED, RUNNING, CANCELLING = "queued", "running", "cancelling"
CANCELLED, FAILED, LOST, DONE = "cancelled", "failed", "lost", "done"

STATES = (QUEUED, RUNNING, CANCELLING, CANCELLED, FAILED, LOST, DONE)
ACTIVE = frozenset({RUNNING, CANCELLING})  # a process should be there
ENDED = frozenset({CANCELLED, FAILED, LOST, DONE})  # no process may be there
RESUMABLE = frozenset({CANCELLED, FAILED, LOST})

CLAIM = "claim"  # a worker takes the run
CANCEL = "cancel"  # somebody asks it to stop
STOP = "stop"  # the worker has stopped as asked
FINISH = "finish"  # the last step is recorded
FAIL = "fail"  # an error ended it
VANISH = "vanish"  # the worker is gone without an outcome
RESUME = "resume"  # somebody asks to go on from the last step

EVENTS = (CLAIM, CANCEL, STOP, FINISH, FAIL, VANISH, RESUME)

# (state, event) -> state; a pair that is not here is refused
TRANSITIONS = {
    (QUEUED, CLAIM): RUNNING,
    (QUEUED, CANCEL): CANCELLED,
    (QUEUED, FAIL): FAILED,  # its worker could not even be started
    (RUNNING, CANCEL): CANCELLING,
    (RUNNING, STOP): CANCELLED,  # the worker saw the request before the registry did
    (RUNNING, FINISH): DONE,
    (RUNNING, FAIL): FAILED,
    (RUNNING, VANISH): LOST,
    (CANCELLING, STOP): CANCELLED,
    (CANCELLING, FINISH): DONE,  # the last step was over before the request was seen
    (CANCELLING, FAIL): FAILED,
    (CANCELLING, VANISH): CANCELLED,  # gone, as was asked
    (CANCELLED, RESUME): QUEUED,
    (FAILED, RESUME): QUEUED,
    (LOST, RESUME): QUEUED,
}

_WHY_NOT = {
    CLAIM: "is {state}: only a queued run can be taken by a worker",
    CANCEL: "is {state}: there is nothing to cancel",
    RESUME: "is {state}: only a cancelled, failed or lost run can be resumed",
}


class IllegalTransition(RunError):
    """A run cannot do this in the state it is in."""


def follow(state: str, event: str, name: str = "") -> str:
    """The state after an event, or ``IllegalTransition`` with the reason."""
    after = TRANSITIONS.get((state, event))
    if after is None:
        reason = _WHY_NOT.get(event, "is {state}: '{event}' cannot happen now").format(state=state, event=event)
        raise IllegalTransition(f"Run {name} {reason}." if name else f"The run {reason}.")
    return after


def of_sweep(children: list[str]) -> str:
    """The state that a sweep shows, from the states of its runs."""
    have = set(children)
    if not have:
        return DONE
    if CANCELLING in have:
        return CANCELLING
    if RUNNING in have:
        return RUNNING
    if QUEUED in have:
        return QUEUED if have == {QUEUED} else RUNNING
    for worst in (FAILED, LOST, CANCELLED):
        if worst in have:
            return worst
    return DONE
