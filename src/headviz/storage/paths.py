"""Paths that come from outside: the command line, a page, a plan, an environment variable.

``outside_path`` is the one way from a text to a ``Path``. It says in one line what is wrong with a text that names no
place, so that no later call meets a path which the system cannot take. ``home`` is where headviz writes.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from huggingface_hub import constants

from ..errors import NotDownloaded, OptionError, shown

OUT = "--out"  # the option that names a new file or folder
LONGEST_NAME = 255  # bytes in one part of a path, on every usual file system
LONGEST_PATH = 4096  # bytes in the whole path


def outside_path(location: Any, what: str = "the path", look: bool = True) -> Path:
    """The path that a text names, with ``~`` replaced by the home folder. It need not exist.

    Refuses an empty text, NUL, text that is not UTF-8, names and paths that are too long, the home of an unknown user,
    and, unless ``look`` is false, paths that the system does not let us look at.
    """
    if not isinstance(location, str | os.PathLike):
        raise _refused(what, location, f"is not a text but {type(location).__name__}")
    text = os.fspath(location)
    if isinstance(text, bytes):
        raise _refused(what, location, "is bytes, not text")
    if not text:
        raise _refused(what, text, "is empty")
    if "\0" in text:
        raise _refused(what, text, "contains the character NUL")
    try:
        raw = text.encode("utf-8")
    except UnicodeEncodeError:
        raise _refused(what, text, "is not UTF-8") from None
    if len(raw) > LONGEST_PATH:
        raise _refused(what, text, f"is longer than {LONGEST_PATH} bytes")
    if any(len(part) > LONGEST_NAME for part in raw.split(b"/")):
        raise _refused(what, text, f"has a name longer than {LONGEST_NAME} bytes")
    try:
        path = Path(text).expanduser()
    except RuntimeError:
        raise _refused(what, text, f"is in the home folder of '{text.split('/')[0]}', an unknown user") from None
    if look:
        kind_at(path, what)
    return path


def kind_at(path: Path, what: str = "the path") -> str:
    """``file``, ``folder``, ``other`` (a device, pipe or socket), ``link`` (to nothing), or ``""`` for nothing."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if error.errno == errno.ENOENT:
            return "link" if path.is_symlink() else ""
        if error.errno == errno.ENOTDIR:
            return ""
        raise _refused(what, path, f"cannot be looked at ({error.strerror})") from error
    if stat.S_ISREG(mode):
        return "file"
    return "folder" if stat.S_ISDIR(mode) else "other"


def out_file(location: Any, example: str, option: str = OUT) -> Path:
    """Where a new file may be written: an existing folder, and in it nothing or a plain file of this name."""
    path = outside_path(location, option)
    kind = kind_at(path, option)
    if kind == "folder":
        raise OptionError(f"'{path}' is a folder. Give a file name such as {path / example}.")
    refuse_special(path)
    if not path.parent.is_dir():
        raise OptionError(f"There is no folder '{path.parent}' to write '{path.name}' into. Make it first.")
    _writable(path.parent, path, option)
    return path


def new_folder(location: Any) -> Path:
    """Where a new folder may be made: nothing is there, or an empty folder."""
    path = outside_path(location, OUT)
    if not path.name or ".." in path.parts:
        path = path.resolve()
    if path.absolute() == Path.cwd():  # a folder is put in place as a whole
        raise OptionError(f"'{location}' is the folder you are in. Choose a name in it.")
    kind = kind_at(path, OUT)
    if not kind:
        _writable(next((p for p in path.absolute().parents if p.exists()), path), path, OUT)
        return path
    try:
        if kind == "folder" and not any(path.iterdir()):
            return path
    except OSError as error:
        raise _refused(OUT, path, f"cannot be read ({error.strerror})") from error
    raise OptionError(f"'{path}' exists and is not an empty folder. Choose another name or remove it first.")


def _writable(folder: Path, path: Path, what: str) -> None:
    """An error, before any work is done, where nothing new may be made in the folder."""
    if folder.is_dir() and not os.access(folder, os.W_OK | os.X_OK):
        raise _refused(what, path, f"cannot be written ({os.strerror(errno.EACCES)})")


