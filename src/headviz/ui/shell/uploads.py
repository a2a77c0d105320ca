"""Uploaded tables. Each is stored under its digest; the file's own name is used in messages only, never as a path."""

from __future__ import annotations

import hashlib
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

from ...errors import TaskError, UserError
from ...progress import Cancel
from ...storage.paths import home
from ...storage.strict_disk import private_folder
from ...storage.writing import replace_file
from ...tasks.readers import files_named_by


def uploads_folder() -> Path:
    return home() / "uploads"


def uploads() -> dict[str, Path]:
    """Uploads kept on this machine: id -> folder."""
    base = uploads_folder()
    return {p.name: p for p in sorted(base.iterdir()) if p.is_dir()} if base.is_dir() else {}


FORMATS = ("csv", "tsv", "jsonl", "parquet")
_NAMES = {"dev": ".name", "train": ".train-name"}  # next to the tables


def upload_name(place: str, split: str = "dev") -> str:
    """The file name of an upload; empty for other places."""
    folder = uploads().get(place)
    if folder is None or not (folder / _NAMES[split]).is_file():
        return ""
    return (folder / _NAMES[split]).read_text(encoding="utf-8")


def about(error: UserError) -> str:
    """An error's text for the user who uploaded a table: without the server's folders, and with what to do."""
    place = error.parameters.get("place")
    if error.code == "no-split" and place is not None and place in uploads().values():
        name = upload_name(place.name) or "The uploaded table"
        return f"{name} {LACKS_TRAIN if error.parameters['split'] == 'train' else LACKS_OTHER}"
    return str(error)


LACKS_TRAIN = "has no table to train on, which runs and fine-tuning need. Upload both: Data & model, Upload."
LACKS_OTHER = "is not stored here in full. Upload it again: Data & model, Upload."


def is_gone(place: str) -> bool:
    """Whether this is the id of an upload that is not on this machine."""
    return re.fullmatch(r"upload-[\w-]{1,64}", place) is not None and place not in uploads()


def has_train(place: str) -> bool:
    """Whether an upload came with a table to train on."""
    folder = uploads().get(place)
    return folder is not None and any(folder.glob("train.*"))


@contextmanager
def naming(cancel: Cancel | None = None) -> Iterator[None]:
    """In this block, messages call an uploaded file by its own name, and reading stops when ``cancel()`` is true."""

    def name_of(path: Path) -> str:
        folder = uploads().get(path.parent.name)
        is_upload = folder is not None and folder.resolve() == path.parent.resolve()
        return upload_name(path.parent.name, path.stem) if is_upload and path.stem in _NAMES else ""

    try:
        with files_named_by(name_of, cancel):
            yield
    except UserError as error:
        raise error.reworded(about(error)) from error


def readable_name(name: str) -> str:
    """The last part of an uploaded file's name: printable characters only, at most 80."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    return "".join(c for c in last if c.isprintable()).strip()[-80:]


@dataclass(frozen=True)
class Table:
    """An uploaded file. ``called`` is for messages."""

    content: bytes
    kind: str
    called: str = ""


LARGEST, OLDEST = 2 * 2**30, 30 * 24 * 3600  # bytes of all uploads together; seconds that one is kept
IN_USE = 24 * 3600  # seconds in which nothing is removed to make room


def _make_room(name: str, size: int) -> None:
    """Remove what was uploaded too long ago, then the oldest until ``size`` bytes fit; refuse where they do not."""
    now = time.time()
    others = []
    for other, folder in uploads().items():
        with suppress(OSError):  # another session removes it
            files = [p.stat() for p in folder.iterdir()]
            if other != name:
                others.append((max((f.st_mtime for f in files), default=0.0), sum(f.st_size for f in files), folder))
    taken = sum(old_size for _, old_size, _ in others)
    for uploaded, old_size, folder in sorted(others, key=itemgetter(0)):
        if now - uploaded > OLDEST or (taken + size > LARGEST and now - uploaded > IN_USE):
            shutil.rmtree(folder, ignore_errors=True)
            taken -= old_size
    if taken + size > LARGEST:
        raise TaskError(f"Uploads may take {LARGEST / 2**30:.0f} GB together, and are full. Try again tomorrow.")


def keep_upload(content: bytes, kind: str, called: str = "", train: Table | None = None) -> str:
    """Store an uploaded table as the dev split of an own task, and ``train`` as its train split; gives its id."""
    tables = {"dev": Table(content, kind, called)} | ({} if train is None else {"train": train})
    for table in tables.values():
        if table.kind not in FORMATS:
            raise TaskError(f"'{table.kind[:20]}' files cannot be read. Upload csv, tsv, jsonl or parquet.")
    digest = hashlib.sha256(kind.encode() + content)
    if train is not None:
        digest.update(b"\0train\0" + train.kind.encode() + train.content)
    name = f"upload-{digest.hexdigest()[:16]}"
    private_folder(uploads_folder())
    _make_room(name, sum(len(table.content) for table in tables.values()))
    folder = uploads_folder() / name
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for split, table in tables.items():
        if shown := readable_name(table.called):
            replace_file(folder / _NAMES[split], shown)
        if not (folder / f"{split}.{table.kind}").is_file():
            replace_file(folder / f"{split}.{table.kind}", table.content)
    return name
