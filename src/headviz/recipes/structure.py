"""The parts of a recipe, and how they are written as Python and as a command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Name:
    """A variable, or a dotted name such as ``clf.labels``. Never holds what a user wrote."""

    text: str


@dataclass(frozen=True)
class Call:
    """``function(arguments, keyword=value)``. Arguments are values, or parts of a recipe themselves."""

    function: str | Get
    arguments: tuple[Any, ...] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)
    folded: bool = False  # each keyword on a line of its own


@dataclass(frozen=True)
class Get:
    """An attribute of something, such as ``headviz.evaluate(…).metrics``."""

    of: Any
    attribute: str


@dataclass(frozen=True)
class Item:
    """One element, such as ``maps.attention[3, 5]``."""

    of: Any
    index: tuple[int, ...]


@dataclass(frozen=True)
class Each:
    """``[value for variable in over]``."""

    value: Any
    variable: str
    over: Any


@dataclass(frozen=True)
class Lambda:
    variable: str
    value: Any


@dataclass(frozen=True)
class Let:
    """``name = value``."""

    name: str
    value: Any


@dataclass(frozen=True)
class Import:
    """``import module``, or ``from module import names``."""

    module: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Shown:
    """A line that shows several values, as a notebook does."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Command:
    """``headviz words --option value``. Options without a value (None or an empty text) are left out."""

    words: tuple[str, ...]
    options: tuple[tuple[str, Any], ...] = ()

    def parts(self) -> list[str]:
        """``headviz words``, then each option with its value, quoted for a shell."""
        given = [(name, said(value)) for name, value in self.options]
        return [
            shlex.join(["headviz", *self.words]),
            *(f"--{name} {shlex.quote(text)}" for name, text in given if text),
        ]

    def with_options(self, **changed: Any) -> Command:
        """The same command with other values for some options; new ones come last."""
        new = {name.replace("_", "-"): value for name, value in changed.items()}
        kept = [(name, new.pop(name, value)) for name, value in self.options]  # an option may be given twice
        return Command(self.words, (*kept, *new.items()))


@dataclass(frozen=True)
class Recipe:
    """Lines of Python (``Import``, ``Let``, ``Call``, ``Shown``), and the command that gives the same."""

    lines: tuple[Any, ...]
    command: Command
    folded: bool = False  # each option of the command on a line of its own

    def written(self) -> tuple[str, str]:
        """The Python and the command."""
        command = (" \\\n  " if self.folded else " ").join(self.command.parts())
        return "\n".join(map(python, self.lines)), command


def said(value: Any) -> str:
    """A value as the command line takes it: lists with commas, nothing as an empty text."""
    if value is None:
        return ""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(map(str, value))
    return str(value)


def python(part: Any) -> str:
    """A part of a recipe, or a plain value, as Python."""
    match part:
        case Name(text):
            return text
        case Call(function, arguments, keywords, folded):
            name = function if isinstance(function, str) else python(function)
            words = [*map(python, arguments), *(f"{k}={python(v)}" for k, v in keywords.items())]
            if folded:
                return f"{name}(\n" + "".join(f"    {word},\n" for word in words) + ")"
            return f"{name}({', '.join(words)})"
        case Get(of, attribute):
            return f"{python(of)}.{attribute}"
        case Item(of, index):
            return f"{python(of)}[{', '.join(map(str, index))}]"
        case Each(value, variable, over):
            return f"[{python(value)} for {variable} in {python(over)}]"
        case Lambda(variable, value):
            return f"lambda {variable}: {python(value)}"
        case Let(name, value):
            return f"{name} = {python(value)}"
        case Import(module, names):
            return f"from {module} import {', '.join(names)}" if names else f"import {module}"
        case Shown(values):
            return ", ".join(map(python, values))
        case list():
            return f"[{', '.join(map(python, part))}]"
    return repr(part)
