"""What a distillation has found so far, and its outcome. All JSON; nothing here loads torch.

    state = begin(plan)
    while ready(plan, state):
        piece = ready(plan, state)[0]
        state = absorb(state, piece, perform(context, plan, state, piece))     # driver.perform

Ready pieces do not depend on each other, and the order in which they are absorbed does not matter.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import RunError
from ..storage.writing import replace_file
from .curves import Point, band, merged
from .methods import METHODS
from .plan import TEACHER, DistillationPlan

FORMAT = 1
FILE = "distillation.json"

State = dict[str, Any]  # {format, plan, plan_digest, teacher: {…} | None, students: {piece: {…}}}


def begin(plan: DistillationPlan) -> State:
    return {"format": FORMAT, "plan": plan.to_dict(), "plan_digest": plan.digest, "teacher": None, "students": {}}


def ready(plan: DistillationPlan, state: State) -> list[str]:
    """The pieces that can be done now: the teacher first, then every student that is not trained yet."""
    if state["teacher"] is None:
        return [TEACHER]
    return [piece for piece in plan.pieces if piece not in state["students"]]


def absorb(state: State, piece: str, result: dict[str, Any]) -> State:
    """The state with one piece's result in it."""
    if piece == TEACHER:
        return {**state, "teacher": result}
    return {**state, "students": dict(sorted({**state["students"], piece: result}.items()))}


def checked(plan: DistillationPlan, state: Any) -> State:
    """The state that was read back; a ``RunError`` if it has another format or belongs to another plan."""
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise RunError(
            "The state of this distillation cannot be read by this version of headviz. Start a new one.",
            code="other-version",
            resumable=False,
        )
    if state["plan_digest"] != plan.digest:
        changed = [k for k, v in plan.to_dict().items() if state["plan"].get(k) != v]
        raise RunError(
            f"This folder holds another distillation (different {', '.join(changed)}). "
            "Remove the folder, or choose another one.",
            code="other-plan",
            resumable=False,
        )
    return state


def save(state: State, folder: Path) -> None:
    """Write the state; a crash leaves the old file or the new one."""
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / FILE, json.dumps(state, indent=1, allow_nan=False), durable=True)


def load(plan: DistillationPlan, folder: Path) -> State | None:
    """The state in a folder; None where there is none."""
    path = folder / FILE
    if not path.exists():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"'{path}' cannot be read: {error}. Remove the folder and start again.") from error
    return checked(plan, found)


def outcome(plan: DistillationPlan, state: State) -> dict[str, Any]:
    """The result as JSON: the teacher, and for every initialisation its curve over seeds, final metrics and time.

    The fields of the first initialisation (``init``, ``curve``, ``metrics``, …) also stand at the top.
    """
    teacher = state["teacher"]
    students = [s for init in plan.inits if (s := _student(plan, state, init)) is not None]
    first = students[0] if students else {"init": plan.inits[0], "curve": [], "metrics": {}, "parameters": None}
    return {
        **first,
        "model": plan.model,
        "task": plan.task,
        "remove": plan.remove,
        "seeds": list(plan.seeds),
        "teacher": teacher,
        "students": students,
        "notes": [] if teacher is None else list(teacher["notes"]),
    }


def _student(plan: DistillationPlan, state: State, init: str) -> dict[str, Any] | None:
    pieces = [f"{init}-s{seed}" for seed in plan.seeds]
    there = [state["students"][p] for p in pieces if p in state["students"]]
    if not there:
        return None
    curves = [[Point.from_dict(p) for p in s["curve"]] for s in there]
    names = list(curves[0][-1].metrics)
    final = {name: band([c[-1].metrics[name] for c in curves]) for name in names}
    return {
        "init": init,
        "title": METHODS[init].title,
        "curve": merged(curves),
        "metrics": {name: b.mean for name, b in final.items()},
        "interval_low": {name: b.low for name, b in final.items()},
        "interval_high": {name: b.high for name, b in final.items()},
        "parameters": there[0]["parameters"],
        "seconds": band([s["seconds"] for s in there]).mean,
        "runs": [{"seed": s["seed"], "metrics": s["metrics"], "curve": s["curve"], "model": s["model"]} for s in there],
    }
