"""Number fields whose range is checked when the form is read.

A streamlit field with bounds turns red for a wrong number, and the page silently uses the number before. Here a wrong
number is refused with a message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ...errors import OptionError

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

N = TypeVar("N", int, float)


def field(place: DeltaGenerator, label: str, low: N, high: N, value: N, key: str, **more: Any) -> Callable[[], N]:
    """A field for a number from ``low`` to ``high``. Gives a function that reads it, or raises ``OptionError``."""
    found = place.number_input(label, value=value, key=key, **more)
    return lambda: within(label, low, high, type(value)(found))


def within(label: str, low: N, high: N, value: N) -> N:
    """The number, if it is in its range."""
    if low <= value <= high:
        return value
    kind = "a whole number" if isinstance(low, int) else "a number"
    raise OptionError(f"“{label}” is {value:,g}: give {kind} from {low:,g} to {high:,g}.")
