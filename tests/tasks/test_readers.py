"""Readers: exact on quotes, tabs, line ends and encodings; broken files are named with their line."""

import csv
import json
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headviz.errors import Cancelled, TaskError
from headviz.tasks import load_task
from headviz.tasks.readers import files_named_by, read_table

AWKWARD = [
    'He said "no" and left.',
    '"A quote left open',
    "two\u2028separators\u0085inside",
    "naïve café — ok",
    "",
    " spaces around ",
    "back\\slash, comma; semicolon",
    "'single'",
    "NA",
    "null",
]


def _write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_tsv_keeps_every_character(tmp_path: Path, end: str) -> None:
    path = _write(tmp_path / "x.tsv", end.join(["text\tlabel", *[f"{t}\t1" for t in AWKWARD], ""]))
    table = read_table(path)
    assert table.columns == {"text": AWKWARD, "label": ["1"] * len(AWKWARD)}
    assert table.at(0) == "x.tsv, line 2"


def test_csv_jsonl_and_parquet_round_trip(tmp_path: Path) -> None:
    texts = [*AWKWARD, "line\nbreak", "tab\tinside", 'a "quoted", part']
    with (tmp_path / "x.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["text", "label"], *([t, "0"] for t in texts)])
    assert read_table(tmp_path / "x.csv").columns["text"] == texts
    lines = "\n".join(json.dumps({"text": t, "label": i % 2}, ensure_ascii=False) for i, t in enumerate(texts))
    assert read_table(_write(tmp_path / "x.jsonl", lines + "\n\n")).columns["text"] == texts
    pq.write_table(pa.table({"text": texts, "label": [i % 2 for i in range(len(texts))]}), tmp_path / "x.parquet")
    table = read_table(tmp_path / "x.parquet")
    assert table.columns["text"] == texts
    assert table.at(1) == "x.parquet, row 2"
    table = read_table(_write(tmp_path / "y.jsonl", '{"a": 1}\n{"b": 2}\n{"a": 3, "b": 4}\n'))
    assert table.columns == {"a": [1, None, 3], "b": [None, 2, 4]}  # a key that comes later


def test_byte_order_mark_is_no_part_of_the_first_column(tmp_path: Path) -> None:
    assert list(read_table(_write(tmp_path / "x.tsv", "\ufeffa\tb\n1\t2\n")).columns) == ["a", "b"]


def test_a_csv_field_may_be_long(tmp_path: Path) -> None:
    """Python's csv reader stops at 131,072 characters, and the advice was to quote the field."""
    long = "word " * 40_000
    table = read_table(_write(tmp_path / "x.csv", f'text,label\n"{long}",1\n'))
    assert table.columns["text"] == [long]


def test_header_or_none(tmp_path: Path) -> None:
    names = ("source", "label", "annotation", "sentence")
    rows = "x1\t1\t\tA sentence.\nx2\t0\t*\tAnother.\n"
    without = read_table(_write(tmp_path / "x.tsv", rows), headerless=names)
    with_it = read_table(_write(tmp_path / "x.tsv", "\t".join(names) + "\n" + rows), headerless=names)
    assert without.columns == with_it.columns
    assert without.lines[0] == 1
    assert with_it.lines[0] == 2


def test_broken_rows_are_refused_or_listed(tmp_path: Path) -> None:
    path = _write(tmp_path / "x.tsv", "a\tb\n1\t2\n3\n4\t5\t6\n7\t8\n")
    with pytest.raises(TaskError, match=r"x\.tsv, line 3: 1 field where the header has 2 \(2 such rows"):
        read_table(path)
    table = read_table(path, lenient=True)
    assert table.columns == {"a": ["1", "7"], "b": ["2", "8"]}
    assert [line for line, _ in table.broken] == [3, 4]
    assert table.at(1) == "x.tsv, line 5"


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("x.tsv", b"", "is empty"),
        ("x.csv", b"\n\n", "is empty"),
        ("x.tsv", b"a\tb\n", "has no rows"),
        ("x.csv", b"a,b\n", "has no rows"),
        ("x.jsonl", b"", "has no rows"),
        ("x.csv", b"a,a\n1,2\n", "more than one column called 'a'"),
        ("x.csv", b'a,b\n"1" x,2\n', "line 2: not valid csv"),
        ("x.csv", b'a,b\n"1,2\n3,4\n', "not valid csv"),
        ("x.csv", b"a,b\n1,2,3\n", "line 2: 3 fields where the header has 2"),
        ("x.tsv", "a\tb\nok\t1\ncaf\xe9\t0\n".encode("latin1"), "not UTF-8: byte 0xE9 on line 3.*iconv -f latin1"),
        ("x.csv", "a,b\n1,2\n".encode("utf-16"), "not UTF-8: byte 0xFF on line 1.*iconv -f utf-16"),
        ("x.jsonl", b'{"a": 1}\n{"a": \n', "line 2: not valid JSON"),
        ("x.jsonl", b"[1, 2]\n", "not an array of objects"),
        ("x.parquet", b"PAR1 not really", "not a complete parquet file"),
        ("x.parquet", b"", "not a complete parquet file"),
        ("x.xlsx", b"PK", "none of the formats headviz reads: tsv, csv, jsonl, json, conll, txt, parquet, arrow"),
    ],
)
def test_bad_files_in_one_line(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    with pytest.raises(TaskError, match=says) as caught:
        read_table(_write(tmp_path / name, content))
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)


def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    for ending in ("tsv", "parquet"):
        with pytest.raises(TaskError, match=f"x.{ending} cannot be read"):
            read_table(tmp_path / f"x.{ending}")


def test_a_long_cell_is_refused_before_it_takes_many_times_its_size(tmp_path: Path) -> None:
    path = tmp_path / "dev.csv"
    with path.open("wb") as holes:
        holes.truncate(40 * 2**20)
    tracemalloc.start()
    with pytest.raises(TaskError, match="not valid csv"):
        read_table(path)
    assert tracemalloc.get_traced_memory()[1] < 9 * 40 * 2**20
    tracemalloc.stop()


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl"])
def test_reading_can_be_stopped(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"dev.{ending}"
    row = '{"text": "a"}\n' if ending == "jsonl" else "a\n"
    path.write_text(row * 20_000)
    asked = iter(range(2))
    with pytest.raises(Cancelled), files_named_by(lambda _: "", lambda: next(asked, None) is None):
        read_table(path)
    assert len(read_table(path)) >= 19_999


def test_taking_labels_and_texts_from_a_table_can_be_stopped(tmp_path: Path) -> None:
    path = tmp_path / "dev.csv"
    path.write_text("text,label\n" + "a dog,yes\na cat,no\n" * 10_000)
    asked = [0]

    def cancel(after: float = np.inf) -> bool:
        asked[0] += 1
        return asked[0] > after

    with files_named_by(lambda _: "", cancel):
        read_table(path)
    reading, asked[0] = asked[0], 0
    with files_named_by(lambda _: "", lambda: cancel(after=2 * reading)), pytest.raises(Cancelled):
        load_task("custom", data=path)


@pytest.mark.parametrize("row", ['{{"a{}": 1}}', '{{"a": {{"a{}": 1}}}}'])
def test_a_table_of_ever_new_columns_is_refused(row: str, tmp_path: Path) -> None:
    path = tmp_path / "dev.jsonl"
    path.write_text("\n".join(row.format(i) for i in range(20_000)))
    with pytest.raises(TaskError, match=r"columns|keys"):
        read_table(path)
