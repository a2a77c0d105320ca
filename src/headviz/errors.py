"""Errors a user caused and can mend.

Their text is shown as it is, on the page and on the command line, so it says in one
line what is wrong, which choices are valid, and what to do. Anything that is not a
``UserError`` is a fault of headviz itself.

Programs distinguish errors by type, ``code`` and ``parameters``, never by their text.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from difflib import get_close_matches
from numbers import Integral
from typing import Any, ClassVar, Self, TypeVar
from unicodedata import category

LONGEST = 1000  # characters of a message
LARGEST_SEED = 2**32 - 1  # numpy's
MOST_BEAMS = 64  # of a search for a translation
MOST = 10**9  # more of anything than fits into memory
INTERNAL = 1  # exit status of a fault of headviz itself
NO_ROOM = "There is not enough memory to start. Free some, or raise the limit (ulimit -v)."


def one_line(text: str) -> str:
    """A text in one line that a terminal can print: line ends, terminal commands and the like are written out.

    Messages quote users and files, whose texts must neither break the line nor control the terminal. A very long text
    is shortened in the middle.
    """
    if len(text) > LONGEST:
        text = f"{text[: LONGEST - 300]} … {text[-290:]}"
    if text.isprintable():
        return text
    return "".join(c if category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp") else ascii(c)[1:-1] for c in text)


class UserError(Exception):
    """Something the user asked for cannot be done; the text says why and what to do.

    ``code`` is a short name that stays the same when the text changes, ``parameters`` are the values in the text.
    ``resumable`` says whether a run that this error ended can go on once the reason is gone.
    """

    exit_status: ClassVar[int] = 2
    code = "refused"

    def __init__(self, message: str, *, code: str | None = None, resumable: bool = True, **parameters: Any) -> None:
        super().__init__(one_line(message))
        self.code = code or type(self).code
        self.resumable = resumable
        self.parameters = parameters

    def reworded(self, message: str) -> Self:
        """The same error in other words."""
        return _restored(type(self), message, self.__dict__)

    def __reduce__(self) -> tuple[Any, ...]:
        """Travels between processes whole, also where a subclass is made from other arguments."""
        return _restored, (type(self), str(self), self.__dict__)


class ModelError(UserError):
    """A model cannot be loaded, or cannot do what was asked of it."""

    code = "model"


class NotFinite(ModelError):
    """A model answers NaN or infinity."""


UNTRAINED = "untrained-head"  # code of the ModelError for pre-trained weights without a classification head


class TaskError(UserError):
    """A task or its data cannot be read, or does not fit the model."""

    code = "task"


class NotDownloaded(UserError):
    """A model or data set of the hub is not on this machine, and nobody has asked for it. ``fetch`` downloads it."""

    code = "not-downloaded"

    def __init__(self, message: str, name: str, fetch: Callable[[], object]) -> None:
        super().__init__(message, name=name)
        self.fetch = fetch


class MaskError(UserError):
    """A mask or a head does not fit the model."""

    code = "mask"


class OptionError(UserError):
    """An option's value is outside its range."""

    code = "option"


class RunError(UserError):
    """A background run cannot be started, changed or read."""

    code = "run"


class Note(str):
    """A remark to the user, with its code and parameters for programs that word it themselves."""

    code: str
    parameters: dict[str, Any]

    def __new__(cls, message: str, *, code: str, **parameters: Any) -> Self:
        note = super().__new__(cls, message)
        note.code, note.parameters = code, parameters
        return note


class Cancelled(Exception):
    """The caller asked a long computation to stop. Not a failure."""

    exit_status: ClassVar[int] = 130


E = TypeVar("E", bound=UserError)


def _restored(kind: type[E], message: str, fields: dict[str, Any]) -> E:
    error = kind.__new__(kind, one_line(message))
    error.__dict__.update(fields)
    return error


def shown(value: object) -> str:
    """A value as Python writes it, in at most 60 characters."""
    try:
        text = repr(value)
    except ValueError:  # a whole number of thousands of digits
        return "a number of very many digits"
    return text if len(text) <= 60 else text[:57] + "…"


def require_kind(value: object, kind: type, example: str) -> None:
    """Refuse an argument of another type; ``example`` says how to come by the right one."""
    if not isinstance(value, kind):
        name = kind.__name__
        raise OptionError(
            f"{'An' if name[0] in 'AEIOU' else 'A'} {name} is needed, not {type(value).__name__}: {example}."
        )


def whole_number(value: object, name: str, least: int, most: int = MOST) -> None:
    """An ``OptionError`` unless this is a whole number from ``least`` to ``most``, numpy's included."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) <= most:
        raise OptionError(f"{name} is a whole number of at least {least} and at most {most:,}, not {shown(value)}.")


def seed_number(value: object) -> None:
    """An ``OptionError`` for a seed that not every random number generator accepts."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= int(value) <= LARGEST_SEED:
        raise OptionError(f"A seed is a whole number of at least 0 and at most {LARGEST_SEED}, not {shown(value)}.")


def is_one_of(name: object, valid: Container[str]) -> bool:
    """Whether a name is among the valid ones. Anything that is not a string is never a valid name."""
    return isinstance(name, str) and name in valid


def unknown_choice(kind: str, name: object, valid: Iterable[str]) -> str:
    """One line for a misspelt name: the nearest valid one first, then all of them. ``kind``: "option of 'taylor'"."""
    choices = list(valid)
    text = (name if isinstance(name, str) else shown(name))[:80]
    near = get_close_matches(text, choices, n=1)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    what, of, owner = kind.partition(" of ")
    return f"Unknown {what} '{text}'{of}{owner}.{hint} Choose one of: {', '.join(choices)}."
