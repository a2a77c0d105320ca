"""Paths from outside: what names no place is refused in one line, and nothing special is ever replaced."""

from __future__ import annotations

import ast
import os
import re
import socket
import stat
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from headviz.errors import OptionError, UserError
from headviz.storage.paths import LONGEST_NAME, LONGEST_PATH, new_folder, out_file, outside_path, read_small
from headviz.storage.writing import DiskError, disk_errors, replace_file, replacing

SRC = Path(__file__).resolve().parents[2] / "src" / "headviz"
ODD: list[Any] = [
    "",
    "a\0b",
    "a\udcffb",
    "~no-such-user-here/x",
    "x" * (LONGEST_NAME + 1),
    "/".join(["x"] * LONGEST_PATH),
    b"bytes",
    3,
    None,
]


@pytest.mark.parametrize("given", ODD, ids=lambda v: repr(v)[:20])
def test_what_names_no_place_is_refused_in_one_line(given: Any) -> None:
    for read in (outside_path, new_folder, lambda g: out_file(g, "x.npz")):
        with pytest.raises(OptionError) as wrong:
            read(given)
        assert "\n" not in str(wrong.value)
        assert str(wrong.value).isprintable()
        assert len(str(wrong.value)) < 250


def test_a_loop_of_links_is_refused_and_a_missing_place_is_not(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(OptionError, match="cannot be looked at"):
        outside_path(tmp_path / "a")
    assert outside_path(tmp_path / "none" / "x") == tmp_path / "none" / "x"
    assert outside_path("~") == Path.home()


def test_the_folder_one_is_in_is_no_new_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for given in (".", "./", "sub/..", tmp_path):
        with pytest.raises(OptionError, match="folder you are in"):
            new_folder(given)
    assert not list(tmp_path.iterdir())
    assert new_folder("a/../b").absolute() == tmp_path / "b"


def special(kind: str, place: Path) -> None:
    """Something at this place that is not a plain file; never a node of the machine's own."""
    if kind == "fifo":
        os.mkfifo(place)
    elif kind == "socket":
        at = os.getcwd()
        os.chdir(place.parent)  # a socket's path may have 108 bytes only
        try:
            socket.socket(socket.AF_UNIX).bind(place.name)
        finally:
            os.chdir(at)
    elif kind == "folder":
        place.mkdir()
    elif kind == "dangling link":
        place.symlink_to(place.with_name("nothing"))
    elif kind == "link to a fifo":
        os.mkfifo(place.with_name("pipe"))
        place.symlink_to(place.with_name("pipe"))
    elif kind == "device":
        try:
            os.mknod(place, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("only root can make a device")


SPECIAL = ["fifo", "socket", "folder", "dangling link", "link to a fifo", "device"]


@pytest.mark.parametrize("kind", SPECIAL)
def test_what_is_not_a_plain_file_is_never_replaced(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "out.npz"
    special(kind, place)
    before = place.lstat()
    for write in (lambda: out_file(place, "x.npz"), lambda: replace_file(place, b"new")):
        with pytest.raises(OptionError):
            write()
    with pytest.raises(OptionError), replacing(place):
        pytest.fail("the block must not run")
    assert (place.lstat().st_mode, place.lstat().st_ino) == (before.st_mode, before.st_ino)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("kind", ["fifo", "socket", "folder", "device"])
def test_reading_never_waits_for_a_pipe(kind: str, tmp_path: Path) -> None:
    special(kind, tmp_path / "x")
    with pytest.raises(OptionError):
        read_small(tmp_path / "x", 100)


def test_reading_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"x" * 101)
    with pytest.raises(OptionError, match="larger than 100 bytes"):
        read_small(tmp_path / "x", 100)
    assert len(read_small(tmp_path / "x", 101)) == 101


def test_a_link_to_a_plain_file_is_written_through_and_the_mode_stays(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.write_text("old")
    link = tmp_path / "link"
    link.symlink_to(real)
    replace_file(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o666 & ~_umask()


def _umask() -> int:
    return int(subprocess.run(["sh", "-c", "umask"], capture_output=True, text=True, check=True).stdout, 8)


def test_a_limit_on_file_sizes_names_place_and_bytes_and_leaves_the_old_file(tmp_path: Path) -> None:
    """In a process of its own, since the limit cannot be taken back."""
    (tmp_path / "out").write_bytes(b"old")
    script = (
        "import resource, sys; from pathlib import Path\n"
        "from headviz.storage.writing import DiskError, disk_errors, replace_file\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "out = Path(sys.argv[1])\n"
        "try:\n with disk_errors(out, 5000): replace_file(out, b'x' * 5000)\n"
        "except DiskError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, tmp_path / "out"], capture_output=True, text=True, check=True)
    assert f"'{tmp_path / 'out'}'" in done.stdout
    assert "5,000 bytes are needed" in done.stdout
    assert (tmp_path / "out").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["out"]


def test_a_folder_that_is_not_ours_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(DiskError, match="Permission denied"), disk_errors(tmp_path / "x"):
        raise PermissionError(13, "Permission denied", str(tmp_path / "x"))
    with pytest.raises(UserError, match="own words"), disk_errors(tmp_path):
        raise UserError("own words")
    with pytest.raises(ValueError, match="a fault"), disk_errors(tmp_path):
        raise ValueError("a fault")


# ``~`` is read in one place. The plugins lie below the storage, so they turn the same errors into a line themselves.
EXPANDS = {"storage/paths.py", "plugins.py"}
# writers of folders of their own, which nobody else names
RENAMES = {"storage/writing.py", "models/saving.py", "runs/step_models.py"}


def test_one_function_resolves_paths_and_one_replaces_files() -> None:
    resolving, replacing_files = set(), set()
    for path in SRC.rglob("*.py"):
        name, text = path.relative_to(SRC).as_posix(), path.read_text(encoding="utf-8")
        if not re.search(r"expanduser|os\.replace|\.rename\(|write_text|write_bytes", text):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                called, owner = node.func.attr, ast.unparse(node.func.value)
                if called == "expanduser":
                    resolving.add(name)
                if (called, owner) == ("replace", "os") or called in ("rename", "write_text", "write_bytes"):
                    replacing_files.add(name)
    assert resolving <= EXPANDS
    assert replacing_files - RENAMES <= {
        "extras/translation/recurrent.py",  # into a new folder, and the next, too
        "models/vector.py",
        "runs/files.py",  # the run's own flag and reserve
        "runs/process.py",  # /proc
    }


def test_reading_takes_the_memory_of_the_file_and_not_of_the_limit(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 1000)
    tracemalloc.start()
    try:
        assert read_small(tmp_path / "a", 4 * 2**30) == b"x" * 1000
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "text",
    [
        "[enforce fail at inline_container.cc:815] . PytorchStreamWriter failed writing file data/1: file write failed",
        "unexpected pos 190656 vs 190544",
    ],
)
def test_torchs_writer_on_a_full_disk_is_one_line(text: str) -> None:
    with pytest.raises(DiskError, match="the disk is full"), disk_errors("out"):
        raise RuntimeError(text)
