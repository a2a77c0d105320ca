"""Options, each declared once.

The fields of a frozen dataclass of ``Options`` are made by ``option``. From that declaration come the check with its
message, JSON, the flag of the command line with its help, the field in the dashboard's forms
(``ui/shell/controls.py``) and the row of the reference (``docs/options.md``). Imports nothing heavy.

>>> @dataclass(frozen=True)
... class Example(Options):
...     epochs: float = option(3.0, "times through the data", least=0, above=True, most=100)
>>> Example.from_dict({"epochs": 2}).to_dict()
{'epochs': 2}
>>> Example(0)
Traceback (most recent call last):
...
headviz.errors.OptionError: epochs is a number above 0, at most 100, not 0.
"""

from __future__ import annotations

import argparse
import json
import math
import types
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, MISSING, Field, dataclass, field, fields, replace
from functools import cache
from numbers import Integral, Real
from typing import Any, ClassVar, Self, TypeVar, get_args, get_origin, get_type_hints

from .errors import LARGEST_SEED, MOST, OptionError, shown, unknown_choice
from .results import plain

T = TypeVar("T")
Pairs = tuple[tuple[str, Any], ...]  # options of something else, by name; a JSON object in JSON
LARGEST = 1e37  # larger numbers would overflow float32
UNSET: Any = object()


