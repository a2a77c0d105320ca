"""``headviz distill``: take a part out of a model and train students in its place, from several starts."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...commands.common import column, progress_bar, table_text, warn
from ...commands.number_types import between, positive_int, rate, share, whole
from ...errors import OptionError
from ...storage.paths import outside_path
from .curves import students_table
from .job import distil
from .options import IterateOptions, PosteriorOptions, TrainingOptions
from .plan import DistillationPlan
from .removal import Removal

if TYPE_CHECKING:
    from .plan import DistillationPlan

TRAINING = (
    "steps batch learning_rate every warmup schedule weight_decay temperature teacher_share kl_weight anneal forcing"
)
POSTERIOR = "covariance rank shrinkage scale"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, metavar="M", help="the teacher: 'demo', a hub id, or a folder")
    parser.add_argument("--revision", metavar="R", help="branch, tag or commit of a hub model")
    parser.add_argument("--job", metavar="J", help="what it answers with, where neither its folder nor the file tells")
    parser.add_argument("--device", default="auto", metavar="D", help="auto (default), cpu, cuda, mps")
    parser.add_argument("--task", required=True, metavar="T", help="demo, mnli, mrpc, …, demo-translation, or custom")
    parser.add_argument("--data", metavar="DIR", help="folder with local files instead of the hub's")
    parser.add_argument("--limit", type=positive_int, metavar="N", help="dev examples to measure on (all)")
    parser.add_argument("--train-limit", type=positive_int, metavar="N", help="training examples (all)")
    parser.add_argument("--text-columns", type=column, metavar="A[,B]", help="text columns of your own file")
    parser.add_argument("--label-column", type=column, metavar="Y", help="label column of your own file")
    parser.add_argument("--label-order", metavar="A,B,…", help="the task's classes in the order of the model's outputs")
    parser.add_argument(
        "--remove",
        required=True,
        action="append",
        metavar="PART",
        help="heads:3.5,7.0 or layers:4 or ffn:2 (of a translator heads:cross.1.5, layers:decoder.2), or attention for "
        "a recurrent translator; give it several times, or join parts by +. heads-v, heads-qkv, heads-all, "
        "attention-keys, attention:2 and attention:4 remove the same by zeros in other weights",
    )
    parser.add_argument(
        "--init",
        default="copy",
        metavar="A[,B]",
        help="random, copy (default), conditional, variational; also kd and kd-copy, which learn the teacher's logits",
    )
    parser.add_argument(
        "--beams", type=whole(1, 64), metavar="N", help="translation: measure by a search with N beams (1)"
    )
    parser.add_argument("--seeds", default="0", metavar="0,1,2", help="one training for each (0)")
    parser.add_argument("--out", required=True, metavar="DIR", help="a new folder, or one to go on in")
    _training(parser.add_argument_group("training of the students"))
    _posterior(parser.add_argument_group("the teacher's posterior, for conditional and variational"))


def _training(group: Any) -> None:
    group.add_argument(
        "--steps",
        type=whole(1, 10**7),
        metavar="N",
        help="updates (the teacher's own; 300 if its folder does not tell)",
    )
    group.add_argument("--batch", type=positive_int, metavar="B", help="examples per update (32)")
    group.add_argument("--learning-rate", type=rate, metavar="R", help="AdamW's peak rate (3e-4)")
    group.add_argument("--every", type=positive_int, metavar="N", help="updates between points of the curve (50)")
    group.add_argument("--warmup", type=share, metavar="W", help="share of the updates with a rising rate (0.05)")
    group.add_argument("--schedule", metavar="NAME", help="linear (default) or constant")
    group.add_argument("--weight-decay", type=between(0, 10), metavar="D", help="0")
    group.add_argument(
        "--temperature", type=between(0.001, 1000), metavar="T", help="of the teacher's logits, for kd (2)"
    )
    group.add_argument("--teacher-share", type=share, metavar="S", help="of the loss, for kd (0.5)")
    group.add_argument("--kl-weight", type=between(0, 1e6), metavar="W", help="of the divergence, for variational (1)")
    group.add_argument(
        "--forcing", type=share, metavar="S", help="recurrent: share of target words from the reference (1)"
    )
    group.add_argument("--anneal", type=share, metavar="S", help="share of the updates over which it rises (0)")


def _posterior(group: Any) -> None:
    group.add_argument("--covariance", metavar="C", help="low-rank (default: low rank plus diagonal) or diagonal")
    group.add_argument("--rank", type=positive_int, metavar="R", help="at most one less than there are iterates (all)")
    group.add_argument("--shrinkage", type=share, metavar="S", help="share of the diagonal (what the iterates support)")
    group.add_argument("--scale", type=between(1e-9, 1e6), metavar="S", help="multiplies the covariance (1)")
    group.add_argument("--iterates", type=whole(2, 1000), metavar="K", help="how many to collect (10)")
    group.add_argument("--gap", type=positive_int, metavar="N", help="updates between two of them (10)")
    group.add_argument("--iterate-rate", type=rate, metavar="R", help="constant rate while collecting (1e-4)")
    group.add_argument("--trainings", metavar="DIR,DIR,…", help="other trainings of the teacher, instead of iterates")


def read_plan(args: argparse.Namespace) -> DistillationPlan:
    """The plan; an option that is not given keeps its default."""
    from .pieces import teacher_updates

    given = {k: v for k, v in vars(args).items() if v is not None}
    collecting = {"iterates": "count", "gap": "gap", "iterate_rate": "learning_rate"}
    plan = DistillationPlan(
        model=args.model,
        task=args.task,
        remove=Removal.parse(args.remove).text,
        inits=tuple(p.strip() for p in args.init.split(",") if p.strip()),
        seeds=_seeds(args.seeds),
        training=TrainingOptions(**{k: given[k] for k in TRAINING.split() if k in given}),
        posterior=PosteriorOptions(**{k: given[k] for k in POSTERIOR.split() if k in given}),
        iterates=IterateOptions(**{name: given[k] for k, name in collecting.items() if k in given}),
        trainings=_list(args.trainings),
        revision=args.revision,
        job=args.job,
        device=args.device,
        data=args.data,
        text_columns=_list(args.text_columns),
        label_column=args.label_column,
        label_order=_list(args.label_order),
        train_limit=args.train_limit,
        dev_limit=args.limit,
        beams=given.get("beams", 1),
    )
    # asked last: a slip in another option is told before a model is downloaded
    if args.steps is not None or not (own := teacher_updates(args.model, args.revision)):
        return plan
    every = given.get("every", max(50, own // 6))
    return replace(plan, training=replace(plan.training, steps=own, every=every))


def _list(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(p.strip() for p in text.split(",") if p.strip())


def _seeds(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(p) for p in text.split(",") if p.strip())
    except ValueError:
        raise OptionError(f"'{text}' is not a list of seeds. Write whole numbers, such as 0,1,2.") from None


def run(args: argparse.Namespace) -> dict[str, Any]:
    plan, out = read_plan(args), outside_path(args.out, "--out")
    with progress_bar("Distilling") as bar:
        now = ""

        def tell(phase: str, done: int, total: int) -> None:
            nonlocal now
            if phase != now:
                now = phase
                bar(0, total)
            bar(done, total)

        result = distil(plan, out, tell)
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
