"""What an experiment has measured so far: one JSON file, written after each part; no part is measured twice."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import headviz
from headviz.results import plain
from headviz.storage.writing import replace_file

FOLDER = Path(__file__).resolve().parent / "results"


@dataclass
class Record:
    """Parts by name. ``about`` says of what weights and data they are; a file of others is refused."""

    path: Path
    parts: dict[str, Any]

    @classmethod
    def open(cls, path: Path, about: Mapping[str, Any]) -> Record:
        known = read(path)
        about = plain(about)
        if known and known["about"] != about:
            raise SystemExit(f"{path} is of other weights or data. Remove it to begin anew.")
        made_by = {
            "headviz": headviz.__version__,
            "torch": torch.__version__,
            "machine": platform.machine(),
            "threads": torch.get_num_threads(),
        }
        return cls(path, known or {"about": about, "made_by": made_by})

    def part(self, name: str, compute: Callable[[], Any]) -> Any:
        """A part, computed once; its processor seconds are added up by what its name begins with."""
        if name not in self.parts:
            began = time.process_time()
            result = plain(compute())
            spent, kind = time.process_time() - began, name.split()[0]
            seconds = self.parts.setdefault("processor_seconds", {})
            seconds[kind] = round(seconds.get(kind, 0.0) + spent, 2)
            self.parts[name] = result
            replace_file(self.path, json.dumps(self.parts, indent=1, allow_nan=False) + "\n")
            print(f"{self.path.stem}: {name}, {spent:.1f} s", flush=True)
        return self.parts[name]


def read(path: Path) -> dict[str, Any]:
    """The parts of a file; nothing where there is none."""
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return result
