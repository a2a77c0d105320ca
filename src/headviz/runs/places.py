"""Places that a run names: written down from the root on, because a worker may start in another folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import is_one_of
from ..models.named import NAMED
from ..storage.paths import outside_path


def absolute(given: Mapping[str, Any]) -> dict[str, Any]:
    """The model, base, data and trainings that lie on this machine. A shipped name stays one, as loading has it."""
    out: dict[str, Any] = {}
    for name in ("model", "base", "data"):
        value = given.get(name)
        if value is not None and (name == "data" or not is_one_of(value, NAMED)):
            out |= _here(name, value, folder=name != "data")
    trainings = given.get("trainings")
    if isinstance(trainings, list | tuple):
        out["trainings"] = [_here("training", one, folder=True).get("training", one) for one in trainings]
    return out


def _here(name: str, value: Any, folder: bool) -> dict[str, str]:
    path = outside_path(value, name)
    return {name: str(path.absolute())} if (path.is_dir() if folder else path.exists()) else {}
