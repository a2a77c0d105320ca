"""Recipes: the Python and the command that a page or a report prints, and that give its result again.

Each place writes its recipe as a template; what a user wrote goes through ``repr`` or the shell's quoting.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import Any

Options = tuple[tuple[str, Any], ...]  # of a command, in order; an option may be given twice


class Code(str):
    """Python that is printed without quotes. Never holds what a user wrote."""

    def __repr__(self) -> str:
        return str(self)


def call(function: str, *arguments: Any, **keywords: Any) -> Code:
    """``function(arguments, keyword=value)``."""
    return Code(f"{function}({', '.join([*map(repr, arguments), *keyword_arguments(keywords)])})")


def keyword_arguments(values: dict[str, Any]) -> list[str]:
    return [f"{name}={value!r}" for name, value in values.items()]


def command(words: str, options: Iterable[tuple[str, Any]] = (), folded: bool = False) -> str:
    """``headviz words --option value …``. Options without a value (None or an empty text) are left out.

    ``folded`` puts each option on a line of its own.
    """
    texts = [(name, _option_value(value)) for name, value in options]
    parts = [f"headviz {words}", *(f"--{name} {shlex.quote(text)}" for name, text in texts if text)]
    return (" \\\n  " if folded else " ").join(parts)


def _option_value(value: Any) -> str:
    """A value as the command line takes it: lists with commas, None as an empty text."""
    if value is None:
        return ""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(map(str, value))
    return str(value)
