"""Errors are told apart by type, code and parameters, never by their text."""

import pickle
import sqlite3
from pathlib import Path

import pytest

from headviz.errors import Cancelled, ModelError, Note, TaskError, UserError
from headviz.pruning.finetuning import Diverged
from headviz.storage.strict_disk import DAMAGED, LOCKED, OTHER, meaning


def test_an_error_without_a_code_has_that_of_its_kind() -> None:
    assert [UserError("no").code, ModelError("no").code, TaskError("no", code="no-split").code] == [
        "refused",
        "model",
        "no-split",
    ]
    assert UserError("no").parameters == {}
    assert (UserError.exit_status, Cancelled.exit_status) == (2, 130)


def test_other_words_leave_the_rest() -> None:
    first = TaskError("text", code="no-split", resumable=False, split="train")
    other = first.reworded("other words")
    assert (type(other), str(other)) == (TaskError, "other words")
    assert (other.code, other.resumable, other.parameters) == ("no-split", False, {"split": "train"})
    assert str(first) == "text"


@pytest.mark.parametrize(
    "error", [TaskError("text", code="x", resumable=False, split="dev"), Diverged("text", ())], ids=str
)
def test_an_error_travels_between_processes_whole(error: UserError) -> None:
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


def test_a_note_is_text_with_a_code() -> None:
    note = Note("one more step", code="one-more-step", until=0.9)
    assert note == "one more step"
    assert (note.code, note.parameters) == ("one-more-step", {"until": 0.9})


def test_what_sqlite_means_is_read_from_its_codes(tmp_path: Path) -> None:
    first, second = (sqlite3.connect(tmp_path / "a.db", timeout=0, isolation_level=None) for _ in range(2))
    first.execute("CREATE TABLE t (x)")
    first.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError) as locked:
        second.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError) as other:
        first.execute("SELECT * FROM nothing")
    (tmp_path / "b.db").write_bytes(b"no database at all, but long enough" * 40)
    with pytest.raises(sqlite3.DatabaseError) as damaged:
        sqlite3.connect(tmp_path / "b.db").execute("SELECT * FROM sqlite_master")
    result = [meaning(e.value) for e in (locked, other, damaged)]
    assert result == [LOCKED, OTHER, DAMAGED]
    assert meaning(sqlite3.ProgrammingError("Python's own")) == OTHER
