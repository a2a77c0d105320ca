"""Where runs are carried besides processes of this machine. The entries come through the plugins' door."""

from __future__ import annotations

from collections.abc import Mapping

from .. import plugins
from ..errors import RunError
from ..plugins import Executor
from .record import CARRIED, LOCAL

EXECUTORS: Mapping[str, Executor] = plugins.Entries("executors", ())


def executor_named(name: str) -> Executor:
    if name not in EXECUTORS:
        raise RunError(plugins.unknown("executor", name, (LOCAL, *EXECUTORS)))
    return EXECUTORS[name]


def check(name: str) -> None:
    """Refuse an executor that is unknown or cannot be used now."""
    if name not in (LOCAL, CARRIED):
        plugins.function(executor_named(name).check)()
