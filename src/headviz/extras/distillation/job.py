"""A distillation as a job of the engine, ``headviz.distil`` and ``headviz distill``.

First comes the teacher, then one piece for every student's training. The state and the outcome are JSON; nothing here
loads torch outside the pieces.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...commands.common import table_text, warn
from ...engine import Checkpoints, Execution, Job, Tools, Workplace, restored, run_here
from ...errors import RunError, require_kind
from ...options import add_flags, declared, from_flags
from ...progress import Cancel, PhaseProgress, long_work, phase_bar
from ...storage.paths import outside_path
from ...storage.writing import DiskError, disk_errors
from .curves import Point, band, merged, students_table
from .plan import (
    ITERATES,
    METHODS,
    STUDENTS,
    TEACHER,
    WORK,
    DistillationPlan,
    IterateOptions,
    PosteriorOptions,
    TrainingOptions,
)
from .removal import Removal

if TYPE_CHECKING:
    from .pieces import Context


FORMAT = 1

State = dict[str, Any]  # {format, plan, plan_digest, teacher: {…} | None, students: {piece: {…}}}


def make(spec: Mapping[str, Any]) -> DistillationJob:
    return DistillationJob(DistillationPlan.from_dict(spec))


@dataclass(frozen=True, eq=False)
class DistillationJob(Job):
    """One piece per training, after the teacher's. All share a ``Context``."""

    plan: DistillationPlan

    def begin(self) -> State:
        plan = self.plan
        return {"format": FORMAT, "plan": plan.to_dict(), "plan_digest": plan.digest, "teacher": None, "students": {}}

    def ready(self, state: State) -> list[str]:
        if state["teacher"] is None:
            return [TEACHER]
        return [piece for piece in self.plan.pieces if piece not in state["students"]]

    def parcel(self, state: State, piece: str) -> bytes:
        """What the teacher's piece found that the students must keep to."""
        return b"" if piece == TEACHER else json.dumps(state["teacher"]).encode()

    def needs(self, state: State, piece: str) -> list[str]:
        """The iterates, where a student's prior is computed from them."""
        if piece == TEACHER or self.plan.trainings is not None:
            return []
        return [ITERATES] if METHODS[self.plan.piece(piece)[0]].needs_posterior else []

    def load(self, folder: Path) -> Context:
        from .pieces import open_context

        return open_context(self.plan, folder)

    def sources(self, state: State) -> dict[str, str]:
        teacher = state["teacher"]
        return {} if teacher is None else {"model": teacher["digest"], "data": teacher["data"]}

    def digest(self, loaded: Context, name: str) -> str:
        return loaded.problem.digest if name == "data" else str(loaded.teacher.digest)

    def work(self, piece: str, parcel: bytes, tools: Tools) -> bytes:
        """Its result as JSON. Models and iterates go to the folder of the tools."""
        from .pieces import student, teacher

        if piece not in (TEACHER, *self.plan.pieces):
            raise RunError(f"This distillation has no piece '{piece}'.")
        if piece == TEACHER:
            return json.dumps(teacher(tools.loaded, tools), allow_nan=False).encode()
        shrinkage = (json.loads(parcel)["prior"] or {}).get("shrinkage")
        return json.dumps(student(tools.loaded, piece, shrinkage, tools), allow_nan=False).encode()

    def absorb(self, state: State, piece: str, result: bytes) -> State:
        record = json.loads(result)
        if piece == TEACHER:
            return {**state, "teacher": record}
        return {**state, "students": dict(sorted({**state["students"], piece: record}.items()))}

    def steps(self, state: State) -> dict[int, dict[str, Any]]:
        """Step 0 is the teacher; student i of the plan's trainings is step i + 1.

        Sparsity means here the share of the teacher's weights that the student lacks.
        """
        teacher = state["teacher"]
        if teacher is None:
            return {}
        total = teacher["parameters"]
        steps = {0: {**_step(teacher, "teacher", total), "reference": True}}
        for i, piece in enumerate(self.plan.pieces):
            if piece in state["students"]:
                steps[i + 1] = _step(state["students"][piece], piece, total)
        return steps

    def expected(self, state: State) -> int:
        return 1 + len(self.plan.pieces)

    def pack(self, state: State) -> bytes:
        return json.dumps(state, indent=1, allow_nan=False).encode()

    def unpack(self, raw: bytes) -> State:
        """The state that was read back; a ``RunError`` if it has another format or belongs to another plan."""
        state, plan = json.loads(raw), self.plan
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

    def finish(self, state: State, folder: Path) -> dict[str, Any]:
        tidy(folder)
        return {"models": [s["model"] for s in state["students"].values()], **outcome(self.plan, state)}

    def kept_in(self, folder: Path) -> Checkpoints:
        return Checkpoints(folder, "distillation", ".json", digits=0, keep=1, sealed=False)


