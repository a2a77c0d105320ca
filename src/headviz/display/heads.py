"""A table of heads: one value for each, with its interval and its tests. The terminal and the pages draw it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..heads import HeadId
from .table import Column, Ends, Format, Table

if TYPE_CHECKING:
    import numpy as np


def heads_table(
    key: str,
    heads: Iterable[HeadId],
    title: str,
    values: np.ndarray,
    ends: tuple[np.ndarray, np.ndarray] | None = None,
    tests: Mapping[str, np.ndarray] | None = None,
    *,
    form: Format = "",
    ranked: bool = False,
    **more: Any,
) -> Table:
    """The heads in the order that is given. ``values``, ``ends`` and ``tests`` (p, q) are tables [L, H]; ``ranked``
    numbers the heads. ``more`` goes to the table."""

    def of(table: np.ndarray) -> Any:
        return lambda item: float(table[item[1]])

    def interval(item: tuple[int, HeadId]) -> Ends:
        low, high = ends or (values, values)
        return float(low[item[1]]), float(high[item[1]])

    columns = (
        *((Column("rank", value=lambda item: item[0]),) if ranked else ()),
        Column("head", value=lambda item: item[1]),
        Column(title, form, of(values), ends=None if ends is None else interval),
        *(Column(name, value=of(table)) for name, table in (tests or {}).items()),
    )
    return Table.of(key, columns, enumerate(heads, 1), **more)
