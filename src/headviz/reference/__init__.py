"""Published figures, to be shown next to ours and never mixed with them.

A file holds one or more tables; a line that begins with ``#`` is a heading: the first one after a table begins a
new table, and headings without rows are notes. Cells stay as printed.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

FILES = {
    "michel": "michel_bert.csv",
    "michel-wmt": "michel_wmt.csv",
    "bands": "thesis_correlation_bands.csv",
    "lottery": "thesis_lottery_80pct.csv",
    "pruned": "thesis_pruned_no_retraining_70pct.csv",
    "tickets": "thesis_winning_tickets.csv",
}


@dataclass(frozen=True)
class Published:
    """One published table: its heading and its rows by name, cells as printed."""

    title: str
    rows: dict[str, tuple[str, ...]]

    def numbers(self, row: str) -> list[float]:
        """A row as numbers: what stands before ± or brackets; NaN where a cell is empty."""
        return [_number(cell) for cell in self.rows[row]]


@cache
def published(name: str) -> tuple[Published, ...]:
    """The tables of one file, in order; ``name`` is a key of ``FILES``."""
    text = (files(__name__) / FILES[name]).read_text(encoding="utf-8")
    tables: list[Published] = []
    title = ""
    rows: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            if rows:
                tables.append(Published(title, rows))
                rows = {}
            title = line.removeprefix("#").strip()
        elif line.strip():
            first, *cells = next(csv.reader([line]))
            rows[first] = tuple(c.strip() for c in cells)
    if rows:
        tables.append(Published(title, rows))
    return tuple(tables)


def find(name: str, row: str) -> Published:
    """The table of a file that has this row."""
    return next(table for table in published(name) if row in table.rows)


def _number(cell: str) -> float:
    match = re.match(r"-?\d+(\.\d+)?", cell)
    return float(match[0]) if match else float("nan")
