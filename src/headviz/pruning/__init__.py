"""Pruning runs: a plan, an explicit state, one step at a time.

``job`` has the pieces of a run, which ``run_plan`` does in this process; ``algorithms`` has the algorithms,
``reconstruction`` repairs the kept weights. What is named here loads no torch.
"""

from .algorithms import ALGORITHMS, REPAIRS, Algorithm
from .options import FinetuneOptions
from .plan import PruningPlan
from .state import Choice, Point, State, StepRecord

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
]
