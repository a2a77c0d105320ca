"""The disk under the cache: it reads bytes, never code.

diskcache pickles what it stores, so anybody who can write to its folder could run code in the next process that
reads it. Here keys are text and values are bytes; rows, files and databases of any other form are refused.
"""

from __future__ import annotations

import errno
import os
import re
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import diskcache

# sqlite3 also fails to decode the text of its own error where a damaged name stands in it
ERRORS = (sqlite3.DatabaseError, UnicodeDecodeError)
LOCKED, FULL, DAMAGED, OTHER = "locked", "full", "damaged", "other"
_MEANING = {
    sqlite3.SQLITE_BUSY: LOCKED,
    sqlite3.SQLITE_LOCKED: LOCKED,
    sqlite3.SQLITE_FULL: FULL,
    sqlite3.SQLITE_IOERR_SHMSIZE: FULL,  # no room for the index that readers share
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: DAMAGED,
}
_DAMAGED_SCHEMA = (
    "malformed database schema",
    "no such table",
    "no such column",
    "has no column named",
    "unsupported file format",
)
_PRIMARY = 0xFF  # the low byte of an extended result code is the code itself


def meaning(error: Exception) -> str:
    """What an error of SQLite means, one of LOCKED, FULL, DAMAGED, OTHER. Nothing else looks into these errors."""
    if isinstance(error, UnicodeDecodeError):
        return DAMAGED
    code = getattr(error, "sqlite_errorcode", None)  # errors of Python's own, such as a closed database, have none
    if code is None:
        return OTHER
    # for a damaged table definition SQLite gives its general error code; only the text says more
    if code == sqlite3.SQLITE_ERROR and any(words in str(error) for words in _DAMAGED_SCHEMA):
        return DAMAGED
    return _MEANING.get(code) or _MEANING.get(code & _PRIMARY, OTHER)


INLINE = 32 * 2**10  # bytes; smaller values live in the database, larger ones in files of their own
LOCK_SECONDS = 10.0
TRIES = 10  # to make a file in a folder that others tidy away
# Given at every opening, so that the settings of a foreign database never apply.
SETTINGS = {**diskcache.DEFAULT_SETTINGS, "disk_min_file_size": INLINE, "cull_limit": 32}

_FILE = re.compile(r"[0-9a-f]{2}/[0-9a-f]{2}/[0-9a-f]{28}\.val")
LARGEST_VALUE = 2**30  # bytes
_METADATA = {"count", "size", "hits", "misses"}
_SCHEMA = {
    "Settings",
    "Cache",
    "Cache_key_raw",
    "Cache_expire_time",
    "Cache_store_time",
    "sqlite_autoindex_Settings_1",
    "Settings_count_insert",
    "Settings_count_delete",
    "Settings_size_insert",
    "Settings_size_update",
    "Settings_size_delete",
}


class ForeignEntryError(Exception):
    """A row or file that headviz did not write."""


