"""Tables that a user uploaded: stored under a digest, whatever the file was called.

Its name is kept for messages alone and never becomes a path.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import TaskError, UserError
from ..home import home


def uploads_folder() -> Path:
    return home() / "uploads"


def uploads() -> dict[str, Path]:
    """Uploads kept on this machine: id -> folder."""
    base = uploads_folder()
    return {p.name: p for p in sorted(base.iterdir()) if p.is_dir()} if base.is_dir() else {}


_NAME = ".name"  # beside the table


def upload_name(place: str) -> str:
    """What the file of an upload was called when it came last; empty for other places."""
    folder = uploads().get(place)
    if folder is None or not (folder / _NAME).is_file():
        return ""
    return (folder / _NAME).read_text(encoding="utf-8")


def with_own_name(text: str, place: str) -> str:
    """A sentence about an upload with the file's own name, instead of the one it is stored under."""
    name = upload_name(place)
    return _STORED.sub(lambda _: name, text) if name else text


_STORED = re.compile(r"(?<![\w./-])dev\.(?:csv|tsv|jsonl|parquet)\b")


@contextmanager
def naming(place: str) -> Iterator[None]:
    """Complaints about an upload speak of the file by the name that its owner knows."""
    try:
        yield
    except UserError as wrong:
        said = with_own_name(str(wrong), place)
        if said == str(wrong):
            raise
        raise type(wrong)(said) from wrong


def readable_name(name: str) -> str:
    """The last part of an uploaded file's name, printable and not endless."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    return "".join(c for c in last if c.isprintable()).strip()[-80:]


def keep_upload(content: bytes, kind: str, called: str = "") -> str:
    """Store one uploaded table as the dev split of an own task; gives its id. ``called`` is for messages."""
    if kind not in ("csv", "tsv", "jsonl", "parquet"):
        raise TaskError(f"'{kind[:20]}' files cannot be read. Upload csv, tsv, jsonl or parquet.")
    name = f"upload-{hashlib.sha256(kind.encode() + content).hexdigest()[:16]}"
    folder = uploads_folder() / name
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if called := readable_name(called):
        (folder / _NAME).write_text(called, encoding="utf-8")
    if (folder / f"dev.{kind}").is_file():
        return name
    part = folder / f".dev.{kind}.part"
    part.write_bytes(content)
    part.rename(folder / f"dev.{kind}")
    return name
