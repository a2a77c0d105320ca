"""``headviz info``: what a model is."""

from __future__ import annotations

import argparse
from typing import Any

from .common import add_model, load_model, positive_int, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument(
        "--length", type=positive_int, default=128, metavar="T", help="tokens to count FLOPs for (128)"
    )


def run(args: argparse.Namespace) -> dict[str, Any]:
    clf = load_model(args)
    cost = clf.cost(length=args.length)
    return {
        "name": clf.name,
        "family": clf.family.title,
        "layers": clf.num_layers,
        "heads": clf.num_heads,
        "heads_per_layer": clf.heads_per_layer,
        "kind": clf.kind,
        "stacks": {name: [rows.start, rows.stop] for name, rows in clf.stacks.items()},
        "head_size": clf.head_size,
        "labels": list(clf.labels),
        "regression": clf.is_regression,
        "digest": clf.digest,
        "tokenizer_digest": clf.tokenizer_digest,
        "parameters": cost.parameters,
        "flops": cost.flops,
        "flops_length": cost.length,
        "max_length": clf.max_length,
        "present": clf.present.hex,
        "prunable": clf.family.prunable,
        "device": str(clf.device),
        "dtype": str(clf.dtype).removeprefix("torch."),
    }


def show(result: dict[str, Any]) -> str:
    heads = f"{result['layers']} × {result['heads']}"
    if len(result["stacks"]) > 1:
        parts = (f"{name} {first}–{stop - 1}" for name, (first, stop) in result["stacks"].items())
        heads += f" (rows: {', '.join(parts)})"
    if set(result["heads_per_layer"]) != {result["heads"]}:
        heads += f" originally; left per layer: {' '.join(map(str, result['heads_per_layer']))}"
    return table(
        [
            ("model", f"{result['name']} ({result['family']})"),
            ("layers × heads", heads),
            ("labels", _labels(result)),
            ("parameters", f"{result['parameters']:,}"),
            ("FLOPs", f"{result['flops'] / 1e9:.3g} G for {result['flops_length']} tokens"),
            ("longest input", f"{result['max_length']} tokens"),
            (
                "heads can be",
                "masked and really removed" if result["prunable"] else "masked, not really removed",
            ),
            ("running on", f"{result['device']}, {result['dtype']}"),
            ("digest", result["digest"]),
        ]
    )


def _labels(result: dict[str, Any]) -> str:
    if result["kind"] == "translation":
        return "none (translates)"
    return "a number (regression)" if result["regression"] else ", ".join(result["labels"])
