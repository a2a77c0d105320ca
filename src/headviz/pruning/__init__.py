"""Pruning runs: a plan, an explicit state, one step at a time.

``state`` describes how to drive a run; ``algorithms`` has the algorithms, ``repair`` the ways to repair the kept
weights. Torch is loaded only when something runs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .algorithms import ALGORITHMS, Algorithm
from .options import FinetuneOptions
from .plan import PruningPlan
from .repair.kinds import REPAIRS
from .state import Choice, Done, Point, State, StepRecord, Work

_LAZY = {
    "Context": "context",
    "open_context": "context",
    "absorb": "driver",
    "advance": "driver",
    "is_done": "driver",
    "perform": "driver",
    "ready": "driver",
    "run_plan": "driver",
    "start": "driver",
    "fine_tune": "finetune.training",
}

__all__ = [
    "ALGORITHMS",
    "REPAIRS",
    "Algorithm",
    "Choice",
    "Done",
    "FinetuneOptions",
    "Point",
    "PruningPlan",
    "State",
    "StepRecord",
    "Work",
    *_LAZY,
]

if TYPE_CHECKING:
    from .context import Context as Context
    from .context import open_context as open_context
    from .driver import absorb as absorb
    from .driver import advance as advance
    from .driver import is_done as is_done
    from .driver import perform as perform
    from .driver import ready as ready
    from .driver import run_plan as run_plan
    from .driver import start as start
    from .finetune.training import fine_tune as fine_tune


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'headviz.pruning' has no attribute '{name}'")
    return getattr(import_module(f".{_LAZY[name]}", __name__), name)
