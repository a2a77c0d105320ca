"""A run's folder: checkpoints that are whole or passed over, writes that are all or nothing, the log's end."""

import os

import pytest

from headviz.errors import RunError
from headviz.runs.files import KEEP, DiskFull, RunFiles, disk_errors
from headviz.storage.writing import replace_file
from support.small_disk import run_on_small_disk


@pytest.fixture
def files(tmp_path) -> RunFiles:
    made = RunFiles("0123abcd", tmp_path)
    made.create()
    return made


@pytest.mark.parametrize("name", ["", "..", "0123abcg", "0123ABCD", "0123abcd/x", "0123abcde"])
def test_a_name_never_becomes_another_path(name, tmp_path):
    with pytest.raises(RunError, match="not a run"):
        RunFiles(name, tmp_path)


def test_the_newest_checkpoint_counts_and_only_few_are_kept(files):
    for n in range(1, 6):
        files.save_checkpoint(n, b"content %d" % n)
    assert files.load_checkpoint() == (5, b"content 5", [])
    assert [n for n, _ in files.checkpoints()] == [5, 4][:KEEP]


@pytest.mark.parametrize("harm", ["cut", "flip", "empty", "foreign", "gone"])
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(files, harm):
    files.save_checkpoint(1, b"one")
    files.save_checkpoint(2, b"two")
    path = files.folder / "checkpoint-2.bin"
    raw = path.read_bytes()
    if harm == "gone":
        path.unlink()
        assert files.load_checkpoint() == (1, b"one", [])
        return
    path.write_bytes(
        {"cut": raw[:-1], "flip": raw[:-1] + bytes([raw[-1] ^ 1]), "empty": b"", "foreign": b"\x80\x04pickle"}[harm]
    )
    assert files.load_checkpoint() == (1, b"one", ["checkpoint-2.bin"])


def test_without_a_whole_checkpoint_the_run_begins_anew(files):
    files.save_checkpoint(1, b"one")
    (files.folder / "checkpoint-1.bin").write_bytes(b"")
    assert files.load_checkpoint() == (0, b"", ["checkpoint-1.bin"])


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "a"
    replace_file(path, b"old")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(DiskFull, match="Free some space"), disk_errors(path):
        replace_file(path, b"new", durable=True)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_a_full_disk_is_named_when_it_really_is_full(tmp_path):
    script = """
        import sys
        from pathlib import Path
        from headviz.runs.files import RunFiles, DiskFull
        f = RunFiles("0123abcd", Path(sys.argv[1]))
        f.create()
        f.save_checkpoint(1, b"x" * 300_000)
        try:
            f.save_checkpoint(2, b"y" * 900_000)
        except DiskFull as error:
            print(error)
        print(f.load_checkpoint()[0], sorted(p.name for p in f.folder.iterdir()))
    """
    error, left = run_on_small_disk(tmp_path / "small", script, "1m")
    assert "is full. Free some space, then resume the run." in error
    assert left == "1 ['checkpoint-1.bin', 'reserve']"


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