def refuse_special(path: Path) -> None:
    """An error where writing would replace a device, a pipe, a socket, a folder, or a link to no plain file."""
    kind = kind_at(path)
    if kind not in ("", "file"):
        name = {"folder": "a folder", "link": "a link to nothing"}.get(kind, "a device, pipe or socket")
        raise OptionError(f"'{path}' is {name}, not a plain file, and is not replaced. Choose another name.")


@contextmanager
def opened(path: Path, what: str = "the file") -> Iterator[BinaryIO]:
    """A plain file to read. Never waits for the other end of a pipe."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise OptionError(f"{what} '{path}' is not a plain file. Give one.")
            yield file
    except OSError as error:
        raise OptionError(f"{what} '{path}' cannot be read: {error.strerror or error}.") from error


def read_small(path: Path, limit: int, what: str = "the file") -> bytes:
    """The content of a plain file of at most ``limit`` bytes."""
    with opened(path, what) as file:
        size = os.fstat(file.fileno()).st_size  # a file of holes is as large as it says
        if size > limit:
            raise OptionError(f"{what} '{path}' is larger than {limit:,} bytes, and nothing of that kind needs to be.")
        content = file.read(size + 1)  # Python reserves the memory that is asked for
    if len(content) > size:
        raise OptionError(f"{what} '{path}' grew while it was read. Try again.")
    return content


def _refused(what: str, value: object, why: str) -> OptionError:
    text = value if isinstance(value, str) else os.fsdecode(value) if isinstance(value, os.PathLike) else shown(value)
    text = text if len(text) <= 80 else text[:60] + "…" + text[-15:]
    clean = "".join(c if c.isprintable() else "?" for c in text)
    return OptionError(f"{what[0].upper()}{what[1:]}: '{clean}' {why}. Give another path.", code="path")


VARIABLE = "HEADVIZ_HOME"  # the folder for everything that headviz writes
ROOTS = "HEADVIZ_ROOTS"  # folders that the dashboard may read, separated like PATH
START = "HEADVIZ_START"  # the query of what the dashboard's plain address opens


def home() -> Path:
    """``$HEADVIZ_HOME``, else the checkout's ``cache/``, else the user's cache folder.

    The folder is not created here. It must be on a local disk: SQLite's locks fail on network file systems.
    """
    if folder := os.environ.get(VARIABLE):
        return outside_path(folder, VARIABLE, look=False).absolute()
    checkout = Path(__file__).resolve().parents[3]
    if (checkout / "pyproject.toml").is_file() and (checkout / "cache").is_dir():
        return checkout / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "headviz"
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA", str(Path.home()))) / "headviz" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headviz"


# -----------------------------------------------------------------------------------------------
# When files of the hub are fetched: where they are needed or, in a dashboard, after a press that names them.
#
# A link that anybody made can open a page of the dashboard. So the dashboard's process reads what is in the hub's
# local cache, and sends no request for anything else until a user has asked for it.


_named: frozenset[str] | None = None  # None: files are fetched where they are needed


def wait_for_press(named: Iterable[str] | None = ()) -> None:
    """From now on this process fetches only what ``NotDownloaded.fetch`` is called for, and what is ``named`` here.

    None: everything that is needed, as at the start.
    """
    global _named
    _named = None if named is None else frozenset(named)


def obtain(
    name: str,
    cached: Callable[[], Path | None],
    fetch: Callable[[], Path],
    press: Callable[[], object],
    shown: str,
    more: str = "",
) -> Path:
    """Where the files of ``name`` are: fetched as the process may do it, else a ``NotDownloaded`` with ``press``.

    ``cached`` looks on this machine only. ``shown`` and ``more`` say what a press fetches.
    """
    if _named is None:
        return fetch()
    if (cached_value := cached()) is not None:
        return cached_value
    if name in _named:
        return fetch()
    hub = constants.ENDPOINT.split("://")[-1]
    raise NotDownloaded(
        f"{shown} is not on this machine. It is downloaded from {hub} when you ask for it{more}.", shown, press
    )


def broken_off() -> tuple[type[BaseException], ...]:
    """Refused, timed out and interrupted connections to the hub, and a full disk: OSError, and the error class of
    whichever HTTP library this version of the hub's client uses."""
    bases: tuple[type[BaseException], ...] = import_module("huggingface_hub.errors").HfHubHTTPError.__bases__
    return bases