@dataclass(frozen=True)
class Option:
    """One option. ``kind`` is ``int``, ``float``, ``bool``, ``str``, ``Pairs`` or a class of ``Options``; by
    default it is the type of the default, and ``object`` accepts anything. ``choices`` are the valid values, or a
    mapping from each to its label. An option without a ``title`` is in no form."""

    name: str
    default: Any = UNSET
    help: str = ""
    kind: Any = None
    _: KW_ONLY
    least: float | None = None
    most: float | None = None
    above: bool = False  # ``least`` itself is not valid
    choices: Collection[Any] | None = None
    several: bool = False  # a tuple of such values; a list in JSON, "a,b" as text
    each: str = ""  # what one of several is called; then there is at least one, and each once
    optional: bool = False  # None is valid
    title: str = ""  # of the field in a form
    percent: bool = False  # a share that forms show in per cent
    flag: str | None = None  # of the command line; None = the name, "" = no flag
    metavar: str = ""
    usual: str = ""  # what the default means, where its value does not say it
    before: Any = UNSET  # the value in JSON from before the option existed; it is not written to JSON
    required: bool = False  # the command line must name it

    def __post_init__(self) -> None:
        if self.kind is None:
            kind = str if self.default in (None, UNSET) else type(self.default)
            object.__setattr__(self, "kind", kind)
        if self.default is None:
            object.__setattr__(self, "optional", True)

    # what is valid ------------------------------------------------------------------------------

    @property
    def bounds(self) -> tuple[float, float]:
        least, most = (0, MOST) if self.kind is int else (-LARGEST, LARGEST)
        return (least if self.least is None else self.least), (most if self.most is None else self.most)

    @property
    def valid(self) -> str:
        """What one value is, in words."""
        if self.kind is bool:
            return "true or false"
        if self.kind is str:
            return "a text"
        low, high = self.bounds
        if self.kind is int and high == MOST:
            return f"a whole number of at least {int(low):,} and at most {MOST:,}"
        if self.kind is int:
            return f"a whole number from {int(low):,} to {int(high):,}"
        noun = "a share" if (low, high) == (0, 1) and not self.above else "a number"
        return f"{noun} above {low:g}, at most {high:g}" if self.above else f"{noun} from {low:g} to {high:g}"

    def fits(self, value: Any) -> bool:
        """Whether one value has the right type and lies within the bounds."""
        if self.kind in (bool, str):
            return isinstance(value, self.kind)
        if self.kind not in (int, float):
            return True
        if isinstance(value, bool) or not isinstance(value, Integral if self.kind is int else Real):
            return False
        if isinstance(value, Integral) and abs(int(value)) > 2**62:
            return False  # no float can hold it
        (low, high), number = self.bounds, float(value)
        return math.isfinite(number) and low <= number <= high and not (self.above and number == low)

    def checked(self, value: Any) -> Any:
        """The value with lists as tuples and JSON objects as options; ``OptionError`` if it is not valid."""
        if value is None and self.optional:
            return None
        if self.kind == Pairs:
            try:
                return tuple(sorted((str(name), setting) for name, setting in dict(value).items()))
            except (TypeError, ValueError):
                raise OptionError(f"{self.name} are values by name, not {shown(value)}.") from None
        if isinstance(self.kind, type) and issubclass(self.kind, Options):
            return value if isinstance(value, self.kind) else self.kind.from_options(value)
        if not self.several:
            return self._checked(value, self.name)
        if not isinstance(value, list | tuple):
            example = f", such as [{value}]," if isinstance(value, int | float) else ""
            raise OptionError(f"{self.name} is a list{example or ','} not {shown(value)}.")
        name = f"A {self.each}" if self.each else f"A value of {self.name}"
        values = tuple(self._checked(v, name) for v in value)
        if self.each and not values:
            raise OptionError(f"Give at least one {self.each}.")
        if self.each and len(set(values)) < len(values):
            raise OptionError(f"Each {self.each} may be given once; {', '.join(map(str, values))} repeats one.")
        return values

    def _checked(self, value: Any, name: str) -> Any:
        value = value.item() if hasattr(value, "dtype") and hasattr(value, "item") else value  # numpy's numbers
        # the default is valid even where it is none of the choices
        if self.choices is not None and not (isinstance(value, str | int | float | None) and value in self.choices):
            if value != self.default:
                # a table that others add to says where an absent entry comes from
                message = getattr(self.choices, "unknown", None)
                noun = self.each or self.name
                raise OptionError(message(value) if message else unknown_choice(noun, value, map(str, self.choices)))
        elif not self.fits(value):
            raise OptionError(f"{name} is {self.valid}, not {shown(value)}.")
        return value

    # the command line ---------------------------------------------------------------------------

    @property
    def dest(self) -> str:
        """The attribute of the parsed arguments."""
        return (self.flag or self.name).replace("-", "_")

    @property
    def usually(self) -> str:
        """The default in words."""
        if self.usual or self.default in (None, UNSET, "", ()) or isinstance(self.default, bool | Options):
            return self.usual
        if self.several:
            return ",".join(map(str, self.default))
        return f"{self.default:g}" if isinstance(self.default, float) else str(self.default)

    @property
    def about(self) -> str:
        """The help with the valid names and the default."""
        names = "" if self.choices is None else f": {', '.join(map(str, self.choices))}"
        usual = f" ({self.usually})" if self.usually else ""
        return f"{self.help}{names}{usual}"

    def read(self, text: str) -> Any:
        """The value of a text; ``OptionError`` if it is none. Names are checked later, with all other options."""
        if self.kind == Pairs:
            return _pair(text)
        if self.several:
            single, words = replace(self, several=False), [word.strip() for word in text.split(",") if word.strip()]
            if not words:
                raise OptionError("it is empty: name one, or leave the option out")
            return tuple(single.read(word) for word in words)
        if self.kind in (int, float):
            try:
                value = self.kind(text) if len(text) <= 40 else None  # Python refuses thousands of digits on its own
            except ValueError:
                value = None
            if not self.fits(value):
                raise OptionError(f"'{short(text)}' is not {self.valid}")
            return value
        if self.kind is bool:
            if text.lower() not in _SWITCHED:
                raise OptionError(f"'{short(text)}' is not yes or no")
            return _SWITCHED[text.lower()]
        if not text.strip() and self.default is None:
            raise OptionError("it is empty: name one, or leave the option out")
        return text

    def of_flag(self, text: str) -> Any:
        """The same for argparse, which puts the flag's name before the error."""
        try:
            return self.read(text)
        except OptionError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    def add_to(self, parser: Any, default: Any = None, required: bool = False) -> None:
        """The flag. ``default`` stands in the parsed arguments where it is not given."""
        flag = "--" + (self.flag or self.name).replace("_", "-")
        described = self if default is None else replace(self, default=default)
        settings: dict[str, Any] = {"help": described.about.replace("%", "%%"), "default": default, "dest": self.dest}
        if required or self.required:
            settings["required"] = True
        if self.kind is bool:
            settings["help"] = f"do not {settings['help']}" if self.default else settings["help"]
            parser.add_argument(flag, action="store_const", const=not self.default, **settings)
            return
        if self.kind == Pairs:
            settings["action"] = "append"
        metavar = self.metavar or flag[2:].upper()
        parser.add_argument(flag, type=self.of_flag, metavar=metavar, **settings)


_SWITCHED = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def short(text: str) -> str:
    """A text as it is, or its beginning where it is long."""
    return text if len(text) <= 60 else text[:57] + "…"


def _pair(text: str) -> tuple[str, Any]:
    """NAME=VALUE, the value as JSON where it is that."""
    name, _, value = text.partition("=")
    if not name or not value:
        raise OptionError(f"'{short(text)}' is not NAME=VALUE: a name, = and its value")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


# declaring ------------------------------------------------------------------------------------


def option(default: Any = UNSET, help: str = "", choices: Collection[Any] | None = None, **settings: Any) -> Any:
    """A field of a dataclass with its declaration: see ``Option``. Its kind follows from the field's annotation.

    A class as ``default`` is called to make it.
    """
    declaration = {"help": help, "choices": choices, **settings}
    if isinstance(default, type):
        return field(default_factory=default, metadata=declaration)
    return field(default=MISSING if default is UNSET else default, metadata=declaration)


def seed_option(help: str = "seed", **settings: Any) -> Any:
    """A field for a seed that every random number generator accepts."""
    return option(0, help, most=LARGEST_SEED, metavar="S", **settings)


