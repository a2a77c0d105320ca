"""Data as they lie: the hub's parts, ``save_to_disk``, JSON arrays, gzip, nested columns, tables in memory."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headviz import Dataset, load_task
from headviz.errors import TaskError

ROWS = [{"text": f"a film of number {i}", "label": i % 2} for i in range(12)]
COLUMNS = {name: [row[name] for row in ROWS] for name in ROWS[0]}
TABLE = pa.table(COLUMNS)
NAMED = "the text is column 'text' (--text-columns and --label-column name others)"


def write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def hub(folder: Path) -> None:
    folder.mkdir()
    pq.write_table(TABLE.slice(0, 5), folder / "validation-00000-of-00002.parquet")
    pq.write_table(TABLE.slice(5), folder / "validation-00001-of-00002.parquet")
    pq.write_table(TABLE, folder / "train-00000-of-00001.parquet")


def saved(folder: Path) -> None:
    write(folder / "state.json", "{}")
    path = str(folder / "data-00000-of-00001.arrow")
    with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, TABLE.schema) as stream:
        stream.write_table(TABLE)


def csv() -> str:
    return "\n".join(["text,label", *(f"{row['text']},{row['label']}" for row in ROWS)])


LINES = "\n".join(map(json.dumps, ROWS))
NESTED = [{"input": {"text": row["text"]}, "label": row["label"]} for row in ROWS]
LAYOUTS: dict[str, Callable[[Path], object]] = {
    "parts": hub,
    "parts in data/": lambda at: (at.mkdir(), hub(at / "data")),
    "save_to_disk": lambda at: saved(at / "validation"),
    "save_to_disk of one split": saved,
    "json array": lambda at: write(at / "dev.json", json.dumps(ROWS)),
    "json lines": lambda at: write(at / "valid.json", LINES),
    "json with an array": lambda at: write(at / "dev.json", json.dumps({"version": 1, "data": ROWS}, indent=1)),
    "nested": lambda at: write(at / "dev.jsonl", "\n".join(map(json.dumps, NESTED))),
    "nested parquet": lambda at: (at.mkdir(), pq.write_table(pa.Table.from_pylist(NESTED), at / "dev.parquet")),
    "gzip": lambda at: write(at / "dev.csv.gz", gzip.compress(csv().encode())),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_hold_the_same_data(layout: str, tmp_path: Path) -> None:
    LAYOUTS[layout](tmp_path / "data set")
    column = "input.text" if "nested" in layout else "text"
    data = load_task("custom", data=tmp_path / "data set", text_columns=column)
    assert (data.texts, data.labels.tolist()) == (tuple(COLUMNS["text"]), COLUMNS["label"])
    guessed = load_task("custom", data=tmp_path / "data set")
    assert guessed == data
    assert f"column '{column}'" in guessed.notes[0]


class FromDatasets:
    """What is used of a data set of the package ``datasets``."""

    column_names = tuple(COLUMNS)

    def with_format(self, kind: None) -> FromDatasets:
        return self

    def to_dict(self) -> dict[str, list[Any]]:
        return COLUMNS


@pytest.mark.parametrize(
    "held",
    [
        ROWS,
        COLUMNS,
        pd.DataFrame(ROWS),
        FromDatasets(),
        {"train": FromDatasets(), "validation": FromDatasets()},
        {"train": ROWS, "dev": ROWS},
    ],
    ids=["rows", "columns", "frame", "datasets", "splits", "splits of rows"],
)
def test_tables_in_memory(held: Any) -> None:
    data = load_task("custom", data=held)
    assert (data.texts, data.labels.tolist(), data.label_names) == (
        tuple(COLUMNS["text"]),
        COLUMNS["label"],
        ("0", "1"),
    )
    assert data.notes == (NAMED,)
    assert data.origin.startswith("in memory")
    assert load_task("custom", split="train", data=held, text_columns="text").labels.tolist() == COLUMNS["label"]


def test_missing_cells_of_a_frame_are_missing() -> None:
    frame = pd.DataFrame({"text": ["a b", None, "c d", "e f"], "label": [1, 0, None, 0]})
    with pytest.raises(TaskError, match=r"row 2: nothing in column 'text' \(2 such rows in all\)"):
        load_task("custom", data=frame)
    data = load_task("custom", data=frame, skip_bad=True)
    assert data.texts == ("a b", "e f")
    assert "2 broken rows" in data.notes[-1]


def test_texts_and_labels_become_a_data_set() -> None:
    data = Dataset.of(["good", "bad", "bad"], labels=["pos", "neg", "neg"])
    assert (data.label_names, data.labels.tolist(), data.job) == (("neg", "pos"), [1, 0, 0], "class")
    numbers = Dataset.of(["a", "b"], ["c", "d"], [0.5, 2.0])
    assert (numbers.job, numbers.pairs) == ("number", ("c", "d"))
    assert Dataset.of(["a", "b"], labels=[1, 2], job="number").job == "number"
    assert Dataset.of(["a", "b"]).labels is None
    with pytest.raises(TaskError, match="not one text"):
        Dataset.of("good film")
    with pytest.raises(TaskError, match="not of one length"):
        Dataset.of(["a", "b"], labels=["x"])


def test_a_separator_may_be_named(tmp_path: Path) -> None:
    write(tmp_path / "dev.csv", "a text, or two|label\none, two|1\nthree, four|0\n")
    for name in ("bar", "|"):
        assert load_task("custom", data=tmp_path, separator=name, text_columns="a text, or two".split("|")).texts[
            0
        ] == ("one, two")
    with pytest.raises(TaskError, match="one of comma, semicolon, tab, bar"):
        load_task("custom", data=tmp_path, separator="xx")


def test_a_folder_that_is_refused_is_described(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="It is empty"):
        load_task("custom", data=tmp_path)
    write(tmp_path / "reviews.csv", "text,label\n")
    (tmp_path / "old").mkdir()
    with pytest.raises(TaskError, match=r"It holds old/, reviews\.csv\. .*give the file itself"):
        load_task("custom", data=tmp_path)


def test_a_part_that_is_missing_is_named(tmp_path: Path) -> None:
    hub(tmp_path / "x")
    (tmp_path / "x" / "validation-00000-of-00002.parquet").unlink()
    with pytest.raises(TaskError, match="1 of 2 parts of validation; number 0 is missing"):
        load_task("custom", data=tmp_path / "x")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (gzip.compress(b"text,label\na,1\n", mtime=0)[:-9], "not a complete gzip file"),
        (b"text,label", "not a complete gzip file"),
    ],
    ids=["cut off", "not zipped"],
)
def test_broken_gzip(content: bytes, says: str, tmp_path: Path) -> None:
    write(tmp_path / "dev.csv.gz", content)
    with pytest.raises(TaskError, match=says):
        load_task("custom", data=tmp_path)


def test_columns_are_guessed_only_where_one_is_likely(tmp_path: Path) -> None:
    rows = [f"first title {i},some words {i},{i % 3}" for i in range(12)]
    write(tmp_path / "dev.csv", "\n".join(["head,tail,verdict", *rows]))
    with pytest.raises(TaskError, match=r"Which columns of dev\.csv hold the texts"):
        load_task("custom", data=tmp_path)
    data = load_task("custom", data=tmp_path, text_columns="head,tail")
    assert data.labels.tolist()[:4] == [0, 1, 2, 0]
    assert "the label is column 'verdict'" in data.notes[0]


def test_a_rare_class_is_no_mistake() -> None:
    labels = [int(i < 50) for i in range(1000)]
    assert Dataset.of([f"text {i}" for i in range(1000)], labels=labels).notes == ()