class StrictDisk(diskcache.Disk):
    """Text keys and byte values only. Nothing is unpickled, and no path leads out of the folder."""

    def __init__(self, directory: str, min_file_size: int = INLINE, **_: object) -> None:
        super().__init__(directory, min_file_size=min_file_size, pickle_protocol=0)
        self._transaction = threading.local()

    @contextmanager
    def files_follow(self) -> Iterator[None]:
        """Around a transaction: files that it replaces are removed after its end, files of its own if it fails.

        diskcache removes them at once in a nested transaction. Until the outer one ends, other processes see the old
        rows, and a row without its file would be a lost entry.
        """
        written: list[str] = []
        removed: list[str] = []
        self._transaction.written, self._transaction.removed, unneeded = written, removed, written
        try:
            yield
            unneeded = removed
        finally:
            del self._transaction.written, self._transaction.removed
            for name in unneeded:
                self.remove(name)

    def put(self, key: Any) -> tuple[str, bool]:
        if type(key) is not str:
            raise ForeignEntryError(f"keys are text, not {type(key).__name__}")
        return key, True

    def get(self, key: Any, raw: Any) -> str:
        if raw != 1 or type(key) is not str:
            raise ForeignEntryError("a key that is not text")
        return key

    def store(self, value: Any, read: bool, key: Any = None) -> tuple[int, int, str | None, Any]:
        if read or type(value) is not bytes:
            raise ForeignEntryError(f"values are bytes, not {type(value).__name__}")
        if len(value) > LARGEST_VALUE:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        if len(value) < self.min_file_size:
            return 0, diskcache.core.MODE_RAW, None, sqlite3.Binary(value)
        name, path = self.filename()
        name = name.replace(os.sep, "/")
        handle = _new_file(path)
        getattr(self._transaction, "written", []).append(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(value)
        except OSError:
            with suppress(OSError):
                os.unlink(path)  # a half file on a full disk
            raise
        return len(value), diskcache.core.MODE_BINARY, name, None

    def fetch(self, mode: Any, filename: Any, value: Any, read: bool) -> bytes:
        if read:
            raise ForeignEntryError("file handles are not given out")
        if mode == diskcache.core.MODE_RAW and filename is None and type(value) is bytes:
            return value
        if mode != diskcache.core.MODE_BINARY or not own_file(filename):
            raise ForeignEntryError(f"an entry of mode {mode!r} in file {filename!r}")
        path = os.path.join(self._directory, filename)
        if os.path.realpath(path) != os.path.join(os.path.realpath(self._directory), *filename.split("/")):
            raise ForeignEntryError(f"{filename} is a link")
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise ForeignEntryError(f"{filename} is not a plain file")
            if os.fstat(handle).st_size > LARGEST_VALUE:
                raise ForeignEntryError(f"{filename} is too large")
            return file.read()

    def remove(self, file_path: Any) -> None:
        # also called when a row is deleted: a forged row must not delete a foreign file
        if not own_file(file_path):
            return
        if hasattr(self._transaction, "removed"):
            self._transaction.removed.append(file_path)
        else:
            super().remove(file_path)


def _new_file(path: str) -> int:
    """A handle of a file that was not there. Another process may remove its folder, while empty, before it is made."""
    for _ in range(TRIES):
        with suppress(FileNotFoundError):
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    raise FileNotFoundError(errno.ENOENT, "its folder is removed again and again", path)


def own_file(name: object) -> bool:
    return isinstance(name, str) and _FILE.fullmatch(name) is not None


def private_folder(folder: Path) -> None:
    """Make the folder, for its owner only; a ``PermissionError`` if it belongs to another user."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.name == "nt":
        return
    status = folder.stat()
    if status.st_uid != os.geteuid():
        raise PermissionError(f"{folder} belongs to another user")
    if stat.S_IMODE(status.st_mode) & 0o077:
        folder.chmod(0o700)


def remove_database(folder: Path) -> None:
    for name in ("cache.db", "cache.db-wal", "cache.db-shm", "cache.db-journal"):
        (folder / name).unlink(missing_ok=True)


@contextmanager
def reader(folder: Path) -> Iterator[sqlite3.Connection]:
    def connected(options: str) -> sqlite3.Connection:
        uri = (folder / "cache.db").absolute().as_uri()
        return sqlite3.connect(f"{uri}?mode=ro{options}", uri=True, timeout=LOCK_SECONDS)

    base = connected("")
    try:
        try:
            base.execute("SELECT 1 FROM sqlite_master")
        except sqlite3.OperationalError as error:
            if meaning(error) != FULL:
                raise
            base.close()
            base = connected("&immutable=1")  # nobody writes while there is no room for the index of all processes
        yield base
    finally:
        base.close()


def is_ours(folder: Path) -> bool:
    """Whether the database, if any, has diskcache's own tables and settings and nothing else.

    Settings become attributes and pragmas when the database is opened, so unknown ones would be dangerous.
    """
    try:
        if not stat.S_ISREG((folder / "cache.db").lstat().st_mode):
            return False  # a pipe, a link: nothing that is read
    except OSError:
        return True  # nothing is there, or opening it will say why
    try:
        with (folder / "cache.db").open("rb") as file:
            if max(file.read(20)[18:], default=0) > 2:
                return False  # a format that SQLite only reads
        with reader(folder) as base:
            names = {name for (name,) in base.execute("SELECT name FROM sqlite_master")}
            if not names:
                return True  # another process is making it right now
            settings = {k for k, _ in base.execute("SELECT key, value FROM Settings")} if "Settings" in names else set()
    except sqlite3.OperationalError as error:
        return meaning(error) != DAMAGED  # busy, or not readable: opening it will say so
    except OSError:
        return True
    except ERRORS:
        return False
    return names <= _SCHEMA and settings <= set(SETTINGS) | _METADATA
