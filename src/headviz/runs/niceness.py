"""How far runs give way to other programs, in the system's own number: 0 not at all, 19 to everything."""

from __future__ import annotations

import os
from contextlib import suppress

from ..errors import RunError
from ..storage.strict_disk import private_folder
from ..storage.writing import disk_errors, replace_file
from .files import runs_home

NICENESS = 10  # the dashboard stays responsive while a run computes
VARIABLE = "HEADVIZ_NICENESS"  # stands above what was chosen
FILE = "niceness"  # in the folder of the runs


def niceness() -> int:
    """``$HEADVIZ_NICENESS``, else what was chosen, else 10."""
    with suppress(OSError, ValueError):
        chosen = os.environ.get(VARIABLE) or (runs_home() / FILE).read_text(encoding="utf-8")
        return min(19, max(-20, int(chosen)))
    return NICENESS


def choose(wanted: int) -> None:
    """How far runs that start from now on give way."""
    if not 0 <= wanted <= 19:
        raise RunError(f"A run's niceness is 0 to 19, not {wanted}.")
    folder = runs_home()
    with disk_errors(folder):
        private_folder(folder)
        replace_file(folder / FILE, f"{wanted}\n")
