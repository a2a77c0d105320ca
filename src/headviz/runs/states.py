"""The states of a run and the table of what may follow what. Nothing here reads or writes files.

queued      its record is written, nothing runs yet
running     a worker process works on it
cancelling  asked to stop; the worker has not confirmed yet
cancelled   stopped because somebody asked; finished steps are kept, it can be resumed
failed      stopped by an error, which the record names; it can be resumed once its cause is removed
lost        the worker ended without a message (killed, machine restarted); it can be resumed
done        every step is finished
broken      its record cannot be read; no row of the registry says this
"""

from __future__ import annotations

from ..errors import RunError

QUEUED, RUNNING, CANCELLING = "queued", "running", "cancelling"
CANCELLED, FAILED, LOST, DONE, BROKEN = "cancelled", "failed", "lost", "done", "broken"

STATES = (QUEUED, RUNNING, CANCELLING, CANCELLED, FAILED, LOST, DONE, BROKEN)
ACTIVE = frozenset({RUNNING, CANCELLING})  # a process should be there
ENDED = frozenset({CANCELLED, FAILED, LOST, DONE, BROKEN})  # no process may be there
RESUMABLE = frozenset({CANCELLED, FAILED, LOST})

CLAIM = "claim"  # a worker takes the run
CANCEL = "cancel"  # somebody asks it to stop
STOP = "stop"  # the worker has stopped as asked
FINISH = "finish"  # the last step is recorded
FAIL = "fail"  # an error ended it
VANISH = "vanish"  # the worker has ended without an outcome
RESUME = "resume"  # somebody asks to continue from the last step

# (state, event) -> state; other pairs are refused
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
    (CANCELLING, FINISH): DONE,  # the last step ended before the request was seen
    (CANCELLING, FAIL): FAILED,
    (CANCELLING, VANISH): CANCELLED,  # it has ended, as was asked
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
    """A run cannot do this in its present state."""


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
    for worst in (BROKEN, FAILED, LOST, CANCELLED):
        if worst in have:
            return worst
    return DONE
