"""Translation data: the shipped corpus, two-column files in every format, and what is refused."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headviz.errors import TaskError
from headviz.tasks import load_task

ROWS = [("The dog sleeps.", "nusegal lo grit."), ('"Quoted", and a comma.', "ke, ke.")]


def write(folder: Path, form: str) -> Path:
    path = folder / f"dev.{form.split('-')[0]}"
    if form == "tsv":
        path.write_text("source\ttarget\n" + "".join(f"{a}\t{b}\n" for a, b in ROWS))
    elif form == "tsv-bare":
        path.write_text("".join(f"{a}\t{b}\n" for a, b in ROWS))
    else:
        sources, targets = zip(*ROWS, strict=True)
        pq.write_table(pa.table({"source": sources, "target": targets}), path)
    return path


@pytest.mark.parametrize("form", ["tsv", "tsv-bare", "parquet"])
def test_two_columns_in_every_format(tmp_path: Path, form: str) -> None:
    write(tmp_path, form)
    data = load_task("custom-translation", data=tmp_path)
    assert list(zip(data.texts, data.references, strict=True)) == ROWS
    assert data.labels is None
    assert bool(data.notes) == (form == "tsv-bare")


def test_a_column_of_languages(tmp_path: Path) -> None:
    rows = [{"en": a, "vs": b} for a, b in ROWS]
    pq.write_table(pa.table({"translation": rows}), tmp_path / "dev.parquet")
    data = load_task("custom-translation", data=tmp_path, text_columns="vs,en")
    assert data.texts == tuple(b for _, b in ROWS)
    assert data.references == tuple(a for a, _ in ROWS)
    with pytest.raises(TaskError, match=r"no column 'source' and no column 'target'.*en, vs.*--text-columns"):
        load_task("custom-translation", data=tmp_path)


def test_slices_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "dev.tsv").write_text("source\ttarget\tgenre\na b\tc d\tnews\ne\tf\t\n")
    data = load_task("custom-translation", data=tmp_path, slice_column="genre")
    assert data.slice_counts() == {"(none)": 1, "news": 1}


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("source\ttarget\na\t \n", {}, "dev.tsv, line 2: nothing in column 'target'"),
        ("a\tb\tc\nd\te\tf\n", {}, "no column 'source'"),
        ("en\tde\na\tb\n", {"text_columns": "en,fr"}, "no column 'fr'"),
        ("en\tde\na\tb\n", {"text_columns": "en"}, "two columns"),
        ("source\ttarget\na\tb\n", {"label_column": "target"}, "has no label column"),
        ("source\ttarget\na\n", {}, "line 2: 1 field"),
    ],
)
def test_bad_files(tmp_path: Path, content: str, options: dict[str, str], message: str) -> None:
    (tmp_path / "dev.tsv").write_text(content)
    with pytest.raises(TaskError, match=message):
        load_task("custom-translation", data=tmp_path, **options)


def test_other_tasks_have_no_references(tmp_path: Path) -> None:
    (tmp_path / "dev.tsv").write_text("sentence1\tsentence2\tlabel\na\tb\tentailment\n")
    data = load_task("rte", data=tmp_path)
    with pytest.raises(TaskError, match="no reference translations"):
        _ = data.references
    assert np.array_equal(data.gold, [0])
