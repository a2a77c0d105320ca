"""Notes about what looks wrong in a file that can be read. Nothing is changed.

An empty text is a text (published data have some), and a rare label may be intended.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .readers import Table, separator_hint

RARE = 0.1  # of an even share of the rows: a label with fewer rows may be a mistake
MOST_NAMED = 3


def of_header(table: Table) -> str:
    """Why the expected columns are missing, if the header shows it."""
    names = list(table.columns)
    if table.name.lower().endswith(".tsv") and any(_wrapped(n) for n in names):
        return " The header is quoted, and in a .tsv quotation marks are ordinary characters; save it as .csv."
    return separator_hint(table.name, names)


def of_texts(table: Table, columns: Sequence[str], keep: Sequence[int], published: bool) -> list[str]:
    """Notes about empty texts, and about fields of a tsv file that another program seems to have quoted."""
    notes = []
    empty = [(i, c) for i in keep for c in columns if not table.columns[c][i].strip()]
    if empty:
        what = "1 text is empty" if len(empty) == 1 else f"{len(empty):,} texts are empty"
        notes.append(f"{what} ({_first(table, empty)}) and measured so; fill in or remove what is not meant")
    if not published and table.name.lower().endswith(".tsv"):
        quoted = [(i, c) for i in keep for c in columns if _quoted(table.columns[c][i])]
        if quoted:
            what = "1 text looks" if len(quoted) == 1 else f"{len(quoted):,} texts look"
            notes.append(
                f"{what} quoted by another program ({_first(table, quoted)}): in a .tsv quotation marks are read as "
                "text; save the file as .csv to have them taken off"
            )
    return notes


def of_labels(table: Table, names: Sequence[str], labels: np.ndarray, keep: Sequence[int]) -> list[str]:
    """Notes about labels so rare that they may be mistakes, with the first row of each."""
    counts = np.bincount(labels, minlength=len(names))
    rare = [k for k, n in enumerate(counts.tolist()) if 0 < n <= RARE * len(keep) / len(names)]
    if not rare:
        return []
    said = [
        f"'{names[k][:40]}' is the label of {counts[k]:,} of {len(keep):,} rows only "
        f"({table.at(keep[int(np.argmax(labels == k))])})"
        for k in rare[:MOST_NAMED]
    ]
    more = f"; {len(rare) - MOST_NAMED} more labels are as rare" if len(rare) > MOST_NAMED else ""
    return [f"{', '.join(said)}{more}: a mistake? Every label counts as a class"]


def _first(table: Table, cells: Sequence[tuple[int, str]]) -> str:
    row, column = cells[0]
    return f"{'the first: ' if len(cells) > 1 else ''}{table.at(row)}, column '{column}'"


def _wrapped(text: str) -> bool:
    return len(text) > 1 and text[0] == text[-1] == '"'


def _quoted(text: str) -> bool:
    """Whether a field is quoted as in csv: in quotation marks, and those inside doubled."""
    inside = text[1:-1]
    return _wrapped(text) and '""' in inside and '"' not in inside.replace('""', "")
