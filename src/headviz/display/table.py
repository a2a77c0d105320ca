"""Tables: a column is declared once, with its title, its number format and its meaning, and each place draws from it.

The places are the terminal, a page, a report, a notebook, and files. Files have the numbers as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import TYPE_CHECKING, Any

from ..answers.comparison import Delta
from ..answers.metrics import metric_title
from ..heads import HeadId, HeadMask, head_name
from . import numbers

if TYPE_CHECKING:
    import numpy as np
    from plotly.graph_objects import Figure

    from ..attribution.paths import Edge


TERMINAL, PAGE, REPORT, NOTEBOOK, FILES = PLACES = ("terminal", "page", "report", "notebook", "files")
Format = str | Callable[[Any], str]  # a printf format, or a function of a number
Ends = tuple[float | None, float | None]
PROBABILITIES = ("p", "q")  # titles of columns that are written as p values
DASH = "–"


@dataclass(frozen=True)
class Column:
    """``value`` and ``ends`` (of an interval) read one row's item; a table whose rows are cells needs neither."""

    title: str
    format: Format = ""  # of a value that is there; by default by its kind
    value: Callable[[Any], Any] | None = None
    meaning: str = ""  # the help of the column's title
    name: str = ""  # in files; by default the title
    ends: Callable[[Any], Ends] | None = None
    ends_format: Callable[[float, float], str] | None = None
    places: Collection[str] = PLACES

    def text(self, value: Any, rows: Sequence[str] = ()) -> str:
        """A value as text; a dash for what was not measured. ``rows`` are the names of the grid's rows."""
        if isinstance(value, HeadId):
            return head_name(value, rows) if rows else value.dotted
        if isinstance(value, tuple):
            return " + ".join(self.text(part, rows) for part in value)
        if value is None or value != value:
            return DASH
        form = self.format or (numbers.p_cell if self.title in PROBABILITIES else "%.4g")
        if callable(form):
            return form(value)
        if isinstance(value, float):
            return (form % (value + 0.0)).replace("-", "−")  # not -0.0
        return str(value)

    def interval(self, ends: Ends | None) -> str:
        """The interval as text, with a blank before it; empty where there is none."""
        low, high = ends or (None, None)
        if low is None or high is None or low != low or high != high:
            return ""
        return " " + (self.ends_format(low, high) if self.ends_format else f"[{self.text(low)}, {self.text(high)}]")


def columns(form: Format, *titles: str) -> tuple[Column, ...]:
    """Columns that are written in the same way."""
    return tuple(Column(title, form) for title in titles)


@dataclass(frozen=True)
class Table:
    """Rows of cells: a text, a number, a head, several heads, or None. ``of`` reads them from items."""

    key: str
    columns: Sequence[Column | str]  # a text is the title of a column whose cells are written by their kind
    rows: Sequence[Sequence[Any]]
    caption: str = ""
    masks: Sequence[HeadMask | None] = ()  # by row: what choosing the row takes to the Mask lab
    hint: str = ""  # what choosing a row does
    shortened: int | None = None  # at the terminal: no more rows than these
    height: int | None = None  # pixels on the page; None fits the rows
    ends: Sequence[Sequence[Ends | None]] = ()  # by row: the interval of each cell

    @classmethod
    def of(cls, key: str, columns: Sequence[Column], items: Iterable[Any], **fields: Any) -> Table:
        """One row for each item. ``fields`` are the table's others."""
        items = list(items)
        rows = [[c.value(item) if c.value else None for c in columns] for item in items]
        ends = [[c.ends(item) if c.ends else None for c in columns] for item in items]
        return cls(key, columns, rows, ends=ends, **fields)

    def shown(self, place: str) -> list[tuple[int, Column]]:
        """The columns that this place shows, each with its number."""
        columns = (c if isinstance(c, Column) else Column(c) for c in self.columns)
        return [(i, column) for i, column in enumerate(columns) if place in column.places]

    def titles(self, place: str) -> list[str]:
        """The titles of the columns. Where an interval follows a value, the title says so."""
        return [c.title + (" [95 %]" if any(map(c.interval, self._ends(i))) else "") for i, c in self.shown(place)]

    def texts(self, place: str, rows: Sequence[str] = ()) -> list[list[str]]:
        """All cells as text, with their intervals."""
        shown = [(i, column, self._ends(i)) for i, column in self.shown(place)]
        return [
            [c.text(cells[i], rows) + c.interval(ends[at]) for i, c, ends in shown]
            for at, cells in enumerate(self.rows)
        ]

    def for_paper(self) -> tuple[list[str], list[list[Any]]]:
        """Header and rows as in a report; what is missing is None, and a number that has neither a format nor an
        interval is a number."""
        rows: list[list[Any]] = [[None if text == DASH else text for text in row] for row in self.texts(REPORT)]
        for at, (i, column) in enumerate(self.shown(REPORT)):
            if column.format or column.title in PROBABILITIES or any(map(column.interval, self._ends(i))):
                continue
            for texts, cells in zip(rows, self.rows, strict=True):
                if isinstance(cells[i], float):
                    texts[at] = cells[i]
        return self.titles(REPORT), rows

    def _ends(self, column: int) -> list[Ends | None]:
        return [row[column] for row in self.ends] if self.ends else [None] * len(self.rows)

    def filled(self) -> Table:
        """The table without the columns that no row fills."""
        kept = [i for i in range(len(self.columns)) if any(row[i] not in (None, "") for row in self.rows)]
        if not self.rows or len(kept) == len(self.columns):
            return self
        rows, ends = ([[row[i] for i in kept] for row in cells] for cells in (self.rows, self.ends))
        return replace(self, columns=[self.columns[i] for i in kept], rows=rows, ends=ends)

    def for_files(self) -> tuple[list[str], list[list[Any]]]:
        """Header and rows with the numbers as they are. The ends of intervals come last."""
        shown = self.shown(FILES)
        bounded = [(column, self._ends(i)) for i, column in shown if column.ends]
        header = [c.name or c.title for _, c in shown]
        header += [f"{c.name or c.title} {end}" for c, _ in bounded for end in ("low", "high")]
        rows = [
            [*(row[i] for i, _ in shown), *(end for _, ends in bounded for end in ends[at] or (None, None))]
            for at, row in enumerate(self.rows)
        ]
        return header, rows


