"""``headviz stacks``: the published analyses of translation models, stack by stack."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ..errors import ModelError
from .ablate import add_figure, check_figure, save_figure
from .common import (
    add_model,
    add_task,
    add_translation,
    load_data,
    load_model,
    number,
    positive_int,
    progress_bar,
    reading,
    table,
)

if TYPE_CHECKING:
    from ..analyses.stacks import StackReport


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_task(parser)
    add_translation(parser)
    parser.add_argument("--score", default="taylor", metavar="NAME", help="orders the heads (default taylor)")
    parser.add_argument(
        "--samples", type=positive_int, default=500, metavar="N", help="train sentences for scoring (500)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the sample (default 0)")
    parser.add_argument("--step", type=float, default=0.1, metavar="K", help="share per step (default 0.1)")
    parser.add_argument(
        "--select",
        choices=("same", "other"),
        default="other",
        help="choose the heads to keep on the same data, or on other ones (default)",
    )
    add_figure(parser)


def run(args: argparse.Namespace) -> dict[str, Any]:
    check_figure(args)
    report = found(args)
    save_figure(args, report.curves)
    return report.to_dict()


def found(args: argparse.Namespace) -> StackReport:
    """The report that these arguments ask for."""
    from ..analyses.stacks import stack_report
    from ..evaluation.dispatch import evaluator_of
    from ..scores import score_heads
    from ..tasks import sample

    clf = reading(args, load_model(args))
    if len(clf.stacks) == 1:
        raise ModelError(
            f"'{clf.name}' has one stack of heads. Use ablate, analyse all-but-one and analyse curves for it."
        )
    data = load_data(args)
    drawn = sample(load_data(args, "train"), args.samples, seed=args.seed)
    evaluator = evaluator_of(clf, data, beams=args.beams)
    with progress_bar("scoring heads") as progress:
        scores = score_heads(clf, drawn, args.score, progress=progress)
    other = evaluator_of(clf, drawn, beams=args.beams) if args.select == "other" else None
    with progress_bar("stack by stack") as progress:
        return stack_report(evaluator, args.score, scores.values, other, step=args.step, progress=progress)


def show(shown: dict[str, Any]) -> str:
    """The result as text; changes are in points of the metric."""
    about = shown["subject"]
    parts = [
        table(
            [
                ("model", about["model"]),
                ("data", f"{about['task']} {about['split']}, {about['n']:,} sentences"),
                (about["metric"], number(shown["baseline"], 2)),
            ]
        )
    ]
    for part in shown["tables"]:
        heads = len(part["deltas"][0])
        rows = [["layer", *(f"H{h}" for h in range(heads))]]
        for layer, row in enumerate(part["deltas"]):
            marks = part["marked"][layer]
            rows.append([str(layer), *(_change(v, m) for v, m in zip(row, marks, strict=True))])
        parts.append(
            f"{part['stack']}: one head masked (* p < 0.01; {part['significant']} of {part['heads']} heads, "
            f"{part['better_without']} of them better without)\n" + table(rows)
        )
    stacks = [part["stack"] for part in shown["tables"]]
    theirs = shown["published"]["one_head_kept"]
    rows = [["layer", *stacks, *(f"published {s}" for s in stacks)]]
    depth = max([r["layer"] for r in shown["rows"]] + [len(theirs[s]) - 1 for s in stacks]) + 1
    for layer in range(depth):
        own = {r["stack"]: _change(r["delta"], r["marked"]) for r in shown["rows"] if r["layer"] == layer}
        other = [_change(*theirs[s][layer]) if layer < len(theirs[s]) else "" for s in stacks]
        rows.append([str(layer), *(own.get(s, "") for s in stacks), *other])
    parts.append(
        f"One head of a layer kept, chosen on {shown['select']} data (published: WMT, another model)\n"
        + table(rows)
    )
    for curve in shown["curves"]["curves"]:
        rows = [["pruned", about["metric"]]]
        rows += [[f"{100 * p['sparsity']:.0f} %", number(p["value"], 2)] for p in curve["points"]]
        parts.append(f"{curve['name']} heads pruned, lowest {shown['score']} first\n" + table(rows))
    return "\n\n".join(parts)


def _change(value: float | None, marked: bool) -> str:
    return "–" if value is None else f"{value:+.2f}{'*' if marked else ''}"
