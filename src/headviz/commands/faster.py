"""``headviz prune --faster X``: the options, the work and its output."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import headviz

from ..display.figures.speed import faster_table
from ..display.table import Column, Table
from ..errors import OptionError
from ..models.stand_in import ZERO
from ..options import add_flags, from_flags, with_flags
from ..progress import phase_bar
from ..pruning.options import BOTH, HEADS_ONLY, TARGETS, FinetuneOptions, SearchOptions
from ..tasks import chosen_on
from .common import NO_CACHE, add_task, load_data, load_model, stand_in_of, table_text, warn
from .finetune import add_training, training_options

BATCH = ("batch",)  # is that of the timing, not of the training
OWN = (*(one.dest for one in with_flags(SearchOptions)), "heads_only", "retrain", "task", "data", "limit", "no_cache")
TRAINING = tuple(one.dest for one in with_flags(FinetuneOptions, BATCH))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "a speed, in place of heads", "Heads and feed-forward neurons go until it is met."
    )
    TARGETS.add_to(group)
    add_task(group, split=None, required=False)
    add_flags(group, SearchOptions)
    group.add_argument("--heads-only", action="store_true", help="leave the neurons as they are")
    group.add_argument("--retrain", action="store_true", help="train the smaller model on the train split")
    NO_CACHE.add_to(group)
    add_training(parser, without=BATCH)


def check(args: argparse.Namespace) -> None:
    """Refuse options that contradict each other, before anything is loaded."""
    if args.faster is None:
        # data also say what removed heads cost; a masked export has no card that could tell it
        data = () if args.masked and stand_in_of(args).kind == ZERO else ("task", "data", "limit")
        options = [n for n in (*OWN, *TRAINING) if n not in data and getattr(args, n) not in (None, False)]
        if options:
            raise OptionError(f"--{options[0].replace('_', '-')} goes with --faster X. Leave it out, or name a speed.")
        return
    TARGETS.checked(args.faster)
    if args.ablation not in (None, ZERO):
        raise OptionError("--faster mends what it removes; --ablation goes with --off or --mask.")
    for name in ("off", "mask", "masked"):
        if getattr(args, name):
            raise OptionError(f"--faster chooses what is removed; --{name} names it. Give one of the two.")
    if args.task is None:
        raise OptionError("--faster needs the task whose answers are to be kept: --task T [--data DIR].")
    if not args.retrain:
        for name in TRAINING:
            if getattr(args, name) is not None:
                raise OptionError(f"--{name.replace('_', '-')} is for a training: add --retrain, or leave it out.")
    SearchOptions(**from_flags(args, SearchOptions))


def run(args: argparse.Namespace, out: Path) -> dict[str, Any]:
    from ..models.saving import Measured

    clf = load_model(args)
    whole = argparse.Namespace(**{**vars(args), "limit": None})
    train, dev = load_data(args, "train"), load_data(whole, "dev")
    if shared := chosen_on(train, dev):
        warn(shared)
    retrain = None
    if args.retrain:
        from ..pruning.finetuning import recipe_of

        retrain = training_options(args, recipe_of(args.model), without=BATCH)
    with phase_bar("--samples N scores fewer examples, --limit N takes fewer for training.") as bar:
        result: Any = headviz.prune_faster(
            clf,
            train,
            args.faster,
            dev=dev,
            **from_flags(args, SearchOptions),
            length=args.length,
            remove=HEADS_ONLY if args.heads_only else BOTH,
            retrain=retrain,
            label_order=args.label_order,
            cache=not args.no_cache,
            progress=bar,
        )
    targets = []
    for one in result:
        folder = out if len(result) == 1 else out / f"{one.target:g}x"
        folder = one.model.save(
            folder, args.portable, replace(Measured.of(one, args.task), command=getattr(args, "line", ""))
        )
        if args.onnx:
            from ..models.onnx import export_onnx

            export_onnx(one.model, folder / "model.onnx")
        targets.append({"out": str(folder), **one.to_dict()})
    top = targets[0] if len(targets) == 1 else {"baseline": targets[0]["baseline"]}
    return {**top, "task": args.task, "targets": targets}


def show(result: dict[str, Any]) -> str:
    first = result["targets"][0]
    metric = next(
        (t["change"]["metric"] for t in result["targets"] if t["change"]), next(iter(first["metrics"] or {}), "")
    )
    lines = [
        table_text(faster_table(result["targets"], metric)),
        f"Speed: batches of {first['batch']} texts of {first['length']} tokens, {first['table']['device']}.",
    ]
    for t in result["targets"]:
        lines.append(f"{t['target']:g}×: heads per layer {' '.join(map(str, t['heads_per_layer']))}")
        lines.append(f"      neurons per layer {' '.join(map(str, t['neurons_per_layer']))}")
        if t["error"]:
            lines.append(_repaired(t["error"]))
    return "\n".join(lines)


def _repaired(error: dict[str, Any]) -> str:
    """What the repair did: error and largest weight of each matrix, before and after."""

    def change(of: dict[str, float]) -> str:
        return f"{of['before']:.3g} → {of['after']:.3g}"

    columns = (
        Column("repaired", value=lambda m: f"layer {m['layer']}, {m['map']}"),
        Column("ridge", value=lambda m: "left as it was" if m["ridge"] is None else f"{m['ridge']:g}"),
        Column("error on held-out examples", value=lambda m: change(m["held_out"])),
        Column("largest weight", value=lambda m: change(m["largest"])),
    )
    rows = table_text(Table.of("repaired", columns, error["maps"]))
    return f"{rows}\nin all: {change(error['held_out'])}"
