"""Typed results become JSON in one way, and show themselves in notebooks in one way.

NaN and infinity become null, tables nested lists, a mask its hexadecimal text, a head ``L.H``.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandas import DataFrame
    from plotly.graph_objects import Figure


def plain(value: Any) -> Any:
    """The value in JSON's own types. Refuses what it does not know, rather than writing its repr."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "json_text"):  # a head, a mask
        return value.json_text
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if hasattr(value, "_asdict"):
        return {k: plain(v) for k, v in value._asdict().items()}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):  # numpy's arrays and numbers
        return plain(value.tolist())
    raise TypeError(f"{type(value).__name__} has no JSON form")


def flat_row(values: Mapping[str, Any]) -> dict[str, Any]:
    """One row: what is in dicts is named with a dot, and lists are left out."""
    row: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            row |= {f"{name}.{key}": cell for key, cell in flat_row(value).items()}
        elif not isinstance(value, list):
            row[name] = value
    return row


def to_json(value: Any, indent: int | None = 2) -> str:
    """Strict JSON. NaN is an error: a value that was not measured must be None by now."""
    return json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)


_shown: dict[str, Callable[..., Any]] = {}  # "html", "text" and "figure"


def shown_by(**ways: Callable[..., Any]) -> None:
    """How results become HTML, text and figures. The package sets this, because only its upper half knows them."""
    _shown.update(ways)


def drawn(value: object, **options: object) -> Figure:
    """The figure of a value; ``options`` are those of its ``plot``."""
    figure: Figure = _shown["figure"](value, **options)
    return figure


class Shown:
    """A mixin for what a notebook shows without a call."""

    def _repr_html_(self) -> str:
        """A small piece of HTML that asks no address and reads on a light and on a dark page."""
        html: str = _shown["html"](self)
        return html

    def plot(self) -> Figure:
        """The plotly figure. A ``UserError`` if this result has none."""
        return drawn(self)


class Result(Shown):
    """A mixin for every frozen result dataclass."""

    def __str__(self) -> str:
        """What ``print`` shows: the sentence and the tables that a notebook shows."""
        text: str = _shown["text"](self)
        return text

    def to_dict(self) -> dict[str, Any]:
        """JSON's own types, with the derived numbers of ``extra`` added."""
        fields = {f.name: plain(getattr(self, f.name)) for f in dataclasses.fields(self)}  # type: ignore[arg-type]
        return fields | {k: plain(v) for k, v in self.extra().items()}

    def extra(self) -> dict[str, Any]:
        """Derived values that readers of the JSON want as well."""
        return {}

    def records(self) -> list[dict[str, Any]]:
        """The rows of ``to_frame``: one for each entry of the first list of results, else one for each head of tables
        of heads, else a single one."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]
        shape = next((v.shape for v in values.values() if getattr(v, "ndim", 0) == 2), None)
        lists = [v for v in values.values() if isinstance(v, list | tuple) and v and dataclasses.is_dataclass(v[0])]
        if lists:
            return [flat_row(item.to_dict() if isinstance(item, Result) else plain(item)) for item in lists[0]]
        if shape is None:
            return [flat_row(self.to_dict())]
        tables = {name: v for name, v in values.items() if getattr(v, "shape", None) == shape}
        return [
            {"layer": layer, "head": head, **{name: v[layer, head].item() for name, v in tables.items()}}
            for layer in range(shape[0])
            for head in range(shape[1])
        ]

    def __iter__(self) -> Iterator[Any]:
        """Its rows: ``pandas.DataFrame(result)`` is ``result.to_frame()``."""
        return iter(self.records())

    def to_frame(self) -> DataFrame:
        """A pandas table of its rows, with missing values as NaN."""
        import pandas

        return pandas.DataFrame(self.records())

    def to_json(self, indent: int | None = None) -> str:
        return to_json(self.to_dict(), indent)
