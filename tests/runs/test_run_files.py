"""A run's folder: checkpoints that are whole or passed over, writes that are all or nothing, the log's end."""

import os

import pytest

from headviz.errors import RunError
from headviz.runs.files import DiskFull, RunFiles, writing_run
from headviz.storage.writing import replace_file


@pytest.fixture
def files(tmp_path) -> RunFiles:
    made = RunFiles("0123abcd", tmp_path)
    made.create()
    return made


@pytest.mark.parametrize("name", ["", "..", "0123abcg", "0123ABCD", "0123abcd/x", "0123abcde"])
def test_a_name_never_becomes_another_path(name, tmp_path):
    with pytest.raises(RunError, match="not a run"):
        RunFiles(name, tmp_path)


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "a"
    replace_file(path, b"old")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(DiskFull, match="Free some space"), writing_run(path):
        replace_file(path, b"new", durable=True)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_the_logs_end_is_readable_and_holds_no_token(files):
    files.log.write_bytes(b"first\n" + b"x" * 50_000 + b"\n10%\r20%\r30%\n\nuses hf_abcdefghijklmnop\n\xff\xfe last\n")
    tail = files.log_tail()
    assert tail == ["30%", "uses hf_…", "\ufffd\ufffd last"]
    assert RunFiles("ffffffff", files.folder.parent).log_tail() == []


def test_half_written_json_reads_as_nothing(files):
    files.progress.write_text('{"phase": "sco')
    assert files.read_json(files.progress) == {}
    files.progress.write_text("[1]")
    assert files.read_json(files.progress) == {}


def test_what_a_killed_process_was_writing_is_swept_away(files):
    (files.folder / ".checkpoint-3.bin.77.tmp").write_bytes(b"half")
    files.sweep_temporary()
    assert [p.name for p in files.folder.iterdir()] == ["reserve"]
