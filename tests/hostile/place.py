"""A folder of its own for hostile cases: a tiny model and data, special files, and proof that nothing was touched."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import stat
from pathlib import Path

from support.tiny import tiny_folder

ROWS = ["a dog sleeps,yes", "no man eats,no", "the red cat runs,yes", "two birds,no"] * 4


class Place:
    """What the cases work with. ``untouched`` tells whether everything is as it was made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model = tiny_folder(folder / "model", layers=2, heads=2, hidden=8, labels=("no", "yes"))
        self.data = folder / "data"
        self.data.mkdir()
        for split in ("train", "dev"):
            (self.data / f"{split}.csv").write_text("text,label\n" + "\n".join(ROWS) + "\n")
        self.out = folder / "out"
        self.out.mkdir()
        self.special = self._special(folder / "special")
        self.before = self.state()

    def _special(self, place: Path) -> list[str]:
        """Files that nothing may replace. The device is a node of this folder, never one of the machine's."""
        place.mkdir()
        os.mkfifo(place / "fifo")
        (place / "file").write_text("somebody's own")
        (place / "full").mkdir()
        (place / "full" / "file").write_text("somebody's own")
        (place / "nowhere").symlink_to(place / "nothing")
        (place / "loop").symlink_to(place / "loop")
        (place / "link to fifo").symlink_to(place / "fifo")
        at = os.getcwd()
        os.chdir(place)  # a socket's path may have 108 bytes only
        try:
            with socket.socket(socket.AF_UNIX) as made:
                made.bind("socket")
        finally:
            os.chdir(at)
        with contextlib.suppress(PermissionError):  # only root can make a device
            os.mknod(place / "device", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        return [str(p) for p in sorted(place.iterdir())] + [str(place / "file" / "below"), str(place / "no" / "such")]

    def state(self) -> dict[str, tuple[int, int, str]]:
        """Kind, inode and content of everything but what the cases write."""
        result = {}
        for path in sorted(self.folder.rglob("*")):
            if path.is_relative_to(self.out):
                continue
            about = path.lstat()
            content = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(about.st_mode) else ""
            result[str(path)] = (about.st_mode, about.st_ino, content)
        return result

    def untouched(self) -> list[str]:
        """What has changed, appeared or gone."""
        now = self.state()
        return sorted(p for p in {*now, *self.before} if now.get(p) != self.before.get(p))

    def half_written(self) -> list[str]:
        """Outputs that look whole and are not, and what was left behind under a temporary name."""
        import numpy as np

        wrong = []
        for path in sorted(self.out.rglob("*")):
            if path.name.startswith("."):
                wrong.append(str(path))
            elif path.suffix == ".npz":
                with contextlib.closing(np.load(path, allow_pickle=False)) as result:
                    if set(result.files) < {"attention", "attribution"}:
                        wrong.append(str(path))
            elif path.is_dir() and any(path.iterdir()) and not {p.name for p in path.iterdir()} & KNOWN:
                wrong.append(str(path))
        return wrong


KNOWN = {"config.json", "distillation.json"}
