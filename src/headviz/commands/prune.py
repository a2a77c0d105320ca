"""``headviz prune``: really remove heads, or as many heads and neurons as a speed asks for, and save the model."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import headviz

from ..answers.metrics import metric_title
from ..display.sentences import points_changed
from ..errors import MaskError, OptionError
from ..models import LENGTH, NAMED
from ..options import Option, add_options
from ..progress import progress_bar
from ..results import plain
from ..storage.paths import new_folder
from ..tasks import points_in
from . import faster
from .common import (
    add_ablation,
    add_mask,
    add_model,
    check_early,
    fewer_pieces,
    in_their_place,
    load_data,
    load_with_reference,
    pieces_text,
    place_rows,
    read_mask,
    table,
)

if TYPE_CHECKING:
    from ..tasks import Dataset

OPTIONS = (
    Option("out", help="a new folder for the model", metavar="DIR", required=True),
    Option(
        "masked",
        False,
        "keep all shapes and zero the heads' output columns instead: loads in any transformers, no speed gain",
    ),
    Option(
        "length",
        None,
        "tokens to count FLOPs for, or to measure speed at",
        int,
        least=1,
        usual=str(LENGTH),
        metavar="T",
    ),
    Option(
        "vocabulary",
        None,
        "drop the embeddings of pieces that the texts of this file, one a line, never use",
        str,
        metavar="FILE",
    ),
    Option("onnx", False, "write model.onnx too, checked against the model"),
    Option("portable", False, "add modelling code, for transformers without headviz (trust_remote_code)"),
)

NOTHING_NAMED = (
    "Name the heads to remove (--off 3.5,7.0 or --mask HEX), a speed (--faster 2 --task T), or the texts whose "
    "vocabulary is kept (--vocabulary FILE)."
)
WHAT = ("off", "mask", "vocabulary")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_mask(parser)
    add_ablation(parser)
    add_options(parser, OPTIONS)
    faster.add_arguments(parser)
    parser.set_defaults(check=check)


def check(args: argparse.Namespace) -> None:
    """What contradicts itself is refused first, then what is wrong whatever the model is."""
    faster.check(args)
    check_early(args)
    if all(getattr(args, name) is None for name in ("faster", *WHAT)) and args.model in NAMED:
        raise MaskError(NOTHING_NAMED)


def run(args: argparse.Namespace) -> dict[str, Any]:
    if args.portable and args.masked:
        raise OptionError("--masked loads in any transformers as it is. Leave --portable out.")
    if args.onnx:
        if args.masked:
            raise OptionError("--onnx writes the small shapes and --masked keeps the large ones. Give one of the two.")
        from ..models.onnx import export_onnx, require_onnx

        require_onnx()
    out = new_folder(args.out)
    if args.faster is not None:
        return faster.run(args, out)
    data = None if args.task is None or args.masked else load_data(args, "dev")
    whole = load_with_reference(args)
    clf, words = fewer_pieces(args, whole)
    from ..models.feed_forward import uneven
    from ..models.pruning import require_prunable
    from ..models.saving import Measured

    if all(getattr(args, name) is None for name in WHAT) and clf.present.is_full and not uneven(clf.config):
        raise MaskError(NOTHING_NAMED)
    mask, length = read_mask(args, clf), args.length or LENGTH
    before, onnx = whole.cost(length=length), {}
    costs: dict[str, Any] = {}
    if args.masked:
        folder = clf.export_masked(out, mask)
        after, heads = clf.cost(length=length), [clf.num_heads] * clf.num_layers
    else:
        require_prunable(clf)
        smaller = headviz.prune(clf, mask)
        costs = {} if data is None else _costs(args, whole, smaller, data)
        folder = smaller.save(out, args.portable, Measured(**costs, command=getattr(args, "line", "")))
        if args.onnx:
            onnx = {"onnx": str(export_onnx(smaller, folder / "model.onnx"))}
        after, heads = smaller.cost(length=length), smaller.heads_per_layer
    return {
        "out": str(folder),
        **onnx,
        **costs,
        **words,
        "masked": args.masked,
        "mask": mask.hex,
        **in_their_place(clf),
        "heads_per_layer": heads,
        "parameters": {"before": before.parameters, "after": after.parameters},
        "flops": {"before": before.flops, "after": after.flops, "length": length},
    }


def _costs(args: argparse.Namespace, clf: Any, smaller: Any, data: Dataset) -> dict[str, Any]:
    """What the removed heads and pieces change on the dev data, for the card and for the output."""
    with progress_bar("evaluating") as bar:
        before, after = (
            headviz.evaluate(m, data, label_order=args.label_order, precision="float32", progress=bar)
            for m in (clf, smaller)
        )
    metrics = {name: value for name, value in after.metrics.items() if value == value}
    change = None
    if before.gold is not None:
        paired = headviz.paired(before.gold, before.predictions, after.predictions, next(iter(before.metrics)))
        change = plain(paired.to_dict())
    return {"task": args.task, "metrics": metrics, "change": change}


def show(result: dict[str, Any]) -> str:
    if "targets" in result:
        return faster.show(result)

    def change(name: str) -> str:
        before, after = result[name]["before"], result[name]["after"]
        return f"{before:,} → {after:,} ({(after - before) / before:+.1%})"

    rows = [("saved", result["out"]), *([("ONNX", result["onnx"])] if "onnx" in result else [])]
    if result["masked"]:
        rows.append(("kind", "masked export: same shapes, loads in plain transformers"))
    else:
        rows.append(("heads per layer", " ".join(map(str, result["heads_per_layer"]))))
        rows.append(("parameters", change("parameters")))
        rows.append((f"FLOPs at {result['flops']['length']} tokens", change("flops")))
    if (on_dev := result.get("change")) is not None:
        changed = points_changed(on_dev["difference"], on_dev["low"], on_dev["high"], points_in(on_dev["metric"]))
        rows.append((f"{metric_title(on_dev['metric'])} on dev", changed))
    if "vocabulary" in result:
        rows.append(("pieces", pieces_text(result)))
    rows.append(("mask", result["mask"]))
    return table([*rows, *place_rows(result)])
