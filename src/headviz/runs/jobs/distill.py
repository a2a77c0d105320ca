"""A distillation in the background: first the teacher, then one piece for every student's training."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...distillation.plan import TEACHER, DistillationPlan
from ...distillation.run_state import State, absorb, begin, checked, outcome, ready, save
from ...engine.job import Job, Tools

if TYPE_CHECKING:
    from ...distillation.context import Context


def make(spec: Mapping[str, Any]) -> DistillationJob:
    return DistillationJob(DistillationPlan.from_dict(spec))


@dataclass(frozen=True)
class DistillationJob(Job):
    """One piece per training, after the teacher's."""

    plan: DistillationPlan

    def begin(self) -> State:
        return begin(self.plan)

    def ready(self, state: State) -> list[str]:
        return ready(self.plan, state)

    def needs(self, state: State, piece: str) -> list[str]:
        """The iterates, where a student's prior is computed from them."""
        from ...distillation.methods import METHODS

        if piece == TEACHER or self.plan.trainings is not None:
            return []
        return ["iterates"] if METHODS[self.plan.piece(piece)[0]].needs_posterior else []

    def work(self, piece: str, parcel: bytes, tools: Tools) -> bytes:
        from ...distillation.driver import perform

        tools.progress("loading", 0, 0)
        context = _context(json.dumps(self.plan.to_dict(), sort_keys=True), tools.folder)
        return json.dumps(perform(context, piece, tools.progress, tools.cancel), allow_nan=False).encode()

    def absorb(self, state: State, piece: str, result: bytes) -> State:
        return absorb(state, piece, json.loads(result))

    def steps(self, state: State) -> dict[int, dict[str, Any]]:
        """Step 0 is the teacher; student i of the plan's trainings is step i + 1.

        Sparsity means here the share of the teacher's weights that the student lacks.
        """
        teacher = state["teacher"]
        if teacher is None:
            return {}
        whole = teacher["parameters"]
        found = {0: {**_step(teacher, "teacher", whole), "reference": True}}
        for i, piece in enumerate(self.plan.pieces):
            if piece in state["students"]:
                found[i + 1] = _step(state["students"][piece], piece, whole)
        return found

    def expected(self, state: State) -> int:
        return 1 + len(self.plan.pieces)

    def pack(self, state: State) -> bytes:
        return json.dumps(state, allow_nan=False).encode()

    def unpack(self, raw: bytes) -> State:
        return checked(self.plan, json.loads(raw))

    def finish(self, state: State, folder: Path) -> dict[str, Any]:
        from ...distillation.driver import tidy

        tidy(folder)
        save(state, folder)
        found = outcome(self.plan, state)
        return {"models": [s["model"] for s in state["students"].values()], **found}


@lru_cache(maxsize=2)
def _context(plan: str, folder: Path) -> Context:
    """Models and data, loaded once per process."""
    from ...distillation.context import open_context

    return open_context(DistillationPlan.from_dict(json.loads(plan)), folder)


def _step(result: dict[str, Any], name: str, whole: int) -> dict[str, Any]:
    step = {
        "name": name,
        "sparsity": 1 - result["parameters"] / whole,
        "mask": None,
        "metrics": result["metrics"],
        "seconds": result.get("seconds", 0.0),
        "parameters": result["parameters"],
    }
    return step | {key: result[key] for key in ("init", "seed", "curve", "constant") if key in result}
