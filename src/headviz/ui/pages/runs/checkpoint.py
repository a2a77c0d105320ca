"""The state in a pruning run's checkpoint, kept in memory for a few runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....errors import UserError
from ...shell.memo import Memo

if TYPE_CHECKING:
    from ....pruning.state import State
    from ....runs.reading import RunView

_states: Memo[State | None] = Memo(16)


def state_of(view: RunView) -> State | None:
    """The state so far; None before the first step, or if the checkpoint cannot be read."""
    return _states.get((view.record.id, len(view.steps), len(view.baseline), view.state), lambda: _read(view))


def _read(view: RunView) -> State | None:
    from ....runs.reading import state_of as read

    try:
        return read(view.record)
    except UserError:  # written by another version; the recorded steps are still shown
        return None
