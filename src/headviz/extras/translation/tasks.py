"""The tasks of translation: their files, and the sentences that ship with the demo; the entry of their analysis."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ... import reference
from ...analyses.analysis import MICHEL, ORDER, SAMPLES, SEED, SELECT, STEP, Analysis, code
from ...demo.reading import columns, shipped
from ...errors import TaskError, UserError
from ...evaluation.verdict import MARGIN_OPTION
from ...tasks.catalogue import OWN_SPLITS, SHIPPED_SPLITS, Source, Task
from ...tasks.columns import NO_SLICE, require
from ...tasks.dataset import Dataset
from ...tasks.readers import Table, read_table
from .sentence import SENTENCE

_COLUMNS = ("source", "target")
_VESHAN = Source(local_columns=_COLUMNS, splits=SHIPPED_SPLITS, module="headviz.extras.translation.tasks")
_YOURS = Source(local_columns=_COLUMNS, splits=OWN_SPLITS, own=True)
TASKS = [
    Task("demo-translation", "Demo translation", (), SENTENCE.usual, _VESHAN, "construction", job=SENTENCE.job),
    Task("custom-translation", "Your own translation", (), SENTENCE.usual, _YOURS, job=SENTENCE.job),
]

ANALYSES = [
    Analysis(
        "stacks",
        "Stack by stack",
        "Which kind of attention can a translation model do without?",
        "the published analyses of translation models, stack by stack",
        f"{MICHEL}, §3.2, §3.3, §5, Tables 1, 2 and 5, Figure 4",
        **code("headviz.extras.translation.stacks", "recipe"),
        options=(SELECT, ORDER, STEP, MARGIN_OPTION, SAMPLES, SEED),
        published=reference.by_stack,
        fits=lambda answer: answer.stacked,
        after="pruning-curves",
        command="stacks",
    )
]

_MAP = "Name the source and the reference (--text-columns SOURCE,TARGET, text_columns=)."
NESTED = "translation"  # published parquet files hold one column of {language: sentence}


def local_pairs(
    task: Task, split: str, path: Path, columns: Sequence[str] | None, label: str | None, slice_column: str | None
) -> Dataset:
    """Sentences of a tsv, csv, jsonl or parquet file. A file of two columns may lack a header row.

    The sources become ``texts``, the references ``pairs``; there are no labels.
    """
    if label is not None:
        raise TaskError(f"Task '{task.name}' is a translation and has no label column.")
    headerless = task.source.local_columns if columns is None else None
    table = _by_language(read_table(path, headerless))
    if columns is None:
        columns = task.source.local_columns
    elif len(columns) != 2:
        raise TaskError(f"A translation needs two columns, source and reference, not {', '.join(columns)}.")
    if slice_column is None and task.slice_name in table.columns:
        slice_column = task.slice_name
    require(table, (*columns, *([slice_column] if slice_column else [])), _MAP, ("text_columns",))
    sources, references = (_sentences(table, c) for c in columns)
    slices = None
    if slice_column is not None:
        slices = tuple(str(c or "").strip() or NO_SLICE for c in table.columns[slice_column])
    notes: tuple[str, ...] = ()
    if path.suffix.lower() in (".tsv", ".csv") and table.lines[0] == 1:
        notes = (f"{table.name} was read without a header row; its first pair: {sources[0]!r}, {references[0]!r}",)
    return Dataset(
        task,
        split,
        texts=sources,
        pairs=references,
        slices=slices,
        slice_name=slice_column,
        origin=f"file: {table.name}",
        notes=notes,
    )


def _by_language(table: Table) -> Table:
    """The table with columns ``de`` and ``en`` in place of ``translation.de`` and ``translation.en``."""
    return replace(table, columns={name.removeprefix(f"{NESTED}."): cells for name, cells in table.columns.items()})


def _sentences(table: Table, column: str) -> tuple[str, ...]:
    cells = table.columns[column]
    for i, cell in enumerate(cells):
        if not isinstance(cell, str) or not cell.strip():
            empty = cell is None or isinstance(cell, str)
            what = "nothing" if empty else f"{type(cell).__name__} {cell!r}, not text,"
            raise TaskError(f"{table.at(i)}: {what} in column '{column}'. Fill it in or remove the row.")
    return tuple(cells)


SPLITS = ("train", "dev", "unseen")


class Pair(NamedTuple):
    """One sentence in both languages, and what its grammar turns on."""

    source: str
    target: str
    construction: str


@cache
def read_split(split: str) -> tuple[Pair, ...]:
    """The sentences that the task ``demo-translation`` reads."""
    if split not in SPLITS:
        raise UserError(f"The translation demo has no split {split!r}. It has: {', '.join(SPLITS)}.")
    return tuple(map(Pair, *columns(f"translation/{split}.parquet", Pair._fields)))


@cache
def word_list() -> dict[str, tuple[tuple[str, str], ...]]:
    """Kind of word -> Veshan words with their meaning. Verbs and adjectives are stems, which end in a hyphen."""
    with shipped("translation/words.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    kinds = dict.fromkeys(row["kind"] for row in rows)
    return {kind: tuple((row["veshan"], row["english"]) for row in rows if row["kind"] == kind) for kind in kinds}
