"""The folder of a run: log, progress, checkpoints, outcome.

Every file but the log is written under a temporary name, flushed to disk and renamed, so a reader sees
the old content or the new one, never half of it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..engine import Checkpoints
from ..errors import OptionError, RunError, UserError
from ..storage.paths import home, opened, read_small
from ..storage.writing import FULL, DiskError, disk_error, replace_file
from .process import monotonic, place
from .record import ID

LARGEST_JSON = 256 * 2**20  # bytes of an outcome
LOG_END = 16_384  # bytes of a log that are read
RESERVE = 256 * 1024  # bytes held per run and freed when the disk is full, so that the end can be recorded

_SECRET = re.compile(r"\bhf_[A-Za-z0-9]{8,}")


class DiskFull(RunError, DiskError):
    """Nothing more can be written."""

    code = "disk-full"


def runs_home() -> Path:
    return home() / "runs"


class RunFiles:
    """The files of one run. ``create`` makes the folder; reading works without it."""

    def __init__(self, run_id: str, root: Path | None = None) -> None:
        if not ID.fullmatch(run_id):
            raise RunError(f"'{run_id}' is not a run. `headviz run list` shows them.")
        self.folder = (root or runs_home()) / run_id
        self.log = self.folder / "log.txt"
        self.cancel_flag = self.folder / "cancel"
        self.progress = self.folder / "progress.json"
        self.outcome = self.folder / "outcome.json"
        self.results = self.folder / "results"  # what the job itself leaves: models, tables
        self.checkpoints = Checkpoints(self.folder)
        self._reserve = self.folder / "reserve"

    def create(self) -> None:
        with writing_run(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.make_reserve()

    def make_reserve(self) -> None:
        """Write the reserve; on a full disk there is none, and the run's own writing will fail with a clear message."""
        with suppress(OSError):
            if not self._reserve.exists():
                self._reserve.write_bytes(b"\0" * RESERVE)

    def free_reserve(self) -> None:
        """Free the reserve, so that an error can be recorded on a full disk."""
        with suppress(OSError):
            self._reserve.unlink(missing_ok=True)

    def sweep_temporary(self) -> None:
        """Delete files that a killed process left half-written."""
        with suppress(OSError):
            for path in self.folder.glob(".*.tmp"):
                path.unlink(missing_ok=True)

    # small files ------------------------------------------------------------------------------

    def read_json(self, path: Path) -> dict[str, Any]:
        """The JSON object in a file; {} where there is none yet."""
        try:
            content = json.loads(read_small(path, LARGEST_JSON))
        except (OptionError, ValueError, RecursionError):
            return {}
        return content if isinstance(content, dict) else {}

    def ask_cancel(self, who: str) -> None:
        """Make the flag file that the worker looks at. This works while the registry is locked or the disk is full."""
        if not self.cancel_flag.exists():
            with writing_run(self.folder):
                self.cancel_flag.touch()
            with suppress(OSError):  # who and when are extra; the flag itself is there
                self.cancel_flag.write_text(json.dumps({"who": who, "at": monotonic(), "place": place()}))

    def cancel_age(self) -> float | None:
        """Seconds since the flag was raised on this machine; None without one."""
        if not self.cancel_flag.exists():
            return None
        content = self.read_json(self.cancel_flag)
        return monotonic() - content["at"] if content.get("place") == place() else 0.0

    def log_tail(self, lines: int = 30) -> list[str]:
        """The end of the log, with access tokens hidden."""
        try:
            with opened(self.log) as file:
                file.seek(0, os.SEEK_END)
                size = file.tell()
                file.seek(max(0, size - LOG_END))
                raw = file.read(LOG_END)
        except OptionError:
            return []
        text = raw.decode("utf-8", errors="replace")
        ends = [line.rpartition("\r")[2] for line in text.split("\n")]  # a progress bar's last state only
        ends = ends[1:] if size > LOG_END else ends
        return [_SECRET.sub("hf_…", line) for line in ends if line.strip()][-lines:]

    def size(self) -> int:
        """Bytes on disk."""
        total = 0
        for path in self.folder.rglob("*"):
            with suppress(OSError):
                if path.is_file() and not path.is_symlink():
                    total += path.stat().st_size
        return total


def write_json(path: Path, value: dict[str, Any], durable: bool = True) -> None:
    body = json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    with writing_run(path):
        replace_file(path, body, durable)


@contextmanager
def writing_run(where: Path) -> Iterator[None]:
    """Around writing to a run's folder: a full or forbidden disk becomes one clear line."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno not in FULL:
            raise RunError(
                f"{where} cannot be written ({error.strerror}). Set HEADVIZ_HOME to a folder of yours."
            ) from error
        if disk_error(error, where) is not None:
            raise DiskFull(f"The disk of {where} is full. Free some space, then resume the run.") from error
        raise
