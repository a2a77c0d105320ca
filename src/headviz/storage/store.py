"""A disk cache of arrays that several processes share. It never executes what it reads.

Values are safetensors with a checksum, kept through ``StrictDisk``. An entry that is damaged or was not written by
headviz is deleted and computed again.

Do not keep the only copy of anything here: entries are deleted when the size limit is reached.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
import time
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import diskcache
import numpy as np
import safetensors.numpy

from .. import plugins
from ..errors import OptionError, shown
from .paths import home
from .strict_disk import (
    DAMAGED,
    ERRORS,
    FULL,
    LOCK_SECONDS,
    SETTINGS,
    ForeignEntryError,
    StrictDisk,
    is_ours,
    meaning,
    own_file,
    private_folder,
    reader,
    remove_database,
)

LIMIT_VARIABLE = "HEADVIZ_CACHE_LIMIT"
DEFAULT_LIMIT = 2 * 2**30  # bytes
LARGEST_LIMIT = 2**50

_MAGIC = b"headviz2"
_SUM = hashlib.sha256
_BY_KIND = "SELECT substr(key, 1, instr(key, ':') - 1), COUNT(*) FROM Cache GROUP BY 1 ORDER BY 1"
_SIZE = (  # of the database, and of the files next to it
    "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
    "SELECT COALESCE(SUM(value), 0) FROM Settings WHERE key = 'size'",
)


class StoreWarning(UserWarning):
    """The cache could not be used; the result itself is not affected."""


def make_key(kind: str, **parts: object) -> str:
    """``kind:`` and the SHA-256 of everything the value depends on.

    Give digests of weights, tokenizer and input, the options, and the algorithm's version. Do not use names: a name
    stays the same when the weights change.
    """
    if plugins.salt():
        parts["plugins"] = plugins.salt()
    if rounded := _rounded():
        parts["rounded"] = rounded
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True, allow_nan=True, separators=(",", ":"))
    return f"{kind}:{hashlib.sha256(text.encode()).hexdigest()}"


def _rounded() -> dict[str, str]:
    """The precision in which PyTorch is set to multiply float32 matrices, where it is lower, such as TF32."""
    import torch  # here, because commands that only list the cache make no key and need no torch

    gpu, processor = torch.backends.cuda.matmul, torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    precisions = {"gpu": gpu.fp32_precision, "processor": processor.fp32_precision}
    return {device: precision for device, precision in precisions.items() if precision not in ("none", "ieee")}


@dataclass(frozen=True)
class Entry:
    """What was stored: named arrays and their metadata."""

    arrays: dict[str, np.ndarray]
    words: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Usage:
    """What ``headviz cache show`` says."""

    folder: str
    entries: int
    bytes: int
    limit: int
    kinds: dict[str, int]


def _pack(key: str, entry: Entry) -> bytes:
    body = pack(entry.arrays, entry.words)
    return _head(key, body) + body


def _head(key: str, body: bytes) -> bytes:
    """The format's version, and a checksum of it, of the key (kind and digest), of the length and of the content.

    It includes the key so that an entry that was moved to another key is not read.
    """
    name = key.encode()
    digest = _SUM(_MAGIC + len(name).to_bytes(8, "little") + name + len(body).to_bytes(8, "little"))
    digest.update(body)
    return _MAGIC + digest.digest()


def _unpack(key: str, raw: bytes) -> Entry:
    start = len(_MAGIC) + _SUM().digest_size
    head, body = raw[:start], raw[start:]
    if head != _head(key, body):
        raise ForeignEntryError("a damaged entry, or one of another key")
    return Entry(*unpack(body))


class Store:
    """Named arrays under a key. Reading never fails: a missing or damaged entry is ``None``.

    What ``put`` has stored is found by every process until it is deleted or the size limit is reached, also while
    others write the same key.
    Writing never fails either: on a full disk or in a folder without permission it gives a ``StoreWarning``, and the
    caller continues with the value it has.
    """

    def __init__(self, folder: str | Path | None = None, limit: int | None = None) -> None:
        self.folder = Path(folder) if folder is not None else home() / "store"
        self.limit = limit if limit is not None else limit_from_environment()
        self._cache: diskcache.Cache | None = None
        self._unusable = self._full = False

    def get(self, key: str) -> Entry | None:
        """The entry; None if it is missing, damaged or not written by headviz."""
        disk = self._open()
        if disk is None:
            return None
        try:
            raw = disk.get(key)
            if raw is None and key in disk:  # another process replaced the value between the look-up and the reading
                with disk.transact():  # now none can
                    raw = disk.get(key)
                if raw is None:
                    raise ForeignEntryError("an entry without its file")
            return None if raw is None else _unpack(key, raw)
        except ERRORS as error:
            self._mend(error)
        except (ForeignEntryError, ValueError, TypeError, KeyError):
            self._drop(disk, key)
        except (OSError, diskcache.Timeout):
            pass  # deleted meanwhile, or busy: the same as missing
        return None

    def put(self, key: str, arrays: Mapping[str, np.ndarray], words: Mapping[str, str] | None = None) -> bool:
        """Store the arrays; False, with a warning, if that was not possible."""
        return self.put_many([(key, Entry(dict(arrays), dict(words or {})))])

    def put_many(self, entries: Iterable[tuple[str, Entry]]) -> bool:
        """Store all of them, or none if the process dies in between."""
        disk = self._open()
        if disk is None:
            return False
        packed = [(key, _pack(key, entry)) for key, entry in entries]
        for attempt in (1, 2):
            try:
                with disk.disk.files_follow(), disk.transact():
                    for key, raw in packed:
                        disk.set(key, raw)
                return True
            except ERRORS as error:
                mended = attempt == 1 and self._mend(error)
                disk = self._open() if mended else None
                if disk is None:
                    self._warn(error)
                    return False
            except (OSError, diskcache.Timeout) as error:
                self._warn(error)
                return False
        return False

    def delete(self, key: str) -> None:
        disk = self._open()
        if disk is not None:
            self._drop(disk, key)

    def usage(self) -> Usage:
        """Number and size of the entries, by kind."""
        kinds: dict[str, int] = {}
        total = 0
        if self._open() is not None or self._full:
            try:
                with reader(self.folder) as base:
                    tables = {name for (name,) in base.execute("SELECT name FROM sqlite_master")}
                    if {"Cache", "Settings"} <= tables:  # on a full disk one of them may be missing
                        kinds = dict(base.execute(_BY_KIND))
                        total = sum(int(base.execute(query).fetchone()[0]) for query in _SIZE)
            except ERRORS as error:
                if not self._mend(error):
                    raise
                kinds, total = {}, 0
        return Usage(str(self.folder), sum(kinds.values()), total, self.limit, kinds)

    def clear(self) -> int:
        """Delete every entry and its file; returns how many there were."""
        disk = self._open()
        rebuild, count = self._full, 0
        try:
            if disk is not None:
                with disk.disk.files_follow(), disk.transact():
                    count = int(disk.clear())
                rebuild = self.usage().entries > 0  # rows that a damaged index does not lead to
        except ERRORS as error:
            if isinstance(error, sqlite3.OperationalError) and meaning(error) not in (FULL, DAMAGED):
                raise
            rebuild = True
        if rebuild:  # rows cannot be deleted one by one; other processes keep the old database until they end
            count += self.usage().entries
            self.close()
            remove_database(self.folder)
            self._unusable = self._full = False
        elif disk is None:
            return 0
        for path in self.folder.glob("??/??/*.val"):  # what a killed process left
            if own_file(path.relative_to(self.folder).as_posix()) and not _is_new(path):
                path.unlink(missing_ok=True)
        return count

    def close(self) -> None:
        if self._cache is not None:
            self._cache.close()
            self._cache = None

    def _open(self) -> diskcache.Cache | None:
        if self._cache is None and not self._unusable:
            try:
                private_folder(self.folder)
                if not is_ours(self.folder):
                    remove_database(self.folder)
                try:
                    self._cache = self._connect()
                except ERRORS as error:
                    if not self._mend(error):
                        raise
                    self._cache = self._connect()
            except (OSError, *ERRORS, diskcache.Timeout) as error:
                self._unusable = True
                self._full = meaning(error) == FULL
                self._warn(error)
        return self._cache

    def _connect(self) -> diskcache.Cache:
        return diskcache.Cache(
            str(self.folder), timeout=LOCK_SECONDS, disk=StrictDisk, **{**SETTINGS, "size_limit": self.limit}
        )

    def _drop(self, disk: diskcache.Cache, key: str) -> None:
        with suppress(*ERRORS, diskcache.Timeout, OSError):
            disk.delete(key)

    def _mend(self, error: Exception) -> bool:
        """Delete a damaged database, so that a new one is made. False for locks and full disks."""
        if isinstance(error, sqlite3.OperationalError) and meaning(error) != DAMAGED:
            return False
        self.close()
        try:
            remove_database(self.folder)
        except OSError:
            return False
        return True

    def _warn(self, error: Exception) -> None:
        reason = "the disk is full" if meaning(error) == FULL else str(error) or type(error).__name__
        warnings.warn(
            f"The cache in {self.folder} cannot be used ({reason}); results are computed but not kept. "
            "Free some space, or set HEADVIZ_HOME to a folder of yours on a local disk.",
            StoreWarning,
            stacklevel=4,
        )


def _is_new(path: Path) -> bool:
    """Whether another process may have written this file just now and be waiting to record it."""
    try:
        return time.time() - path.lstat().st_mtime < 6 * LOCK_SECONDS
    except FileNotFoundError:
        return True


def limit_from_environment() -> int:
    """The size limit in bytes: ``$HEADVIZ_CACHE_LIMIT``, such as ``500MB`` or ``4GB``, else 2 GB."""
    text = os.environ.get(LIMIT_VARIABLE, "").strip()
    if not text:
        return DEFAULT_LIMIT
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", text.lower())
    size = float(match[1]) * 1024 ** " kmgt".index(match[2] or " ") if match else 0
    if not 2**20 <= size <= LARGEST_LIMIT:
        raise OptionError(
            f"{LIMIT_VARIABLE}={shown(text)} is not a size from 1 MB to 1,024 TB. Write one such as 500MB or 4GB."
        )
    return int(size)


@cache
def _shared(folder: Path, limit: int) -> Store:
    return Store(folder, limit)


def default_store() -> Store:
    """The store under ``home()``; one object per process and folder."""
    return _shared(home() / "store", limit_from_environment())


def store_for(cache: Store | bool) -> Store | None:
    """The store for an argument ``cache``: one that is passed, the shared one for True, none for False."""
    if isinstance(cache, Store):
        return cache
    return default_store() if cache else None


def pack(arrays: Mapping[str, np.ndarray], words: Mapping[str, str] | None = None) -> bytes:
    """The bytes of a safetensors file with ``words`` in its header."""
    return safetensors.numpy.save(
        {name: np.asarray(array, order="C") for name, array in arrays.items()}, dict(words or {})
    )


def unpack(raw: bytes) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The inverse of ``pack``: arrays and words; a ``ValueError`` for bytes of another form."""
    try:
        arrays = safetensors.numpy.load(raw)
    except safetensors.SafetensorError as error:
        raise ValueError(str(error)) from error
    size = int.from_bytes(raw[:8], "little")
    return arrays, json.loads(raw[8 : 8 + size]).get("__metadata__", {})
