"""``headviz conductance``: attention and attribution maps of one text or pair, into a .npz file."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

import headviz

from ..attribution.maps import Maps
from ..attribution.rules import AUTO, DEFAULT_RULE, MOST_STEPS, PRECISIONS, RULES, TOLERANCE
from ..display.numbers import fixed
from ..errors import OptionError
from ..options import Option, add_options, check_options
from ..progress import progress_bar
from ..results import plain
from ..storage.paths import out_file
from ..storage.writing import disk_errors, replacing
from .common import NO_CACHE, TARGET, TEXTS, add_masked_model, in_their_place, masked_model, place_rows, table, warn

OPTIONS = (
    Option(
        "steps",
        None,
        f"intervals (doubled until the estimated error is at most {TOLERANCE:g})",
        int,
        least=1,
        most=MOST_STEPS,
        metavar="N",
    ),
    Option("rule", DEFAULT_RULE, "integration rule", choices=RULES, metavar="R"),
    *TARGET,
    Option("word", None, "of a class per token: the word explained, from 0", int, least=0, metavar="N"),
    Option("tolerance", None, "double the steps until the error is below E", float, least=1e-9, most=1, metavar="E"),
    Option("precision", AUTO, "bfloat16 is a faster preview, with --steps 8, say", choices=PRECISIONS, metavar="P"),
    NO_CACHE,
    Option("out", help="where to write the maps (.npz)", metavar="FILE", required=True),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_masked_model(parser)
    add_options(parser, (*TEXTS, *OPTIONS))


def run(args: argparse.Namespace) -> dict[str, Any]:
    out = out_file(args.out, "maps.npz")
    if out.suffix.lower() != ".npz":
        raise OptionError(f"'{out.name}' must end in .npz.")
    check_options(args, OPTIONS)
    clf, mask = masked_model(args)
    start = time.perf_counter()
    with progress_bar("points of the path") as progress:
        maps = headviz.conductance(
            clf,
            args.text,
            args.text_pair,
            steps=args.steps,
            rule=args.rule,
            target=args.target,
            word=args.word,
            label=args.label,
            mask=mask,
            tolerance=args.tolerance,
            precision=args.precision,
            cache=not args.no_cache,
            progress=progress,
        )
    seconds = time.perf_counter() - start
    for note in maps.notes:
        warn(note)
    write(maps, out)
    return {
        "out": str(out),
        "layers": clf.num_layers,
        "heads": clf.num_heads,
        "tokens": list(maps.tokens),
        "target": maps.target,
        "target_label": maps.target_label,
        "probabilities": dict(zip(maps.labels, plain(maps.probabilities.T), strict=True)),
        "probability": plain(clf.answer.followed(maps.logits[None], maps.target)[0]),
        "error": plain(maps.error),
        "rule": maps.rule,
        "steps": maps.steps,
        "mask": mask.hex,
        **in_their_place(clf),
        "truncated": maps.truncated,
        "seconds": round(seconds, 4),
    }


def write(maps: Maps, out: Path) -> None:
    """An .npz of plain arrays, whole or not at all; readable with ``np.load(..., allow_pickle=False)``."""
    arrays = {
        "attention": maps.attention,
        "attribution": maps.attribution,
        "tokens": np.array(maps.tokens),
        "types": np.array(maps.types),
        "special": np.array(maps.special),
        "labels": np.array(maps.labels),
        "logits": maps.logits,
        "target": np.array(maps.target),
        "mask": maps.mask.array(),
        "error": np.array(maps.error),
        "head_error": maps.head_error,
        "steps": np.array(maps.steps),
        "rule": np.array(maps.rule),
    }
    with disk_errors(out, sum(a.nbytes for a in arrays.values())), replacing(out) as part, part.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def show(result: dict[str, Any]) -> str:
    error = "not known" if result["error"] is None else f"{100 * result['error']:.2g} %"
    return table(
        [
            ("maps", f"{result['layers']} × {result['heads']} heads, {len(result['tokens'])} tokens"),
            ("class explained", f"{result['target_label']} ({fixed(result['probability'], 3)})"),
            *place_rows(result),
            ("integration error", f"{error} (estimated; {result['rule']}, {result['steps']} steps)"),
            ("written to", result["out"]),
            ("seconds", f"{result['seconds']:.2f}"),
        ]
    )
