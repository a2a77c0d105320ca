"""Read files (tsv, csv, jsonl, json, parquet, arrow; also .csv.gz, …) into columns, or say which line is broken.

``.tsv`` follows GLUE: a quotation mark is an ordinary character. ``.csv`` follows RFC 4180: a field may be in quotes,
with quotes inside it doubled. Fields of a tsv file that another program has quoted keep their quotes; save such a
file as csv. A column of objects becomes a column for each of their names, ``input.text``.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import random
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from ..errors import OptionError, TaskError, shown
from ..progress import Cancel, stop_if
from ..storage.paths import read_small

IN_COLUMNS = ("conll", "txt")  # a word on each line, with its tag; an empty line between texts
TEXT_FORMATS = ("tsv", "csv", "jsonl", "json", *IN_COLUMNS)
FORMATS = (*TEXT_FORMATS, "parquet", "arrow")
ZIPPED = ".gz"  # after the ending of a text format
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}
ANSWER = {"text", "answer_start"}  # the keys of an object that is one cell: answers to a question
SQUAD = '"paragraphs"'  # in SQuAD's file, which may be one line
DEEPEST = 8  # objects inside one another
LARGEST_FILE = 4 * 2**30  # bytes of a file, or of what a parquet file unpacks to: it is held in memory
MOST_CELLS = 10**7  # of a table most of whose cells are empty
LARGEST_CELL = 2**25  # characters of a cell of a csv file
PART = 4096  # rows of a parquet file that are unpacked at once

_LINE = re.compile(r"[^\r\n]*+(?:\r\n|\r|\n)|[^\r\n]++")
T = TypeVar("T")
_naming: ContextVar[Callable[[Path], str] | None] = ContextVar("naming", default=None)


_cancel: ContextVar[Cancel | None] = ContextVar("cancel", default=None)


@contextmanager
def files_named_by(name_of: Callable[[Path], str], cancel: Cancel | None = None) -> Iterator[None]:
    """In this block, messages call a file ``name_of(path)``, or by its own name where that is empty.

    ``cancel()`` is asked every few thousand rows; reading stops with ``Cancelled``.
    """
    naming, cancelling = _naming.set(name_of), _cancel.set(cancel)
    try:
        yield
    finally:
        _naming.reset(naming)
        _cancel.reset(cancelling)


def stoppable(rows: Iterable[T]) -> Iterator[T]:
    """The rows; every few thousand of them, ``cancel`` of ``files_named_by`` is asked."""
    for number, row in enumerate(rows):
        if number % PART == 0:
            stop_if(_cancel.get())
        yield row


def file_name(path: Path) -> str:
    """What messages call a file."""
    name_of = _naming.get()
    return (name_of(path) if name_of is not None else "") or path.name


@dataclass(frozen=True)
class Table:
    """Columns of equal length. ``lines[i]`` is the line of row i in the file; ``broken`` are lines left out, ``notes``
    are sentences about how the file was read."""

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


def format_of(path: Path) -> str:
    """The ending that says how a file is read, ``csv`` of data.csv.gz; empty for none that headviz reads."""
    name = path.name.lower()
    zipped = name.endswith(ZIPPED)
    ending = name.removesuffix(ZIPPED).rpartition(".")[2]
    return ending if ending in (TEXT_FORMATS if zipped else FORMATS) else ""


def read_table(
    path: Path, headerless: tuple[str, ...] | None = None, lenient: bool = False, separator: str | None = None
) -> Table:
    """Read one file by its ending. ``lenient`` leaves out rows with too few or too many fields and lists them.

    ``headerless`` are the columns of a file that may lack its header row. ``separator`` stands between the columns of a
    csv or tsv file; None is what its ending says or, where that gives one column, what its header shows.
    """
    ending = format_of(path)
    if not ending:
        raise TaskError(f"{file_name(path)} is none of the formats headviz reads: {', '.join(FORMATS)}.")
    if ending == "parquet":
        return read_parquet(path)
    name = file_name(path)
    try:
        if ending == "arrow":
            table = _read_arrow(path)
        elif ending in ("jsonl", "json"):
            table = _read_json(name, _decode(path))
        elif ending in IN_COLUMNS:
            table = _read_conll(name, _decode(path))
        else:
            table = _read_separated(name, ending, _decode(path), headerless, lenient, separator)
    except MemoryError as error:
        raise TaskError(f"There is not enough memory to read {name}. Give a smaller file.") from error
    if not len(table):
        raise TaskError(f"{name} has no rows. Give a file with at least one example.")
    return flat(table)


def read_tables(
    paths: Sequence[Path], headerless: tuple[str, ...] | None, lenient: bool, separator: str | None
) -> Table:
    """The rows of all parts of a split, one after another."""
    tables = [read_table(path, headerless, lenient, separator) for path in paths]
    first = tables[0]
    if len(tables) == 1:
        return first
    for table in tables[1:]:
        if set(table.columns) != set(first.columns):
            raise TaskError(f"{table.name} has other columns than {first.name}: {', '.join(table.columns)}.")
    columns = {name: [cell for table in tables for cell in table.columns[name]] for name in first.columns}
    lines = range(1, sum(map(len, tables)) + 1)
    broken = tuple((0, f"{table.name}, {why}") for table in tables for _, why in table.broken)
    return Table(f"{first.name} and {len(tables) - 1} more", columns, lines, broken, "row", first.notes)


def table_of(data: Any, name: str) -> Table:
    """What is in memory as columns: a data set of ``datasets``, a DataFrame, a list of dicts, a dict of lists."""
    if _is_hub_dataset(data):
        columns = data.with_format(None).to_dict()
    elif hasattr(data, "columns") and hasattr(data, "itertuples"):
        frame = data.astype(object).where(data.notna(), None)
        columns = {str(column): frame[column].tolist() for column in frame.columns}
    elif isinstance(data, Mapping):
        columns = {str(key): list(cells) for key, cells in data.items()}
    else:
        rows = list(data)
        if invalid := [row for row in rows if not isinstance(row, Mapping)][:1]:
            raise TaskError(
                f"Rows are dicts such as {{'text': …, 'label': …}}, not {shown(invalid[0])}. Lists of texts and of "
                "labels become data by headviz.Dataset.of."
            )
        columns = _columns_of(rows)
    sizes = {len(cells) for cells in columns.values()}
    if len(sizes) > 1:
        raise TaskError(f"The columns of {name} are not of one length: {', '.join(map(str, sorted(sizes)))} rows.")
    if not sizes or sizes == {0}:
        raise TaskError(f"{name} has no rows. Give at least one example.")
    return flat(Table(name, columns, range(1, sizes.pop() + 1), place="row"))


def in_memory(data: Any) -> bool:
    """Whether ``table_of`` reads it."""
    return _is_hub_dataset(data) or hasattr(data, "itertuples") or isinstance(data, Mapping | list | tuple)


def _is_hub_dataset(data: Any) -> bool:
    return hasattr(data, "column_names") and hasattr(data, "with_format")


def _columns_of(rows: Sequence[Mapping[Any, Any]]) -> dict[str, list[Any]]:
    """Dicts as columns, with None where a row lacks a key."""
    names = dict.fromkeys(str(key) for row in rows for key in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _require_different(names: Sequence[str], file: str) -> None:
    """A ``TaskError`` where two columns have one name."""
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise TaskError(f"{file} has more than one column called '{doubled[0]}'. Rename one of them.")


def flat(table: Table) -> Table:
    """The table with a column for each name in place of a column of objects: ``input.text``."""
    columns = table.columns
    for _ in range(DEEPEST):
        nested = [name for name, cells in columns.items() if any(isinstance(cell, dict) for cell in cells)]
        nested = [n for n in nested if all(cell is None or isinstance(cell, dict) for cell in columns[n])]
        nested = [n for n in nested if not any(set(cell or ()) >= ANSWER for cell in columns[n])]
        if not nested:
            break
        spread: dict[str, list[Any]] = {}
        for name, cells in columns.items():
            if name not in nested:
                spread[name] = cells
                continue
            keys = dict.fromkeys(str(key) for cell in cells if cell is not None for key in cell)
            if len(keys) * len(cells) > max(MOST_CELLS, 4 * sum(len(cell or ()) for cell in cells)):
                raise TaskError(f"{table.name}: the objects of column '{name[:40]}' have {len(keys):,} different keys.")
            for key in keys:
                spread[f"{name}.{key}"] = [None if cell is None else cell.get(key) for cell in cells]
        columns = spread
    return table if columns is table.columns else replace(table, columns=columns)


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> Table:
    """Read a parquet file, or only some of its columns."""
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            _require_different(names, file_name(path))
            if columns is not None:
                names = [c for c in columns if c in names]
            data, rows = _in_parts(path, file.iter_batches(batch_size=PART, columns=names), names)
    except (pyarrow.ArrowException, ValueError, OverflowError, RecursionError) as error:
        raise TaskError(
            f"{file_name(path)} is not a complete parquet file ({_first_line(error)}). Delete it and get it again."
        ) from error
    except OSError as error:
        # pyarrow reports damaged pages as OSError, too
        raise TaskError(f"{file_name(path)} cannot be read: {_first_line(error)}.") from error
    if not rows:
        raise TaskError(f"{file_name(path)} has no rows. Give a file with at least one example.")
    return flat(Table(file_name(path), data, range(1, rows + 1), place="row"))


def _read_arrow(path: Path) -> Table:
    """A file of ``save_to_disk``."""
    import pyarrow.ipc

    try:
        if path.stat().st_size > LARGEST_FILE:
            raise TaskError(f"{file_name(path)} is larger than {LARGEST_FILE:,} bytes. Give a smaller file.")
        with pyarrow.memory_map(str(path)) as source, pyarrow.ipc.open_stream(source) as batches:
            data, rows = _in_parts(path, batches, batches.schema.names)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise TaskError(f"{file_name(path)} is not a complete arrow file ({_first_line(error)}).") from error
    return Table(file_name(path), data, range(1, rows + 1), place="row")


def _in_parts(path: Path, batches: Iterable[Any], columns: Sequence[str]) -> tuple[dict[str, list[Any]], int]:
    """The columns and how many rows they have. Read in batches: a small file may unpack to more than memory holds."""
    data: dict[str, list[Any]] = {name: [] for name in columns}
    rows = size = 0
    for batch in batches:
        stop_if(_cancel.get())
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if size > LARGEST_FILE:
            raise TaskError(f"{file_name(path)} unpacks to more than {LARGEST_FILE:,} bytes. Give a smaller file.")
        for name in columns:
            data[name] += batch.column(name).to_pylist()
    return data, rows


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


def _decode(path: Path) -> str:
    try:
        raw = read_small(path, LARGEST_FILE, "the file")
    except OptionError as error:
        cause = error.__cause__
        why = cause.strerror if isinstance(cause, OSError) else f"no plain file of at most {LARGEST_FILE:,} bytes"
        raise TaskError(f"{file_name(path)} cannot be read: {why}.") from error
    if path.name.lower().endswith(ZIPPED):
        raw = _unzipped(path, raw)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        encoding = "utf-16" if raw[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "latin1"  # as Excel may save
        raise TaskError(
            f"{file_name(path)} is not UTF-8: byte 0x{raw[error.start]:02X} on line {line}. Save it as UTF-8, "
            f"for instance with: iconv -f {encoding} -t utf-8 {file_name(path)}"
        ) from error


def _unzipped(path: Path, raw: bytes) -> bytes:
    content = bytearray()
    try:
        with gzip.open(io.BytesIO(raw)) as file:
            while block := file.read(2**20):  # Python reserves as much memory as the call asks for
                stop_if(_cancel.get())
                content += block
                if len(content) > LARGEST_FILE:
                    raise TaskError(f"{file_name(path)} unpacks to more than {LARGEST_FILE:,} bytes.")
    except (OSError, EOFError, zlib.error) as error:
        raise TaskError(f"{file_name(path)} is not a complete gzip file ({_first_line(error)}).") from error
    return bytes(content)


def _tsv_rows(text: str) -> Iterable[tuple[int, list[str]]]:
    # str.splitlines would also break at U+2028 or U+0085 inside a sentence.
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.removesuffix("\r")
        if line:
            yield number, line.split("\t")


def _read_separated(
    name: str, ending: str, text: str, headerless: tuple[str, ...] | None, lenient: bool, separator: str | None
) -> Table:
    usual = "\t" if ending == "tsv" else ","
    notes: tuple[str, ...] = ()
    if separator is None and headerless is None and (other := _other_separator(text, usual)):
        separator, notes = other, (f"the columns of {name} are separated by {SEPARATORS[other]}",)
    separator = separator or usual
    rows = _tsv_rows(text) if (ending, separator) == ("tsv", "\t") else _csv_rows(name, text, separator)
    return replace(_from_rows(name, stoppable(rows), headerless, lenient), notes=notes)


def _other_separator(text: str, usual: str) -> str:
    """The separator of a header without the usual one; empty where the header has the usual one or none."""
    header = next((line for line in text.splitlines() if line.strip()), "")
    return "" if usual in header else next((sign for sign in SEPARATORS if sign in header), "")


def _csv_rows(name: str, text: str, separator: str) -> Iterable[tuple[int, list[str]]]:
    csv.field_size_limit(LARGEST_CELL)  # of this process: its own limit is 131,072 characters
    lines = (line[0] for line in _LINE.finditer(text))  # StringIO takes four bytes for each character
    reader = csv.reader(lines, delimiter=separator, strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise TaskError(
            f"{name}, line {reader.line_num}: not valid csv ({error}). A field that holds the separator, a line break "
            "or a quotation mark must be quoted, and quotation marks inside it doubled."
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
    _require_different(header, name)
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
        hint = ""
        if name.lower().endswith(".tsv"):
            hint = " Quotation marks are ordinary characters in a .tsv; if its fields are quoted, save it as .csv."
        raise TaskError(f"{name}, line {number}: {why}{more}. Correct or remove it.{hint}")
    columns: dict[str, list[Any]] = {c: [row[i] for row in good] for i, c in enumerate(header)}
    return Table(name, columns, lines, tuple(broken))


def _read_json(name: str, text: str) -> Table:
    """An object on each line, or one array of objects; or one object whose only array has them."""
    start = text.lstrip()[:1]
    maybe_object = start == "{" and ("\n" in text.strip() or SQUAD in text)
    if start != "[" and not maybe_object:
        return _read_lines(name, text)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        if maybe_object:  # an object on each line
            return _read_lines(name, text)
        raise TaskError(f"{name}: not valid JSON ({_why_invalid(error)}).") from error
    arrays = [content] if isinstance(content, list) else [v for v in content.values() if isinstance(v, list)]
    if len(arrays) != 1 or not all(isinstance(row, dict) for row in arrays[0]):
        raise TaskError(f'{name} is not an array of objects such as [{{"text": …, "label": …}}, …].')
    columns = _columns_of(arrays[0])
    if "paragraphs" in columns:
        return _squad(name, arrays[0])
    return Table(name, columns, range(1, len(arrays[0]) + 1), place="row")


def _squad(name: str, articles: list[dict[str, Any]]) -> Table:
    """SQuAD's file: a row for each question."""
    columns: dict[str, list[Any]] = {"question": [], "context": [], "answers": []}
    try:
        for paragraph in (paragraph for article in articles for paragraph in article["paragraphs"]):
            for question in paragraph["qas"]:
                columns["question"].append(question["question"])
                columns["context"].append(paragraph["context"])
                columns["answers"].append([] if question.get("is_impossible") else question["answers"])
    except (KeyError, TypeError, AttributeError) as error:
        raise TaskError(
            f"{name} is not laid out as SQuAD's files: paragraphs, context, qas ({error!r:.40})."
        ) from error
    return Table(name, columns, range(1, len(columns["question"]) + 1), place="question")