def declared(cls: Any) -> dict[str, Option]:
    """The options of a dataclass by name, in the order of its fields; those without a declaration are checked by their
    annotation alone."""
    return _declared_by(cls)


@cache
def _declared_by(cls: type) -> dict[str, Option]:
    hints = get_type_hints(cls)
    return {f.name: _declared(f, hints[f.name]) for f in fields(cls) if f.init}


def _declared(f: Field[Any], hint: Any) -> Option:
    default = UNSET if f.default is MISSING else f.default
    default = default if f.default_factory is MISSING else f.default_factory()
    members = get_args(hint) if isinstance(hint, types.UnionType) else (hint,)  # of a union
    kinds = [member for member in members if member is not type(None)]
    kind = kinds[0] if len(kinds) == 1 else object
    several = get_origin(kind) is tuple and get_args(kind)[1:] == (...,) and kind != Pairs
    kind = get_args(kind)[0] if several else kind
    if kind != Pairs and not isinstance(kind, type):
        kind, several = object, False
    settings = {"optional": len(kinds) < len(members), "several": several, **f.metadata}
    return Option(f.name, default, kind=kind, **settings)


class Options:
    """Base of frozen dataclasses of options. What options demand of each other is checked in a ``__post_init__`` of
    the class's own, after this one."""

    called: ClassVar[str] = "option"  # in messages, such as "option of a pruning plan"

    def __post_init__(self) -> None:
        for name, entry in declared(type(self)).items():
            value = getattr(self, name)
            if (valid := entry.checked(value)) is not value:
                object.__setattr__(self, name, valid)

    def to_dict(self) -> dict[str, Any]:
        """JSON's own types; ``from_dict`` reads them back to an equal record."""
        out: dict[str, Any] = {}
        for name, entry in declared(type(self)).items():
            value = getattr(self, name)
            if entry.before is UNSET or value != entry.before:
                out[name] = plain(dict(value) if entry.kind == Pairs and value is not None else value)
        return out

    @classmethod
    def before(cls) -> dict[str, Any]:
        """What JSON means by options that it lacks because it was written before them."""
        return {name: entry.before for name, entry in declared(cls).items() if entry.before is not UNSET}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """The inverse of ``to_dict``. An option that it lacks means what it meant when it was written."""
        return cls.from_options({**cls.before(), **stored} if isinstance(stored, Mapping) else stored)

    @classmethod
    def from_options(cls, values: Mapping[str, Any]) -> Self:
        """A new record from options by name; those left out take their defaults."""
        return read_options(cls, values, cls.called)


def read_options(cls: type[T], values: Mapping[str, Any], called: str) -> T:
    """A dataclass from options by name; ``OptionError`` for a misspelt or missing name and for a wrong value."""
    options = declared(cls)
    if not isinstance(values, Mapping):
        raise OptionError(f"Options are given by name, as a JSON object, not as {values!r}.")
    for name in values:
        if name not in options:
            if not options:
                owner = called.partition(" of ")[2] or called
                raise OptionError(f"{owner} has no options, so '{name}' cannot be set.")
            raise OptionError(unknown_choice(called, name, options))
    for name, entry in options.items():
        if entry.default is UNSET and name not in values:
            raise OptionError(f"The {called} '{name}' is missing.")
    return cls(**{name: options[name].checked(value) for name, value in values.items()})


# the command line -----------------------------------------------------------------------------


def with_flags(options: type | Iterable[Option], without: Collection[str] = ()) -> Iterator[Option]:
    """The options that have a flag."""
    entries = declared(options).values() if isinstance(options, type) else options
    return (entry for entry in entries if entry.flag != "" and entry.name not in without)


def add_flags(parser: Any, options: type, without: Collection[str] = ()) -> None:
    """A flag for each option of a class. One that is not given is None in the parsed arguments."""
    for entry in with_flags(options, without):
        entry.add_to(parser)


def add_options(parser: Any, options: Iterable[Option]) -> None:
    """A flag for each option of a command; its default stands in the parsed arguments."""
    for entry in with_flags(options):
        entry.add_to(parser, None if entry.default is UNSET else entry.default)


def check_options(args: argparse.Namespace, options: Iterable[Option]) -> None:
    """Refuse a name that is not among an option's choices, before anything is loaded."""
    for entry in with_flags(options):
        if entry.choices is not None:
            entry.checked(getattr(args, entry.dest))


def from_flags(args: argparse.Namespace, options: type, without: Collection[str] = ()) -> dict[str, Any]:
    """The options of a class that flags have set, by name."""
    values = {entry.name: getattr(args, entry.dest, None) for entry in with_flags(options, without)}
    return {name: value for name, value in values.items() if value is not None}


def changed(values: Mapping[str, Any], options: Sequence[Option]) -> dict[str, Any]:
    """Those of the values that are not their option's default."""
    return {o.name: values[o.name] for o in options if values.get(o.name, o.default) != o.default}
