"""Pruning runs: a plan, an explicit state, one step at a time.

``job`` has the pieces of a run, which ``run_plan`` does in this process; ``algorithms`` has the algorithms, ``repair``
the ways to repair the kept weights. Torch is loaded only when something runs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .algorithms import ALGORITHMS, REPAIRS, Algorithm
from .options import FinetuneOptions
from .plan import PruningPlan
from .state import Choice, Point, State, StepRecord

_LAZY = {
    "Context": "context",
    "open_context": "context",
    "PruningJob": "job",
    "run_plan": "job",
    "start": "check",
    "fine_tune": "finetuning",
}

__all__ = [
    "ALGORITHMS",
    "REPAIRS",
    "Algorithm",
    "Choice",
    "FinetuneOptions",
    "Point",
    "PruningPlan",
    "State",
    "StepRecord",
    *_LAZY,
]

if TYPE_CHECKING:
    from .check import start as start
    from .context import Context as Context
    from .context import open_context as open_context
    from .finetuning import fine_tune as fine_tune
    from .job import PruningJob as PruningJob
    from .job import run_plan as run_plan


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'headviz.pruning' has no attribute '{name}'")
    return getattr(import_module(f".{_LAZY[name]}", __name__), name)
