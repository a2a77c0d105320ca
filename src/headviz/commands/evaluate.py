"""``headviz evaluate``: metrics on a task under a mask."""

from __future__ import annotations

import argparse
from typing import Any

from ..evaluation import evaluate
from .common import (
    add_mask,
    add_model,
    add_task,
    load_data,
    load_model,
    number,
    progress_bar,
    read_mask,
    table,
    warn,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_task(parser)
    add_mask(parser)


def run(args: argparse.Namespace) -> dict[str, Any]:
    clf = load_model(args)
    mask = read_mask(args, clf)
    data = load_data(args)
    with progress_bar("evaluating") as progress:
        result = evaluate(clf, data, mask, label_order=args.label_order, progress=progress)
    if result.truncated:
        warn(f"{result.truncated} of {result.n} texts were cut to the model's {clf.max_length} tokens.")
    return {"model": clf.name, "task": data.task.name, "split": data.split, **result.to_json()}


def show(result: dict[str, Any]) -> str:
    off = result["heads_off"]
    named = f": {', '.join(off)}" if 0 < len(off) <= 12 else ""
    rows = [("task", f"{result['task']} {result['split']}, {result['n']:,} examples")]
    rows += [(name, number(value)) for name, value in result["metrics"].items()]
    rows += [
        ("heads off", f"{len(off)}{named}"),
        ("mask", result["mask"]),
        ("seconds", f"{result['seconds']:.2f}"),
    ]
    return table(rows)
