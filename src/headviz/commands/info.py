"""``headviz info``: what a model is."""

from __future__ import annotations

import argparse
from typing import Any

import headviz

from ..errors import UNTRAINED, ModelError
from ..models import LENGTH
from ..options import Option, add_options
from .common import add_model, load_model, table

OPTIONS = (Option("length", LENGTH, "tokens to count FLOPs for", least=1, metavar="T"),)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_options(parser, OPTIONS)


def run(args: argparse.Namespace) -> dict[str, Any]:
    try:
        clf: Any = load_model(args)
    except ModelError as error:
        if error.code != UNTRAINED:
            raise
        return _pretrained(args)
    # a model without heads describes itself
    about: dict[str, Any] = clf.about() if hasattr(clf, "about") else _described(clf, args.length)
    return about


def _pretrained(args: argparse.Namespace) -> dict[str, Any]:
    """The same for weights without a classification head: no labels, no digest, the encoder's parameters."""
    clf: Any = headviz.load(
        args.model, revision=args.revision, device=args.device, dtype=args.dtype, fresh_labels=("0", "1")
    )
    return {
        **_described(clf, args.length),
        "labels": [],
        "answers": "none yet: a pre-trained encoder. Train a head with headviz finetune",
        "digest": None,
        "parameters": sum(p.numel() for p in clf.model.base_model.parameters()),
        "evaluation": "after fine-tuning",
    }


def _described(clf: Any, length: int) -> dict[str, Any]:
    from ..models.fast.stages import how_evaluated
    from ..models.feed_forward import neurons

    cost = clf.cost(length=length)
    return {
        "name": clf.name,
        "family": clf.family.title,
        "layers": clf.num_layers,
        "heads": clf.num_heads,
        "heads_per_layer": clf.heads_per_layer,
        "neurons_per_layer": neurons(clf),
        "kind": clf.kind,
        "stacks": {name: [rows.start, rows.stop] for name, rows in clf.stacks.items()},
        "head_size": clf.head_size,
        **clf.about_answers(),
        "digest": clf.digest,
        "tokenizer_digest": clf.tokenizer_digest,
        "parameters": cost.parameters,
        "flops": cost.flops,
        "flops_length": cost.length,
        "max_length": clf.max_length,
        "present": clf.present.hex,
        "prunable": clf.family.prunable,
        "evaluation": how_evaluated(clf),
        "device": str(clf.device),
        "dtype": str(clf.dtype).removeprefix("torch."),
    }


def _show_sizes(result: dict[str, Any]) -> str:
    return table(
        [
            ("model", f"{result['name']} ({result['family']})"),
            ("attention heads", "none"),
            ("labels", result["answers"]),
            ("sizes", ", ".join(f"{name} {size}" for name, size in result["sizes"].items())),
            ("parameters", f"{result['parameters']:,}"),
            ("running on", f"{result['device']}, {result['dtype']}"),
            ("digest", result["digest"]),
        ]
    )


def show(result: dict[str, Any]) -> str:
    if "sizes" in result:
        return _show_sizes(result)
    heads, sizes = f"{result['layers']} × {result['heads']}", result["neurons_per_layer"]
    if len(result["stacks"]) > 1:
        parts = (f"{name} {first}–{stop - 1}" for name, (first, stop) in result["stacks"].items())
        heads += f" (rows: {', '.join(parts)})"
    if set(result["heads_per_layer"]) != {result["heads"]}:
        heads += f" originally; left per layer: {' '.join(map(str, result['heads_per_layer']))}"
    return table(
        [
            ("model", f"{result['name']} ({result['family']})"),
            ("layers × heads", heads),
            *([("neurons per layer", " ".join(map(str, sizes)))] if len(set(sizes)) > 1 else []),
            ("labels", result["answers"]),
            ("job", f"{result['job']} ({result['choice']})" if result["choice"] else result["job"]),
            ("parameters", f"{result['parameters']:,}"),
            ("FLOPs", f"{result['flops'] / 1e9:.3g} G for {result['flops_length']} tokens"),
            ("longest input", f"{result['max_length']} tokens"),
            ("heads can be", "masked and really removed" if result["prunable"] else "masked, not really removed"),
            ("evaluation", result["evaluation"]),
            ("running on", f"{result['device']}, {result['dtype']}"),
            ("digest", result["digest"] or "–"),
        ]
    )
