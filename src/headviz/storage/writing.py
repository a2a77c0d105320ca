"""Writing a file whole or not at all, and saying in one line why a disk refuses.

Every file that headviz replaces is replaced here. What is not a plain file (a device, pipe, socket or folder) is never
replaced; a link is followed to the plain file that it leads to.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import UserError
from .paths import refuse_special

FULL = {getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EFBIG") if hasattr(errno, name)}
FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
_RUST = re.compile(r"\(os error (\d+)\)")  # how safetensors and tokenizers pass the system's error on

_TORCH = re.compile(r"unexpected pos \d+ vs \d+|PytorchStreamWriter failed|inline_container\.cc")


class DiskError(UserError):
    """A place cannot be written: it is full, or it is not the user's."""

    code = "disk"


@contextmanager
def replacing(path: Path, durable: bool = False) -> Iterator[Path]:
    """A new file next to ``path`` to write into. It takes the place of ``path`` when the block ends without an error.

    ``durable`` also survives a power cut, and costs a disk flush.
    """
    refuse_special(path)
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name[:40]}.{secrets.token_hex(4)}.tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o666)
    mode = stat.S_IMODE(os.fstat(handle).st_mode)
    os.close(handle)
    try:
        yield temporary
        if durable:
            _flush(temporary)
        if stat.S_IMODE(temporary.stat().st_mode) != mode:  # safetensors makes its files private
            temporary.chmod(mode)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable and os.name != "nt":
        _flush(target.parent)


def replace_file(path: Path, body: bytes | str, durable: bool = False) -> None:
    """``body`` under this name, whole or not at all. Text is written as UTF-8, its line ends as they are."""
    with replacing(path, durable) as temporary:
        temporary.write_bytes(body.encode() if isinstance(body, str) else body)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def disk_error(error: BaseException, place: object = None, needed: int | None = None) -> DiskError | None:
    """The error in one line if a full, limited or forbidden place is behind it; None for any other error."""
    number = error.errno if isinstance(error, OSError) else _number_in(error)
    if isinstance(error, OSError):
        place = place or error.filename
    where = f"'{place}'" if place else "the output"
    if number in FULL:
        room = "" if needed is None else f" {needed:,} bytes are needed."
        why = "a limit on the size of files is reached" if number == errno.EFBIG else "the disk is full"
        return DiskError(f"Cannot write {where}: {why}.{room} Free some space, or choose another place.")
    if number in FORBIDDEN:
        return DiskError(f"Cannot use {where}: {os.strerror(number)}. Choose a place that is yours.")
    return None


def _number_in(error: BaseException) -> int:
    # safetensors has an error of its own, tokenizers raises a bare Exception, torch's writer a RuntimeError
    if isinstance(error, RuntimeError) and _TORCH.search(str(error)):
        return errno.ENOSPC
    match = _RUST.search(str(error)) if type(error).__name__ in ("SafetensorError", "Exception") else None
    return int(match[1]) if match else 0


@contextmanager
def disk_errors(place: object, needed: int | None = None) -> Iterator[None]:
    """Around writing to a place: every refusal of the system becomes one clear line."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        if (message := disk_error(error, place, needed)) is not None:
            raise message from error
        if isinstance(error, OSError):  # a file where a folder should be, a place that takes no files, a broken disk
            raise DiskError(f"Cannot write '{place}': {error.strerror or error}. Choose another place.") from error
        raise