# A result for its readers, as data: the terminal, pages, reports and notebooks draw it ------------


@dataclass(frozen=True)
class Picture:
    """One figure with its caption; the formula and its source are one click away on the page."""

    key: str
    draw: Callable[[], Figure]
    caption: str
    formula: str = ""
    source: str = ""


@dataclass(frozen=True)
class Grid:
    """A value for every head. The page draws it to be clicked, the terminal prints it with its marks."""

    key: str
    base: HeadMask
    values: np.ndarray
    name: str
    caption: str
    marks: tuple[HeadId, ...] = ()
    mark_name: str = ""
    undecided: np.ndarray | None = None  # heads whose value is not significantly different from 0
    tips: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    formula: str = ""
    source: str = ""
    form: str = "%+.2f"  # printf format of a value, as text
    losses: bool = False  # what is lost without a head: more is worse, and 0 is nothing


@dataclass(frozen=True)
class View:
    """A result for its readers: one sentence, then pictures and tables in their order."""

    finding: str
    parts: tuple[Picture | Table, ...] = ()
    grid: Grid | None = None  # stands next to the parts
    about: tuple[tuple[str, str], ...] = ()  # what was measured, for readers who do not see the page's head
    rows: tuple[str, ...] = ()  # names of the grid's rows where they are not simply layers
    warning: str = ""
    note: str = ""  # small print, such as why there is nothing to draw


# Tables that several places have ----------------------------------------------------------------


def heads_table(
    key: str,
    heads: Iterable[HeadId],
    title: str,
    values: np.ndarray,
    ends: tuple[np.ndarray, np.ndarray] | None = None,
    tests: Mapping[str, np.ndarray] | None = None,
    *,
    form: Format = "",
    ranks: Iterable[int] | None = None,
    **fields: Any,
) -> Table:
    """One row per head, in the order of ``heads``. ``values``, ``ends`` and ``tests`` (p, q) are tables [L, H];
    ``fields`` are the table's others."""

    def reader(table: np.ndarray) -> Callable[[tuple[int, HeadId]], float]:
        return lambda item: float(table[item[1]])

    low, high = map(reader, ends or (values, values))
    columns = (
        *((Column("rank", value=lambda item: item[0]),) if ranks is not None else ()),
        Column("head", value=lambda item: item[1]),
        Column(title, form, reader(values), ends=None if ends is None else lambda item: (low(item), high(item))),
        *(Column(name, value=reader(table)) for name, table in (tests or {}).items()),
    )
    return Table.of(key, columns, zip(ranks or repeat(0), heads, strict=False), **fields)


def areas_table(areas: Mapping[str, Mapping[str, float]], words: Callable[[str], str] = str, **fields: Any) -> Table:
    """The areas under the curves of token explanations, one row for each method."""

    def of(name: str, scale: float = 1.0) -> Callable[[str], float]:
        return lambda method: scale * areas[method][name]

    columns = (
        Column("method", value=words),
        Column("deletion", "%.3f", of("deletion")),
        Column("deletion better than random, %", "%.0f", of("deletion_beats", 100)),
        Column("insertion", "%.3f", of("insertion")),
        Column("insertion better than random, %", "%.0f", of("insertion_beats", 100)),
    )
    return Table.of("explained_areas", columns, areas, **fields)


def change_table(
    key: str,
    first: str,
    deltas: Sequence[Delta],
    caption: str = "",
    sides: tuple[str, str, str] = ("full", "masked", "change"),
) -> Table:
    """Metrics or slices before and after, one row each; ``first`` is the title of their names. ``sides`` name both
    models and the change."""
    scale = deltas[0].scale if deltas else 100.0
    before, after, change = sides

    def metric(value: float) -> str:
        return numbers.metric(value, scale)

    columns = (
        Column(first, value=lambda d: d.name or metric_title(d.metric)),
        Column("n", "{:,}".format, lambda d: d.n, "examples"),
        Column(before, metric, lambda d: d.full),
        Column(after, metric, lambda d: d.masked),
        Column(
            f"{change}, points",
            lambda v: numbers.points(v, scale),
            lambda d: d.delta,
            "paired on the same examples",
            name=change,
            ends=lambda d: (d.interval_low, d.interval_high),
            ends_format=lambda low, high: numbers.interval(low, high, scale),
        ),
        Column("p", value=lambda d: d.p_value),
    )
    return Table.of(key, columns, deltas, caption=caption)


def way(edge: Edge) -> str:
    """``3.5 → 9.10 queries``"""
    return f"{edge.sender.dotted} → {'answer' if edge.receiver is None else f'{edge.receiver.dotted} {edge.into}'}"


def paths_table(edges: Sequence[Edge], several: bool) -> Table:
    """The paths as a table; with an interval where they are means over ``several`` pairs."""
    ends = (lambda edge: (edge.low, edge.high)) if several else None
    columns = (Column("path", value=way), Column("share of the way", "%+.3f", lambda edge: edge.effect, ends=ends))
    return Table.of("path_table", columns, edges)