def _why_invalid(error: Exception) -> str:
    """Why a text is not valid JSON, in a few words."""
    return "nested too deeply" if isinstance(error, RecursionError) else getattr(error, "msg", str(error)[:80])


def _read_lines(name: str, text: str) -> Table:
    columns: dict[str, list[Any]] = {}
    lines: list[int] = []
    for number, line in enumerate(stoppable(text.split("\n")), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:  # also whole numbers of thousands of digits
            why = _why_invalid(error)
            raise TaskError(f"{name}, line {number}: not valid JSON ({why}). Each line is one object.") from error
        if not isinstance(row, dict):
            raise TaskError(f'{name}, line {number}: not an object. Each line looks like {{"text": …, "label": …}}.')
        for key in row:
            if key not in columns:
                columns[key] = [None] * len(lines)
        if len(columns) * len(lines) > max(MOST_CELLS, len(text)):
            raise TaskError(f"{name}, line {number}: there are {len(columns):,} columns by now, most of them empty.")
        lines.append(number)
        for key, values in columns.items():
            values.append(row.get(key))
    return Table(name, columns, lines)


def _read_conll(name: str, text: str) -> Table:
    """A row for each text: its words as ``tokens``, the last column as ``tags``, those between as ``2``, ``3``, …."""
    rows: list[list[list[str]]] = []
    lines: list[int] = []
    width, inside = 0, False
    for number, line in enumerate(text.split("\n"), start=1):
        fields = line.split()
        if not fields or fields[0] == "-DOCSTART-":
            inside = False
            continue
        if len(fields) < 2 or len(fields) != (width or len(fields)):
            expected = f"the lines before it have {width}" if width else "a word and its tag are needed"
            raise TaskError(f"{name}, line {number}: {len(fields)} columns, but {expected}. Correct or remove it.")
        width = len(fields)
        if not inside:
            rows.append([[] for _ in fields])
            lines.append(number)
        inside = True
        for column, field in zip(rows[-1], fields, strict=True):
            column.append(field)
    names = ["tokens", *map(str, range(2, width)), "tags"] if width else []
    return Table(name, {column: [row[i] for row in rows] for i, column in enumerate(names)}, lines)


QUERIES, CORPUS, JUDGED = "queries.jsonl", "corpus.jsonl", "qrels"  # the files of a ranking, as BEIR has them
CANDIDATES = 20  # passages of a query at the least, where only relevant ones are judged


def read_ranking(folder: Path, split: str) -> Table | None:
    """A ranking in BEIR's files as rows of query, passage and relevance; None where the folder has none.

    A query with fewer than ``CANDIDATES`` judged passages gets others of the corpus, which count as not relevant: they
    are drawn by the query's id, the same ones in every call.
    """
    if not (folder / QUERIES).is_file() or not (folder / CORPUS).is_file():
        return None
    candidates = [folder / JUDGED / f"{split}.tsv", folder / f"{JUDGED}.tsv"]
    path = next((candidate for candidate in candidates if candidate.is_file()), None)
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
        for texts, text_id, file in ((queries, query, QUERIES), (corpus, passage, CORPUS)):
            if str(text_id) not in texts:
                raise TaskError(f"{judged.name}, line {line}: '{str(text_id)[:40]}' is no _id in {file}.")
        of_query.setdefault(str(query), {})[str(passage)] = relevance, line
    columns: dict[str, list[Any]] = {"query": [], "passage": [], "relevance": []}
    lines, corpus_ids, added = [], sorted(corpus), 0
    for query, passages in of_query.items():
        first_line = next(iter(passages.values()))[1]
        rng = random.Random(query)
        while len(passages) < min(CANDIDATES, len(corpus)):
            passage = rng.choice(corpus_ids)
            if passage not in passages:
                passages[passage] = 0, first_line
                added += 1
        for passage, (relevance, line) in passages.items():
            for name, cell in zip(columns, (queries[query], corpus[passage], relevance), strict=True):
                columns[name].append(cell)
            lines.append(line)
    notes = []
    if added:
        notes.append(f"{added:,} passages that nobody judged were drawn from {CORPUS}: they count as not relevant")
    if left := len(queries) - len(of_query):
        notes.append(f"{left:,} of {len(queries):,} queries have no passage in {judged.name} and are left out")
    return Table(judged.name, columns, lines, notes=tuple(notes))


def _texts_by_id(path: Path) -> dict[str, str]:
    table = read_table(path)
    if missing := {"_id", "text"} - set(table.columns):
        raise TaskError(f"{table.name} has no '{min(missing)}'. Each line has _id and text, a passage also a title.")
    titles = table.columns.get("title", [""] * len(table))
    cells = zip(table.columns["_id"], titles, table.columns["text"], strict=True)
    return {str(text_id): f"{title} {text}" if title else text for text_id, title, text in cells}