def _step(result: dict[str, Any], name: str, total: int) -> dict[str, Any]:
    step = {
        "name": name,
        "sparsity": 1 - result["parameters"] / total,
        "mask": None,
        "metrics": result["metrics"],
        "seconds": result.get("seconds", 0.0),
        "parameters": result["parameters"],
    }
    return step | {key: result[key] for key in ("init", "seed", "curve", "constant") if key in result}


# in this process ------------------------------------------------------------------------------------


def distil(
    plan: DistillationPlan,
    folder: str | Path,
    progress: PhaseProgress | None = None,
    cancel: Cancel | None = None,
    before: Callable[[Context], None] | None = None,
) -> dict[str, Any]:
    """Carry out a plan in this process, or continue it; the result is its outcome as JSON.

    The state is written after every piece. Nothing is written before plan, model and data have been checked.
    At the end the folder itself holds the model of the first initialisation and seed; the others lie below it.
    ``before`` gets what is loaded before the first piece.

    >>> import headviz, tempfile
    >>> few = {"train_limit": 16, "dev_limit": 16, "training": {"steps": 1, "every": 1}}
    >>> plan = headviz.DistillationPlan("demo", "demo", "layers:3,4", inits=("copy",), **few)
    >>> outcome = headviz.distil(plan, tempfile.mkdtemp() + "/student")
    >>> outcome["remove"], len(outcome["students"])
    ('layers:3,4', 1)
    """
    require_kind(plan, DistillationPlan, "plan = headviz.DistillationPlan(model, task, remove)")
    place = outside_path(folder, "--out")
    job = DistillationJob(plan)
    checkpoints = job.kept_in(place)
    new = not checkpoints.files()
    if new and place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise RunError(f"'{place}' exists and is not an empty folder. Choose another name or remove it first.")
    execution, workplace = Execution(job, checkpoints, restored(job, checkpoints)[0]), Workplace(job, place)
    if execution.ready():
        loaded = workplace.loaded()
        if before is not None:
            before(loaded)
        try:
            with disk_errors(place):
                execution.keep(execution.state)  # from here on the folder is this distillation's
                for _ in run_here(execution, workplace, progress, cancel):
                    pass
        except DiskError as error:
            if new and not execution.state["students"]:
                shutil.rmtree(place, ignore_errors=True)  # it holds no student to go on from
                raise error.reworded(f"{error} Nothing was kept.") from error
            raise error.reworded(f"{error} What is finished stays: the same command goes on from there.") from error
    tidy(place)
    _move_to_top(execution, plan.pieces[0], place)
    return outcome(plan, execution.state)


def _move_to_top(execution: Execution, piece: str, place: Path) -> None:
    """Move the first student's model to the top, so that the folder itself can be loaded."""
    students = execution.state["students"]
    if students[piece]["model"] == ".":
        return
    folder = place / STUDENTS / piece
    if folder.exists():  # else the model was moved before, and only the state was not saved
        for path in sorted(folder.iterdir()):
            path.replace(place / path.name)
        folder.rmdir()
        if not any(folder.parent.iterdir()):
            folder.parent.rmdir()
    students = {**students, piece: {**students[piece], "model": "."}}
    execution.keep({**execution.state, "students": students})


def tidy(folder: Path) -> None:
    """Delete what only an unfinished distillation needs: checkpoints and iterates."""
    for name in (WORK, ITERATES):
        shutil.rmtree(folder / name, ignore_errors=True)


