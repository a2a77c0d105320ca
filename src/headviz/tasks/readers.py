"""Read one file (tsv, csv, jsonl, parquet) into columns, or say which line is broken.

``.tsv`` follows GLUE: a quotation mark is an ordinary character. ``.csv`` follows RFC 4180: a field may be in quotes,
with quotes inside it doubled. Fields of a tsv file that another program has quoted keep their quotes; save such a
file as csv.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import OptionError, TaskError
from ..storage.paths import read_small

FORMATS = ("tsv", "csv", "jsonl", "parquet")
LARGEST_FILE = 4 * 2**30  # bytes of a file, or of what a parquet file unpacks to: it is held in memory
PART = 4096  # rows of a parquet file that are unpacked at once

_naming: ContextVar[Callable[[Path], str] | None] = ContextVar("naming", default=None)


@contextmanager
def files_named_by(name_of: Callable[[Path], str]) -> Iterator[None]:
    """In this block, messages call a file ``name_of(path)``, or by its own name where that is empty."""
    before = _naming.set(name_of)
    try:
        yield
    finally:
        _naming.reset(before)


def file_name(path: Path) -> str:
    """What messages call a file."""
    name_of = _naming.get()
    return (name_of(path) if name_of is not None else "") or path.name


@dataclass(frozen=True)
class Table:
    """Columns of equal length. ``lines[i]`` is the line of row i in the file; ``broken`` are lines left out."""

    name: str
    columns: dict[str, list[Any]]
    lines: Sequence[int]
    broken: tuple[tuple[int, str], ...] = ()
    place: str = "line"
    notes: tuple[str, ...] = ()

    def at(self, row: int) -> str:
        """The place of a row for messages: ``train.csv, line 17``."""
        return f"{self.name}, {self.place} {self.lines[row]}"

    def __len__(self) -> int:
        return len(self.lines)


def read_table(path: Path, headerless: tuple[str, ...] | None = None, lenient: bool = False) -> Table:
    """Read one file by its ending. ``lenient`` leaves out rows with too few or too many fields and lists them.

    ``headerless`` are the columns of a file that may lack its header row.
    """
    ending = path.suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        raise TaskError(f"{file_name(path)} is none of the formats headviz reads: {', '.join(FORMATS)}.")
    if ending == "parquet":
        return read_parquet(path)
    text = _decode(path)
    if ending == "jsonl":
        table = _read_jsonl(file_name(path), text)
    elif ending == "tsv":
        table = _from_rows(file_name(path), _tsv_rows(text), headerless, lenient)
    else:
        table = _from_rows(file_name(path), _csv_rows(file_name(path), text), headerless, lenient)
    if not len(table):
        raise TaskError(f"{file_name(path)} has no rows. Give a file with at least one example.")
    return table


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> Table:
    """Read a parquet file, or only some of its columns."""
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            doubled = sorted({c for c in names if names.count(c) > 1})
            if doubled:
                raise TaskError(
                    f"{file_name(path)} has more than one column called '{doubled[0]}'. Rename one of them."
                )
            wanted = names if columns is None else [c for c in columns if c in names]
            data, rows = _in_parts(path, file, wanted)
    except (pyarrow.ArrowException, ValueError, OverflowError, RecursionError) as error:
        raise TaskError(
            f"{file_name(path)} is not a complete parquet file ({_first_line(error)}). Delete it and get it again."
        ) from error
    except OSError as error:
        # pyarrow reports damaged pages as OSError, too
        raise TaskError(f"{file_name(path)} cannot be read: {_first_line(error)}.") from error
    if not rows:
        raise TaskError(f"{file_name(path)} has no rows. Give a file with at least one example.")
    return Table(file_name(path), data, range(1, rows + 1), place="row")


def _in_parts(path: Path, file: Any, columns: Sequence[str]) -> tuple[dict[str, list[Any]], int]:
    """The columns of a parquet file, read in parts: a small file may unpack to more than fits into memory."""
    data: dict[str, list[Any]] = {name: [] for name in columns}
    rows = size = 0
    for part in file.iter_batches(batch_size=PART, columns=list(columns)):
        rows, size = rows + part.num_rows, size + part.nbytes
        if size > LARGEST_FILE:
            raise TaskError(f"{file_name(path)} unpacks to more than {LARGEST_FILE:,} bytes. Give a smaller file.")
        for name in columns:
            data[name] += part.column(name).to_pylist()
    return data, rows


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


def _decode(path: Path) -> str:
    try:
        raw = read_small(path, LARGEST_FILE, "the file")
    except OptionError as wrong:
        cause = wrong.__cause__
        why = cause.strerror if isinstance(cause, OSError) else f"no plain file of at most {LARGEST_FILE:,} bytes"
        raise TaskError(f"{file_name(path)} cannot be read: {why}.") from wrong
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        written = "utf-16" if raw[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "latin1"  # as Excel may save
        raise TaskError(
            f"{file_name(path)} is not UTF-8: byte 0x{raw[error.start]:02X} on line {line}. Save it as UTF-8, "
            f"for instance with: iconv -f {written} -t utf-8 {file_name(path)}"
        ) from error


def _tsv_rows(text: str) -> Iterable[tuple[int, list[str]]]:
    # str.splitlines would also break at U+2028 or U+0085 inside a sentence.
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.removesuffix("\r")
        if line:
            yield number, line.split("\t")


def _csv_rows(name: str, text: str) -> Iterable[tuple[int, list[str]]]:
    csv.field_size_limit(LARGEST_FILE)  # of this process: its own limit is 131,072 characters
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise TaskError(
            f"{name}, line {reader.line_num}: not valid csv ({error}). A field that holds a comma, a line break or "
            "a quotation mark must be quoted, and quotation marks inside it doubled."
        ) from error


def _from_rows(
    name: str, rows: Iterable[tuple[int, list[str]]], headerless: tuple[str, ...] | None, lenient: bool
) -> Table:
    numbered = list(rows)
    if not numbered:
        raise TaskError(f"{name} is empty. Give a file with a header row and at least one example.")
    first = [cell.strip() for cell in numbered[0][1]]
    if headerless is not None and len(first) == len(headerless) and not set(headerless) <= set(first):
        header = list(headerless)
    else:
        header = first
        numbered = numbered[1:]
    doubled = sorted({c for c in header if header.count(c) > 1})
    if doubled:
        raise TaskError(f"{name} has more than one column called '{doubled[0]}'. Rename one of them.")

    good: list[list[str]] = []
    lines: list[int] = []
    broken: list[tuple[int, str]] = []
    for number, row in numbered:
        if len(row) == len(header):
            good.append(row)
            lines.append(number)
        else:
            fields = "1 field" if len(row) == 1 else f"{len(row)} fields"
            broken.append((number, f"{fields} where the header has {len(header)}"))
    if broken and not lenient:
        number, why = broken[0]
        more = f" ({len(broken):,} such rows in all)" if len(broken) > 1 else ""
        raise TaskError(f"{name}, line {number}: {why}{more}. Correct or remove it.{_layout_hint(name, header)}")
    columns: dict[str, list[Any]] = {c: [row[i] for row in good] for i, c in enumerate(header)}
    return Table(name, columns, lines, tuple(broken))


def _layout_hint(name: str, header: Sequence[str]) -> str:
    if hint := separator_hint(name, header):
        return hint
    if name.lower().endswith(".tsv"):
        return " Quotation marks are ordinary characters in a .tsv; if its fields are quoted, save it as .csv."
    return ""


def separator_hint(name: str, header: Sequence[str]) -> str:
    """A hint where a file has one column only and seems to have another separator than its ending says."""
    ending = name.rsplit(".", 1)[-1].lower()
    if len(header) != 1 or ending not in ("csv", "tsv"):
        return ""
    named = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}
    found = [said for sign, said in named.items() if sign in header[0]]
    return f" Its columns seem to be separated by {found[0]}; a .csv has commas, a .tsv tabs." if found else ""


def _read_jsonl(name: str, text: str) -> Table:
    columns: dict[str, list[Any]] = {}
    lines: list[int] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:  # also whole numbers of thousands of digits
            why = "nested too deeply" if isinstance(error, RecursionError) else getattr(error, "msg", str(error)[:80])
            raise TaskError(f"{name}, line {number}: not valid JSON ({why}). Each line is one object.") from error
        if not isinstance(row, dict):
            raise TaskError(f'{name}, line {number}: not an object. Each line looks like {{"text": …, "label": …}}.')
        for key in row:
            if key not in columns:
                columns[key] = [None] * len(lines)
        lines.append(number)
        for key, values in columns.items():
            values.append(row.get(key))
    return Table(name, columns, lines)


QUERIES, CORPUS, JUDGED = "queries.jsonl", "corpus.jsonl", "qrels"  # the files of a ranking, as BEIR has them
CANDIDATES = 20  # passages of a query at the least, where only relevant ones are judged


def read_ranking(folder: Path, split: str) -> Table | None:
    """A ranking in BEIR's files as rows of query, passage and relevance; None where the folder has none.

    A query with fewer than ``CANDIDATES`` judged passages gets others of the corpus, which count as not relevant: they
    are drawn by the query's id, the same ones in every call.
    """
    if not (folder / QUERIES).is_file() or not (folder / CORPUS).is_file():
        return None
    places = [folder / JUDGED / f"{split}.tsv", folder / f"{JUDGED}.tsv"]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        raise TaskError(
            f"{folder} has {QUERIES} and {CORPUS}, but neither {JUDGED}/{split}.tsv nor {JUDGED}.tsv.",
            code="no-split", split=split, place=folder,
        )  # fmt: skip
    judged = read_table(path)
    if len(judged.columns) < 3:
        raise TaskError(
            f"{judged.name} has {len(judged.columns)} columns; a query's id, a passage's id and a relevance are needed."
        )
    queries, corpus = (_texts_by_id(folder / name) for name in (QUERIES, CORPUS))
    of_query: dict[str, dict[str, tuple[Any, int]]] = {}
    for line, query, passage, relevance in zip(judged.lines, *list(judged.columns.values())[:3], strict=True):
        for known, one, where in ((queries, query, QUERIES), (corpus, passage, CORPUS)):
            if str(one) not in known:
                raise TaskError(f"{judged.name}, line {line}: '{str(one)[:40]}' is no _id in {where}.")
        of_query.setdefault(str(query), {})[str(passage)] = relevance, line
    columns: dict[str, list[Any]] = {"query": [], "passage": [], "relevance": []}
    lines, everything, added = [], sorted(corpus), 0
    for query, passages in of_query.items():
        rows = [(passage, *about) for passage, about in passages.items()]
        draw = random.Random(query)
        while len(rows) < min(CANDIDATES, len(corpus)):
            passage = draw.choice(everything)
            if passage not in passages:
                passages[passage] = 0, 0
                rows.append((passage, 0, next(iter(passages.values()))[1]))
                added += 1
        for passage, relevance, line in rows:
            for name, cell in zip(columns, (queries[query], corpus[passage], relevance), strict=True):
                columns[name].append(cell)
            lines.append(line)
    notes = (
        (f"{added:,} passages that nobody judged were drawn from {CORPUS}: they count as not relevant",)
        if added
        else ()
    )
    return Table(judged.name, columns, lines, notes=notes)


def _texts_by_id(path: Path) -> dict[str, str]:
    table = read_table(path)
    if missing := {"_id", "text"} - set(table.columns):
        raise TaskError(f"{table.name} has no '{min(missing)}'. Each line has _id and text, a passage also a title.")
    titles = table.columns.get("title", [""] * len(table))
    cells = zip(table.columns["_id"], titles, table.columns["text"], strict=True)
    return {str(name): f"{title} {text}" if title else text for name, title, text in cells}
