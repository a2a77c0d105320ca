"""``headviz evaluate``: metrics on a task under a mask."""

from __future__ import annotations

import argparse
from typing import Any

from ..evaluation import evaluate
from .common import (
    add_mask,
    add_model,
    add_task,
    add_translation,
    is_recurrent,
    load_data,
    load_model,
    number,
    progress_bar,
    read_mask,
    reading,
    table,
    warn,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_task(parser)
    add_mask(parser)
    add_translation(parser)


def run(args: argparse.Namespace) -> dict[str, Any]:
    clf = reading(args, load_model(args))
    # a recurrent translator has no heads; asked to switch one off, it says so
    mask = None if is_recurrent(clf) and args.mask is None and args.off is None else read_mask(args, clf)
    data = load_data(args)
    with progress_bar("evaluating") as progress:
        result = evaluate(clf, data, mask, label_order=args.label_order, beams=args.beams, progress=progress)
    if result.truncated:
        warn(f"{result.truncated} of {result.n} texts were cut to the model's {clf.max_length} tokens.")
    return {"model": clf.name, "task": data.task.name, "split": data.split, **result.to_json()}


def show(result: dict[str, Any]) -> str:
    off = result["heads_off"]
    named = f": {', '.join(off)}" if 0 < len(off) <= 12 else ""
    rows = [("task", f"{result['task']} {result['split']}, {result['n']:,} examples")]
    digits = 2 if "signatures" in result else 4  # BLEU and chrF run from 0 to 100
    rows += [(name, number(value, digits)) for name, value in result["metrics"].items()]
    if result["mask"] is not None:
        rows += [("heads off", f"{len(off)}{named}"), ("mask", result["mask"])]
    rows.append(("seconds", f"{result['seconds']:.2f}"))
    signed = [f"{name}: {text}" for name, text in result.get("signatures", {}).items()]
    return "\n".join([table(rows), *signed])
