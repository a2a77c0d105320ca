"""The field of a form for a declared option. What it holds is checked when the form is read.

A streamlit field with bounds turns red for a wrong number, and the page silently uses the number before. Here a wrong
number is refused with a message.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...errors import OptionError
from ...options import UNSET, Option, short
from .messages import plain

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

SMALL = 0.001  # a number field has no room for what is below: it is written as text, such as 2e-5


def field(
    place: DeltaGenerator,
    option: Option,
    key: str,
    value: Any = UNSET,
    *,
    choices: Collection[Any] | None = None,
    words: Callable[[Any], str] | None = None,
    label: str = "",
    **more: Any,
) -> Callable[[], Any]:
    """A choice, a switch, a number or a text. Returns a function that reads it, or raises ``OptionError``.

    ``value``, ``choices`` and ``label`` replace the declared ones, and ``words`` says how a choice is shown.
    """
    label = title_of(option, label)
    value = option.default if value is UNSET else value
    choices = option.choices if choices is None else choices
    help = option.help[:1].upper() + option.help[1:]
    if option.optional and option.kind is int and option.usual:
        help = f"{help}; 0 = {option.usual}" if help else f"0 = {option.usual}"
    more = {"key": key, "help": plain(help) or None, **more}
    if choices is not None:
        names = list(choices)
        table = choices if isinstance(choices, Mapping) else {}
        words = words or (lambda name: word if isinstance(word := table.get(name), str) else str(name))
        index = names.index(value) if value in names else 0
        chosen = place.selectbox(label, names, index, format_func=words, **more)
        return lambda: chosen
    if option.kind is bool:
        width = more.pop("width", "content")
        on = place.container(width=width, vertical_alignment="bottom").toggle(label, bool(value), **more)
        return lambda: on
    if option.several or option.kind not in (int, float) or (option.kind is float and 0 < abs(value) < SMALL):
        text = place.text_input(label, _text(option, value), **more)
        return lambda: _read(option, label, text)
    if option.percent:
        option, value = replace(option, least=100 * option.bounds[0], most=100 * option.bounds[1]), 100 * value
    if option.optional:  # 0 stands for None
        option, value = replace(option, least=0), value or 0
    if option.kind is float:
        value, more = float(value), {"format": "%g", **more}
    number = place.number_input(label, value=value, **more)
    return lambda: _checked(option, label, number)


def title_of(option: Option, label: str) -> str:
    """The title of a field. It comes from the code and is not escaped: screen readers would read that out."""
    return label or option.title or option.name.replace("_", " ").capitalize()


def _checked(option: Option, label: str, number: Any) -> Any:
    if not option.fits(number):
        raise OptionError(f"“{label}” is {number:,g}: give {option.valid}.")
    if option.optional and number == 0:
        return None
    return number / 100 if option.percent else number


def _text(option: Option, value: Any) -> str:
    if value is None or value is UNSET:
        return ""
    if option.several:
        return ", ".join(f"{100 * v:g}" if option.percent else str(v) for v in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _read(option: Option, label: str, text: str) -> Any:
    """The value of a text field; an empty one is the default."""
    if not text.strip() and not option.each:
        return option.default
    parts = text.replace("%", "").split(",") if option.several else [text]
    try:
        values: list[Any] = [
            option.kind(part) if option.kind in (int, float) else part.strip() for part in parts if part.strip()
        ]
    except ValueError:
        examples = (30, 50, 70) if option.percent else ((option.least or 0) + step for step in (1, 2, 3))
        example = ", ".join(f"{value:g}" for value in examples) if option.several else "2e-5"
        unit = " in per cent" if option.percent else ""
        several = ", or several with commas" if option.several else ""
        raise OptionError(
            f"“{label}” is {option.valid}{unit}{several}, such as {example}, not '{short(text)}'."
        ) from None
    if option.percent:
        values = [value / 100 for value in values]
    for value in values:
        if not option.fits(value):
            raise OptionError(f"“{label}” is '{short(text)}': give {option.valid}.")
    return option.checked(tuple(values)) if option.several else values[0]