# the result --------------------------------------------------------------------------------------


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
    trained = [state["students"][p] for p in pieces if p in state["students"]]
    if not trained:
        return None
    curve = merged([[Point(**p) for p in s["curve"]] for s in trained])
    final = curve[-1]
    return {
        "init": init,
        "title": METHODS[init].title,
        "curve": curve,
        "metrics": final["metrics"],
        "interval_low": final["interval_low"],
        "interval_high": final["interval_high"],
        "parameters": trained[0]["parameters"],
        "seconds": band([s["seconds"] for s in trained]).mean,
        "runs": [{key: s[key] for key in ("seed", "metrics", "curve", "model")} for s in trained],
    }


FEWER = "Fewer updates of each student or fewer students take less (--steps, --init, --seeds)."
TIMED = 50  # updates of all students; longer work is timed by some updates before it starts
SEVERAL = ("remove", "inits")  # the command's own: one is given several times, the other has another default


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options = declared(DistillationPlan)
    for name, option in options.items():
        if option.flag != "" and name not in SEVERAL:
            option.add_to(parser, required=name in ("model", "task"))
    remove = options["remove"]
    parser.add_argument(
        "--remove", required=True, action="append", metavar=remove.metavar, help=f"{remove.help}; repeatable"
    )
    options["inits"].add_to(parser, ("copy",))
    parser.add_argument("--out", required=True, metavar="DIR", help="a new folder, or one to go on in")
    add_flags(parser.add_argument_group("training of the students"), TrainingOptions)
    group = parser.add_argument_group("the teacher's posterior, for conditional and variational")
    for kind in (PosteriorOptions, IterateOptions):
        add_flags(group, kind)


def read_plan(args: argparse.Namespace) -> DistillationPlan:
    """The plan; an option that is not given keeps its default."""
    groups = {"training": TrainingOptions, "posterior": PosteriorOptions, "iterates": IterateOptions}
    flags = from_flags(args, DistillationPlan, without=("remove",))
    flags["remove"] = Removal.parse(args.remove).text
    flags |= {name: options(**from_flags(args, options)) for name, options in groups.items()}
    plan = DistillationPlan.from_options(flags)
    plan.require_there()
    from .pieces import teacher_updates

    # asked last: a mistake in another option is reported before a model is downloaded
    if args.steps is not None or not (updates := teacher_updates(args.model, args.revision)):
        return plan
    every = max(50, updates // 6) if args.every is None else args.every
    return replace(plan, training=replace(plan.training, steps=updates, every=every))


def run(args: argparse.Namespace) -> dict[str, Any]:
    plan, out = read_plan(args), outside_path(args.out, "--out")
    phases = [f"training {piece}" for piece in plan.pieces]
    warn(f"{len(phases)} student{'s' if len(phases) > 1 else ''} of {plan.training.steps:,} updates each")
    timed = plan.training.steps * len(phases) > TIMED

    def tell_time(context: Context) -> None:
        if timed and (line := long_work("training", len(phases) * context.seconds(), FEWER)):
            warn(line)

    with phase_bar(FEWER, quiet="training" if timed else "") as bar:

        def tell(phase: str, done: int, total: int) -> None:
            if phase in phases:  # one bar for all students
                phase, done, total = "training", phases.index(phase) * total + done, len(phases) * total
            bar(phase, done, total)

        result = distil(plan, out, tell, before=tell_time)
    for note in result["notes"]:
        warn(note)
    return {**result, "out": str(out)}


def show(result: dict[str, Any]) -> str:
    teacher = result["teacher"]
    parts = teacher["partition"]
    gap = parts["difference"]
    exact = "exactly" if parts["exact"] else "not exactly"
    if not parts["exact"] and gap["changed"] is not None:
        exact += f": {gap['changed']:.1%} of its predictions differ"
    return "\n".join(
        [
            f"removed {result['remove']}: {parts['kept']:,} weights kept, {parts['zeroed']:,} zeroed, "
            f"{parts['useless']:,} useless",
            f"the student with copied weights is the teacher with zeros {exact}"
            f" (largest difference of logits {gap['largest']:.2g})",
            "",
            table_text(students_table(result, list(teacher["metrics"]))),
            "",
            f"saved  {result['out']}",
        ]
    )
