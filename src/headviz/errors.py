"""Errors a user caused and can mend.

Their text is shown as it is, on the page and on the command line, so it says in one
line what is wrong, which choices are valid, and what to do. Anything that is not a
``UserError`` is a fault of headviz itself.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """Something the user asked for cannot be done; the text says why and what to do."""


class ModelError(UserError):
    """A model cannot be loaded, or cannot do what was asked of it."""


class TaskError(UserError):
    """A task or its data cannot be read, or does not fit the model."""


class MaskError(UserError):
    """A mask or a head does not fit the model."""


class OptionError(UserError):
    """An option's value is outside its range."""


class StoreError(UserError):
    """The cache folder cannot be used."""


class RunError(UserError):
    """A background run cannot be started, changed or read."""


class Cancelled(Exception):
    """The caller asked a long computation to stop. Not a failure."""


def unknown_choice(kind: str, name: object, valid: Iterable[str]) -> str:
    """One line for a misspelt name: the nearest valid one first, then all of them."""
    choices = list(valid)
    near = get_close_matches(str(name), choices, n=1)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    return f"Unknown {kind} '{name}'.{hint} Choose one of: {', '.join(choices)}."
