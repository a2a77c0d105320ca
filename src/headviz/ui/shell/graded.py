"""The grades of scores that are known of the shown model and data: the user's own, else those recorded on the demo.

What the user's own say is kept until the server ends. What they were made of is in the store, so that grading again
takes a moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...analyses import board

if TYPE_CHECKING:
    from ...analyses.grades import Grades

Source = tuple[object, ...]  # a view's
MOST = 256  # models and data whose grades are kept
_own: dict[Source, Grades] = {}


def remember(source: Source, found: Grades) -> None:
    if len(_own) >= MOST:
        _own.clear()
    _own[source] = found


def own(source: Source) -> Grades | None:
    return _own.get(source)


def best(source: Source, on_demo: bool) -> str | None:
    """The score to prune by here; None where nothing is graded, or nothing is shown to be better than chance."""
    found = own(source)
    if found is None:
        recorded = board.recorded() if on_demo else None
        found = None if recorded is None else recorded.grades
    return None if found is None or found.best in found.untold else found.best


def sorted_names(source: Source, names: Sequence[str]) -> list[str]:
    """The names in the order of the user's own grades; what these do not have comes last. Unchanged without any."""
    found = own(source)
    order = {} if found is None else {g.score: at for at, g in enumerate(found)}
    return sorted(names, key=lambda name: order.get(name, len(order)))
