"""The states of a job on disk: each is written whole, and a damaged one is passed over for the one before it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..storage.writing import replace_file

SEAL = b"headviz-checkpoint-1\n"


@dataclass(frozen=True)
class Checkpoints:
    """A series of files in a folder, which need not exist yet. The newest ``keep`` of them stay.

    A sealed file begins with a checksum of its content; of another series the content itself must tell damage.
    """

    folder: Path
    begin: str = "checkpoint-"  # of the files' names
    end: str = ".bin"
    digits: int = 1  # of the number in a name, at least; 0 = one file without a number
    keep: int = 2
    sealed: bool = True

    def files(self) -> list[tuple[int, Path]]:
        """(number, file), the newest first."""
        number = rf"(\d{{{self.digits},}})" if self.digits else "()"
        pattern = re.compile(re.escape(self.begin) + number + re.escape(self.end))
        with suppress(OSError):
            named = [(pattern.fullmatch(path.name), path) for path in self.folder.iterdir()]
            return sorted(((int(match[1] or 0), path) for match, path in named if match), reverse=True)
        return []

    def save(self, body: bytes) -> None:
        """Write the newest state; after this returns, a crash cannot lose it. One that is there is not repeated."""
        whole = SEAL + hashlib.sha256(body).digest() + body if self.sealed else body
        before = self.files()
        with suppress(OSError):
            if before and before[0][1].read_bytes() == whole:
                return
        number = str(before[0][0] + 1 if before else 1).zfill(self.digits) if self.digits else ""
        self.folder.mkdir(parents=True, exist_ok=True)
        replace_file(self.folder / f"{self.begin}{number}{self.end}", whole, durable=True)
        for _, old in self.files()[self.keep :]:
            old.unlink(missing_ok=True)

    def bodies(self) -> Iterator[tuple[Path, bytes | None]]:
        """Each file with its content, the newest first; None = it is damaged."""
        start = len(SEAL) + hashlib.sha256().digest_size
        for _, path in self.files():
            raw = None
            with suppress(OSError):
                raw = path.read_bytes()
            if raw is not None and self.sealed:
                intact = raw[:start] == SEAL + hashlib.sha256(raw[start:]).digest()
                raw = raw[start:] if intact else None
            yield path, raw

    def newest(self) -> bytes | None:
        """The content of the newest file that is not damaged; None without one."""
        return next((body for _, body in self.bodies() if body is not None), None)
