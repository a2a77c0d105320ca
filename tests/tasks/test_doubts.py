"""Odd files that are read all the same: each doubt is said once, with its place, and nothing is changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headviz import load_task
from headviz.errors import TaskError
from headviz.tasks import label_map

COLUMNS: dict[str, Any] = {"text_columns": "a,b", "label_column": "y"}


def read(folder: Path, ending: str, rows: list[tuple[str, str, str]], sign: str = "", **options: Any) -> Any:
    sign = sign or {"csv": ",", "tsv": "\t"}[ending]
    lines = [sign.join(row) for row in (("a", "b", "y"), *rows)]
    (folder / f"dev.{ending}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return load_task("custom", data=folder, **{**COLUMNS, **options})


GOOD = [("one text", "another", "yes"), ("a second", "a third", "no")]


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_empty_texts_are_refused_or_left_out(tmp_path: Path, ending: str) -> None:
    rows = [(" ", "b", "no"), *GOOD, ("there", "", "no")]
    with pytest.raises(TaskError, match=rf"dev\.{ending}, line 2: nothing in column 'a' \(2 such rows in all\)"):
        read(tmp_path, ending, rows)
    assert read(tmp_path, ending, rows, skip_bad=True).pairs == ("another", "a third")


def test_fields_that_another_program_quoted_stay_and_are_said(tmp_path: Path) -> None:
    quoted = '"""what"" he said"'
    data = read(tmp_path, "tsv", [*GOOD, (quoted, "b", "no")])
    assert data.texts[2] == quoted
    (said,) = data.notes
    assert said.startswith("1 text looks quoted by another program (dev.tsv, line 4, column 'a')")
    assert "save the file as .csv" in said
    for plain in ('"a dog" barked', '"a" and "b"', '"', '""', '"all of it"', 'he said ""x"" there'):
        assert read(tmp_path, "tsv", [*GOOD, (plain, "b", "no")]).notes == ()
    (tmp_path / "dev.tsv").unlink()
    assert read(tmp_path, "csv", [*GOOD, (quoted, "b", "no")]).texts[2] == '"what" he said'


@pytest.mark.parametrize(
    ("ending", "sign", "said"),
    [("tsv", ";", "semicolons"), ("csv", "\t", "tabs"), ("tsv", ",", "commas"), ("csv", "|", "bars")],
)
def test_another_separator_is_recognised(tmp_path: Path, ending: str, sign: str, said: str) -> None:
    result = read(tmp_path, ending, GOOD, sign)
    assert result.pairs == ("another", "a third")
    assert result.notes == (f"the columns of dev.{ending} are separated by {said}",)


def test_a_rare_label_is_said_with_its_first_row(tmp_path: Path) -> None:
    rows = [GOOD[i % 2] for i in range(38)]
    data = read(tmp_path, "csv", [*rows[:7], ("x", "y", "maybe"), *rows[7:]])
    assert data.label_names == ("maybe", "no", "yes")
    assert data.notes == (
        "'maybe' is the label of 1 of 39 rows only (dev.csv, line 9): a mistake? Every label counts as a class",
    )
    assert read(tmp_path, "csv", [*rows, *[("x", "y", "maybe")] * 4]).notes == ()  # few, but no slip of the pen


def test_a_model_that_lacks_a_label_of_ones_own_file_names_it_with_its_count(tmp_path: Path) -> None:
    data = read(tmp_path, "csv", [*[GOOD[i % 2] for i in range(38)], ("x", "y", "maybe")])
    with pytest.raises(TaskError, match=r"does not know 'maybe' \(1 of 39 examples\): correct what is a mistake"):
        label_map(("no", "yes"), data)
    twice = read(tmp_path, "csv", [*[GOOD[i % 2] for i in range(38)], ("x", "y", "y")])
    with pytest.raises(TaskError, match=r"does not know 'y' \(1 of 39 examples\): correct"):
        label_map(("no", "yes"), twice)  # "y" means "yes", and so does "yes"
    with pytest.raises(TaskError, match=r"only has 2 .*Choose a model") as other:
        label_map(("good", "bad"), data)  # of another task altogether: no label is the odd one
    assert "mistake" not in str(other.value)
