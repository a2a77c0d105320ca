"""The grades of head scores on the demo as they were recorded, with the command, date and version."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..demo import DATA
from ..results import Result
from ..storage.exchange import restored
from .grades import Grades

FILE = "grades.json"


@dataclass(frozen=True)
class Recorded(Result):
    """Grades that were measured once, and how."""

    grades: Grades
    date: str
    version: str
    command: str

    @property
    def about(self) -> str:
        return f"Recorded on {self.date} with headviz {self.version}: {self.command}"


@cache
def recorded() -> Recorded | None:
    """The board of the demo; None where the package came without it."""
    path = DATA / FILE
    return read(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None


def read(given: dict[str, Any]) -> Recorded:
    """What ``Recorded.to_dict`` wrote. Older records have no curves."""
    found: Recorded = restored(Recorded, given, (0, 0))
    return found
