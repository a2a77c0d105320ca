"""``headviz distill``: take a part out of a model and train students in its place, from several starts."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...commands.common import table_text, warn
from ...options import add_flags, declared, from_flags
from ...progress import long_work, phase_bar
from ...storage.paths import outside_path
from .curves import students_table
from .job import distil
from .plan import DistillationPlan, IterateOptions, PosteriorOptions, TrainingOptions
from .removal import Removal

if TYPE_CHECKING:
    from .pieces import Context

FEWER = "Fewer updates of each student or fewer students take less (--steps, --init, --seeds)."
TIMED = 50  # updates of all students; longer work is timed by some updates before it starts
SEVERAL = ("remove", "inits")  # the command's own: one is given several times, the other has another default


def add_arguments(parser: argparse.ArgumentParser) -> None:
    for name, one in declared(DistillationPlan).items():
        if one.flag != "" and name not in SEVERAL:
            one.add_to(parser, required=name in ("model", "task"))
    about = declared(DistillationPlan)["remove"]
    parser.add_argument(
        "--remove", required=True, action="append", metavar=about.metavar, help=f"{about.help}; repeatable"
    )
    declared(DistillationPlan)["inits"].add_to(parser, ("copy",))
    parser.add_argument("--out", required=True, metavar="DIR", help="a new folder, or one to go on in")
    add_flags(parser.add_argument_group("training of the students"), TrainingOptions)
    group = parser.add_argument_group("the teacher's posterior, for conditional and variational")
    for options in (PosteriorOptions, IterateOptions):
        add_flags(group, options)


def read_plan(args: argparse.Namespace) -> DistillationPlan:
    """The plan; an option that is not given keeps its default."""
    groups = {"training": TrainingOptions, "posterior": PosteriorOptions, "iterates": IterateOptions}
    flags = from_flags(args, DistillationPlan, without=("remove",))
    flags["remove"] = Removal.parse(args.remove).text
    plan = DistillationPlan.from_options(
        flags | {name: options(**from_flags(args, options)) for name, options in groups.items()}
    )

    plan.require_there()
    from .pieces import teacher_updates

    # asked last: a mistake in another option is reported before a model is downloaded
    if args.steps is not None or not (own := teacher_updates(args.model, args.revision)):
        return plan
    every = max(50, own // 6) if args.every is None else args.every
    return replace(plan, training=replace(plan.training, steps=own, every=every))


def run(args: argparse.Namespace) -> dict[str, Any]:
    plan, out = read_plan(args), outside_path(args.out, "--out")
    each = [f"training {piece}" for piece in plan.pieces]
    warn(f"{len(each)} student{'s' if len(each) > 1 else ''} of {plan.training.steps:,} updates each")
    timed = plan.training.steps * len(each) > TIMED

    def tell_time(context: Context) -> None:
        if timed and (line := long_work("training", len(each) * context.seconds(), FEWER)):
            warn(line)

    with phase_bar(None if timed else FEWER) as bar:

        def tell(phase: str, done: int, total: int) -> None:
            if phase in each:  # one bar for all students
                phase, done, total = "training", each.index(phase) * total + done, len(each) * total
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
