"""``headviz export``: a model as ONNX, in float32 or int8, checked and timed against PyTorch."""

from __future__ import annotations

import argparse
from typing import Any

import headviz

from ..display.numbers import change
from ..models import EXPORTED
from ..options import Option, add_options, check_options
from ..progress import progress_bar
from ..tasks import points_in
from .common import add_model, add_task, load_data, load_model, table

OPTIONS = (
    Option("out", help="a new folder for model.onnx and its settings", metavar="DIR", required=True),
    Option("precision", EXPORTED[0], "of the file", choices=EXPORTED, metavar="P"),
    Option("head_mask", False, "the file takes an input [layers, heads] that switches heads off"),
    Option("batch", 32, "texts of a timed batch", least=1, metavar="B"),
    Option("length", None, "tokens of each text of a timed batch", int, least=1, metavar="T"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_task(parser, required=False)
    add_options(parser, OPTIONS)


def run(args: argparse.Namespace) -> dict[str, Any]:
    check_options(args, OPTIONS)
    data = None if args.task is None else load_data(args)
    clf = load_model(args, data)
    with progress_bar("exporting") as progress:
        result = headviz.export(
            clf,
            args.out,
            args.precision,
            data=data,
            head_mask=args.head_mask,
            batch=args.batch,
            length=args.length,
            label_order=args.label_order,
            progress=progress,
        )
    return result.to_dict()


def show(result: dict[str, Any]) -> str:
    rows = [
        ("saved", result["path"]),
        ("precision", result["precision"]),
        ("size", f"{result['bytes'] / 1e6:,.1f} MB"),
        (
            "speed",
            f"{result['seconds_per_batch']:.4f} s for {result['batch']} texts of {result['length']} tokens, PyTorch "
            f"{result['torch_seconds']:.4f} s: {result['speedup']:.2f}× (95 % {result['speedup_low']:.2f} to "
            f"{result['speedup_high']:.2f}), {result['threads']} threads",
        ),
    ]
    if result["agreement"] is not None:
        least = f"at least {result['agreement_low']:.2%}, one-sided 97.5 %"
        rows.append(("same answer", f"{result['agreement']:.2%} of {result['n']:,} examples ({least})"))
    if (changed := result["change"]) is not None:
        scale = points_in(changed["metric"])
        rows.append(
            (changed["metric"], f"{change(changed['difference'], changed['low'], changed['high'], scale)} points")
        )
    return table(rows)
