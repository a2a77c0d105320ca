"""``headviz export``: a classifier as ONNX, in float32 or int8, checked and timed against PyTorch."""

from __future__ import annotations

import argparse
from typing import Any

from ..display.numbers import change
from ..errors import OptionError
from ..models.source import EXPORTED
from ..progress import progress_bar
from ..tasks import points_in
from .common import add_model, add_task, load_data, load_model, table
from .number_types import positive_int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_task(parser, required=False)
    parser.add_argument("--out", required=True, metavar="DIR", help="a new folder for model.onnx and its settings")
    parser.add_argument("--precision", default="float32", metavar="P", help="float32 or int8 (float32)")
    parser.add_argument(
        "--head-mask", action="store_true", help="the file takes an input [layers, heads] that switches heads off"
    )
    parser.add_argument("--batch", type=positive_int, default=32, metavar="B", help="texts of a timed batch (32)")
    parser.add_argument("--length", type=positive_int, metavar="T", help="tokens of each text of a timed batch")


def run(args: argparse.Namespace) -> dict[str, Any]:
    if args.precision not in EXPORTED:
        raise OptionError(f"--precision is {' or '.join(EXPORTED)}, not '{args.precision[:40]}'.")
    data = None if args.task is None else load_data(args)
    clf = load_model(args)
    from ..pruning.export import export

    with progress_bar("exporting") as told:
        found = export(
            clf,
            args.out,
            args.precision,
            data=data,
            head_mask=args.head_mask,
            batch=args.batch,
            length=args.length,
            label_order=args.label_order,
            progress=told,
        )
    return found.to_dict()


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
    if (found := result["change"]) is not None:
        scale = points_in(found["metric"])
        rows.append((found["metric"], f"{change(found['difference'], found['low'], found['high'], scale)} points"))
    return table(rows)
