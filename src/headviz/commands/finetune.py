"""``headviz finetune``: train a pre-trained encoder on a task, whole or with heads really removed."""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import headviz

from ..answers.metrics import metric_title, remark
from ..display.numbers import fixed
from ..errors import LARGEST_SEED, Cancelled, seed_number
from ..evaluation.plain import cut_off
from ..options import Option, add_flags, add_options, from_flags
from ..progress import long_work, progress_bar
from ..pruning.options import FinetuneOptions
from ..pruning.training_folder import check_own, removal, remove_training
from ..results import plain
from ..storage.paths import OUT, new_folder, outside_path
from ..storage.writing import disk_errors, replace_file
from ..tasks import trained_on
from .common import add_mask, add_model, add_task, load_data, read_mask, table, warn
from .evaluate import reasons

if TYPE_CHECKING:
    from ..models.classifier import Classifier
    from ..tasks import Dataset

FEWER = "--epochs N trains less, --limit N on fewer examples."
TIMED = 50  # updates; a longer training is timed by some updates before it starts
REPORT = "training-report.json"
DIVERGED = "diverged.json"  # after the name of --out: the learning curve of a training whose loss became NaN


OPTIONS = (
    Option("out", help="a new folder for the trained model", metavar="DIR", required=True),
    Option("seed", 0, "of the new head, the order and dropout", most=LARGEST_SEED, metavar="S"),
    Option("keep_head", False, "go on training the model's own classification head"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_task(parser, split=None)
    add_mask(parser)
    add_options(parser, OPTIONS)
    add_training(parser)


def add_training(parser: argparse.ArgumentParser, without: Collection[str] = ()) -> None:
    """How to train; the defaults are the model's own recipe, or the thesis's. ``without`` leaves names free."""
    group = parser.add_argument_group(
        "training", "Without these the model's own recipe applies; models without one train as in the 2024 thesis."
    )
    add_flags(group, FinetuneOptions, without)


def training_options(
    args: argparse.Namespace, recipe: FinetuneOptions | None, without: Collection[str] = ()
) -> FinetuneOptions:
    """The recipe with what the user has changed."""
    return replace(recipe or FinetuneOptions(), **from_flags(args, FinetuneOptions, without))


def run(args: argparse.Namespace) -> dict[str, Any]:
    out = new_folder(args.out)

    from ..pruning.finetuning import examples_of, fine_tune, recipe_of, require_trainable, seconds_of
    from ..pruning.trainer import Diverged, updates_of

    place = out.resolve()  # --out may be "."
    checkpoints = outside_path(place.parent / f".{place.name}-training", OUT)
    check_own(checkpoints)
    seed_number(args.seed)
    options = training_options(args, recipe_of(args.model))
    if args.limit is None and args.data is None:
        args.limit = examples_of(args.model)
    train = load_data(args, "train")
    dev = load_data(args, "dev", limited=False)
    if note := trained_on(train, dev):
        warn(note)
    clf = _model(args, train)
    options = replace(options, evaluate_epochs=True)
    require_trainable(clf, train, dev, options)
    updates = updates_of(options, len(train))
    warn(f"{updates:,} updates on {len(train):,} examples")
    if note := cut_off(clf, train, "is not learned there"):
        warn(note)
    timed = updates > TIMED
    if timed and (line := long_work("training", seconds_of(clf, train, options, args.seed, args.label_order), FEWER)):
        warn(line)
    if checkpoints.exists():
        warn(f"goes on from the checkpoints in {checkpoints}; {removal(checkpoints)} begins again")
    try:
        with disk_errors(checkpoints), progress_bar("training", None if timed else FEWER) as progress:
            trained = fine_tune(
                clf,
                train,
                options,
                args.seed,
                dev=dev,
                label_order=args.label_order,
                folder=checkpoints,
                progress=progress,
            )
    except (Cancelled, KeyboardInterrupt):
        if checkpoints.exists():
            size = sum(f.stat().st_size for f in checkpoints.rglob("*") if f.is_file()) / 1e6
            warn(
                f"checkpoints of {size:,.0f} MB are in {checkpoints}; the same command goes on from there, and "
                f"{removal(checkpoints)} removes them"
            )
        raise
    except Diverged as error:
        # going on from its checkpoints would diverge again, and another learning rate must start without them
        remove_training(checkpoints)
        curve = out.parent / f"{out.name}-{DIVERGED}"
        _write_json(curve, {"error": str(error), "options": options.to_dict(), "curve": plain(error.curve)})
        warn(f"the learning curve so far: {curve}")
        raise
    with progress_bar("evaluating") as progress:
        result = headviz.evaluate(
            trained.classifier, dev, label_order=args.label_order, precision="float32", progress=progress
        )
    cost = trained.classifier.cost()
    report = {
        "out": str(out),
        "base": clf.name,
        "task": train.task.name,
        "labels": list(clf.classes or ()),
        "mask": clf.present.hex,
        "heads_per_layer": clf.heads_per_layer,
        "seed": args.seed,
        "options": options.to_dict(),
        **result.to_dict(),
        "undefined": reasons(trained.classifier, dev, result, args.label_order),
        "examples": {"train": len(train), "dev": len(dev)},
        "updates": trained.updates,
        "epochs": trained.epochs,
        "best_epoch": trained.best_epoch,
        "seconds": round(trained.seconds, 2),
        "parameters": cost.parameters,
        "flops": cost.flops,
        "curve": plain(trained.curve),
        "digest": trained.classifier.digest,
    }
    trained.classifier.save(out)
    _write_json(out / REPORT, report)
    remove_training(checkpoints)
    return report


def show(result: dict[str, Any]) -> str:
    epochs = [point for point in result["curve"] if point["metrics"]]
    rows = [
        ("saved", result["out"]),
        ("task", f"{result['task']}, {result['examples']['train']:,} examples, seed {result['seed']}"),
        ("heads per layer", " ".join(map(str, result["heads_per_layer"]))),
        ("trained", f"{result['epochs']:g} epochs, {result['updates']:,} updates, {result['seconds']:.1f} s"),
        *((f"dev {name}", fixed(value)) for name, value in result["metrics"].items()),
    ]
    if len(epochs) > 1:
        name = next(iter(epochs[0]["metrics"]))
        rows.append((f"dev {name} by epoch", " ".join(fixed(point["metrics"][name], 3) for point in epochs)))
    if result["best_epoch"] is not None:
        rows.append(("kept", f"the weights after epoch {result['best_epoch']:g}"))
    first = remark(result["predicted"], result["constant"].get("accuracy"), result["metrics"].get("accuracy"))
    missing = [f"{metric_title(name)} has no value: {reason}." for name, reason in result["undefined"].items()]
    return "\n".join([*([first, ""] if first else []), table(rows), *missing])


def _model(args: argparse.Namespace, train: Dataset) -> Classifier:
    """The model to train: a fresh head for the task's classes, unless its own is kept."""
    from ..pruning.finetuning import head_labels

    options = {"revision": args.revision, "device": args.device, "dtype": args.dtype, "job": args.job}
    if not args.keep_head:
        labels = head_labels(train, args.label_order)
        options |= {"fresh_labels": labels, "seed": args.seed, "job": args.job or train.job}
    clf = headviz.load(args.model, **options)
    mask = read_mask(args, clf)
    return clf if mask == clf.present else headviz.prune(clf, mask)


def _write_json(path: Path, report: dict[str, Any]) -> None:
    try:
        replace_file(path, json.dumps(report, indent=2) + "\n")
    except OSError as error:
        warn(f"'{path}' could not be written: {error.strerror}")
