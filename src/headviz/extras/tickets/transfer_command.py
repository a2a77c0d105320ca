"""``headviz transfer``: masks found on one task, given to the models of others."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...commands.common import table
from ...display.numbers import fixed, interval, points
from ...errors import OptionError
from ...options import Option, add_options
from ...progress import progress_bar
from ...storage.paths import out_file, outside_path
from ...storage.writing import disk_errors
from ...tasks import points_in
from .transfer_matrix import FULL, Cell, finding, matrix
from .transfer_spec import SHAPE, TransferSpec, cells_of, line_of
from .winning import caveat

if TYPE_CHECKING:
    from ...heads import HeadMask
    from ...pruning.context import Context

OWN_FILES = (
    'A target of your own files also has "text_columns": ["a", "b"] and "label_column": "y"; '
    '"label_order", "revision", "train_limit" and "dev_limit" are possible, too'
)
RANDOM = (
    '"random" is the number of random masks of each size next to them; without retraining 5, with it 1 for each seed'
)


OPTIONS = (
    Option("out", help="JSON lines, one per cell, written as they come; an existing file is continued", metavar="FILE"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("spec", metavar="SPEC", help=f"JSON file: {SHAPE}. {OWN_FILES}. {RANDOM}")
    add_options(parser, OPTIONS)


def run(args: argparse.Namespace) -> dict[str, Any]:
    from .transfer import check_masks

    place = outside_path(args.spec, "the spec")
    spec = TransferSpec.read(place)
    out = None if args.out is None else out_file(args.out, "cells.jsonl")
    contexts = {name: spec.open(name, place.parent) for name in spec.targets}  # all mistakes before any work
    masks = spec.masks_on(next(iter(contexts.values())))
    check_masks(masks, contexts, spec.seeds if spec.retrain else (), spec.random)
    cells = _known(out, spec, masks, contexts)
    broken = _break(out)
    with progress_bar("transferring") as progress:
        for cell in spec.cells(contexts.__getitem__, known=cells, each=progress):
            cells.append(cell)
            if out is not None:
                with disk_errors(out), open(out, "a", encoding="utf-8") as file:
                    file.write(broken + line_of(cell) + "\n")
                broken = ""
    result = matrix(cells, metrics={name: context.dev.task.metrics[0] for name, context in contexts.items()})
    summary = {"finding": finding(result), "universal": result.universal()}
    return {**result.to_dict(), **summary, "cells": [c.to_dict() for c in cells]}


def show(result: dict[str, Any]) -> str:
    rows = [["mask of ↓, model of →", *result["targets"]]]
    rows.append(["every head on", *(fixed(v, 3) for v in result["full"])])
    for i, source in enumerate(result["sources"]):
        cells = []
        for mean, sd in zip(result["mean"][i], result["sd"][i], strict=True):
            cells.append(fixed(mean, 3) + ("" if sd is None else f" ± {sd:.3f}"))
        rows.append([source, *cells])
    for share in dict.fromkeys(e["sparsity"] for e in result["random"]):
        by_target = {e["target"]: e for e in result["random"] if e["sparsity"] == share}
        spreads = [_spread(by_target.get(target)) for target in result["targets"]]
        rows.append([f"random masks, {100 * share:.0f} % off", *spreads])
    parts = [table(rows)]
    if changes := _changes(result["entries"]):
        parts.append("Change against every head on, in points, with its 95 % interval:\n" + table(changes))
    parts.append(result["finding"])
    matching = [f"{s}: {', '.join(t)}" for s, t in result["universal"].items() if t]
    if matching:
        seeds = next(t["seeds"] for entries in result["tickets"].values() for t in entries.values())
        parts.append("matching subnetworks: " + "; ".join(matching) + "\n" + caveat(seeds))
    return "\n\n".join(parts)


def _spread(entry: dict[str, Any] | None) -> str:
    if entry is None:
        return "–"
    return fixed(entry["value"], 3) + ("" if entry["sd"] is None else f" ± {entry['sd']:.3f}")


def _changes(entries: list[dict[str, Any]]) -> list[list[str]]:
    """One row per mask and model whose change has an interval."""
    rows = [
        [
            e["source"],
            e["target"],
            points(e["change"], points_in(e["metric"])),
            interval(e["low"], e["high"], points_in(e["metric"])),
            "–" if e["kept"] is None else f"{100 * e['kept']:.0f} %",
            "–" if e["random_low"] is None else f"{e['random_low']:.3f} to {e['random_high']:.3f}",
        ]
        for e in entries
        if e["change"] is not None and e["low"] is not None
    ]
    return [["mask of", "model of", "change", "95 % interval", "kept", "a random mask lies in"], *rows] if rows else []


def _known(
    out: Path | None, spec: TransferSpec, masks: Mapping[str, HeadMask], contexts: Mapping[str, Context]
) -> list[Cell]:
    """Cells of an earlier, interrupted call. A file that holds anything else is refused, not written to."""
    cells = _cells(out) if out is not None else []
    subjects: dict[tuple[str, int | None], str] = {}
    for cell in cells:
        if cell.source not in (FULL, *masks) or cell.target not in spec.targets:
            raise OptionError(
                f"'{out}' holds cells of another matrix ({cell.source}, {cell.target}). Choose another file."
            )
        if cell.source != FULL and cell.mask and cell.mask != masks[cell.source].hex:
            raise OptionError(f"'{out}' holds cells of another mask of '{cell.source}'. Choose another file.")
        if (cell.seed is not None) is not spec.retrain:
            how = "without" if spec.retrain else "with"
            raise OptionError(f"'{out}' holds cells {how} retraining. Choose another file.")
        at = cell.target, cell.seed
        if cell.subject and at not in subjects:
            subjects[at] = spec.subject(contexts[cell.target], *at)
        if cell.subject and cell.subject != subjects[at]:
            raise OptionError(
                f"'{out}' holds cells of '{cell.target}' with another model, other data or another training. "
                "Choose another file."
            )
    return cells


def _cells(out: Path) -> list[Cell]:
    """The cells in a file; none if it is not there."""
    if not out.exists():
        return []
    try:
        return cells_of(out.read_text(encoding="utf-8"), str(out))
    except (OSError, ValueError, OptionError) as error:
        raise OptionError(
            f"'{out}' is there and was not written by this command, so it stays as it is. Choose another file."
        ) from error


def _break(out: Path | None) -> str:
    """A new line, where an interrupted call has left a broken one behind."""
    text = "" if out is None or not out.exists() else out.read_text(encoding="utf-8")
    return "\n" if text and not text.endswith("\n") else ""
