"""``headviz transfer``: masks found on one task, given to the models of others."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import OptionError, UserError
from ..heads import HeadMask
from ..pruning.options import seed_number
from ..storage.paths import out_file, outside_path, read_small
from ..storage.writing import disk_errors
from .common import number, progress_bar, table

if TYPE_CHECKING:
    from ..pruning.tickets.transfer import Cell

LARGEST_SPEC = 16 * 2**20  # bytes
SHAPE = (
    '{"masks": {"mrpc": "fff…"}, "targets": {"rte": {"model": M, "task": "rte", "base": M0, "data": DIR}}, '
    '"retrain": false, "seeds": [0]}'
)
OWN_FILES = (
    'A target of your own files also has "text_columns": ["a", "b"] and "label_column": "y"; '
    '"label_order", "revision", "train_limit" and "dev_limit" are possible, too'
)
BEGIN = '{"source": "'  # of every line in --out


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("spec", metavar="SPEC", help=f"JSON file: {SHAPE}. {OWN_FILES}")
    parser.add_argument(
        "--out", metavar="FILE", help="JSON lines, one per cell, written as they come; an existing file is continued"
    )


def run(args: argparse.Namespace) -> dict[str, Any]:
    from ..pruning.algorithms import of_one_scoring
    from ..pruning.context import open_context
    from ..pruning.options import FinetuneOptions
    from ..pruning.plan import PruningPlan
    from ..pruning.tickets.transfer import matrix, transfer

    place = outside_path(args.spec, "the spec")
    spec = _read(place)
    retrain, seeds = spec.get("retrain", False), spec.get("seeds", [0])
    algorithm = of_one_scoring(retrain)
    out = None if args.out is None else out_file(args.out, "cells.jsonl")
    contexts, orders = {}, {}
    for name, target in spec["targets"].items():
        with _of_target(name):
            plan = PruningPlan.from_dict({"algorithm": algorithm, **target})
            contexts[name], orders[name] = open_context(plan, place.parent), plan.label_order
    masks = {}
    for name, text in spec["masks"].items():
        grid = next(iter(contexts.values())).clf
        masks[name] = HeadMask.from_hex(str(text), grid.num_layers, grid.num_heads)
    given = spec.get("finetune")
    options = None if given is None else FinetuneOptions.from_dict(given)
    cells = _known(out, masks, set(contexts), retrain)
    broken = _break(out)
    with progress_bar("transferring") as progress:
        found = transfer(
            masks,
            contexts,
            retrain=retrain,
            seeds=seeds,
            options=options,
            label_orders=orders,
            known=cells,
            progress=lambda _, done, total: progress(done, total),
        )
        for cell in found:
            cells.append(cell)
            if out is not None:
                with disk_errors(out), open(out, "a", encoding="utf-8") as file:
                    file.write(broken + json.dumps(dataclasses.asdict(cell)) + "\n")
                broken = ""
    result = matrix(cells, metrics={name: context.dev.task.metrics[0] for name, context in contexts.items()})
    return {**result.to_dict(), "universal": result.universal(), "cells": [c.to_dict() for c in cells]}


def show(result: dict[str, Any]) -> str:
    from ..pruning.tickets.margin import caveat

    rows = [["mask of ↓, model of →", *result["targets"]]]
    rows.append(["every head on", *(number(v, 3) for v in result["full"])])
    for i, source in enumerate(result["sources"]):
        cells = []
        for mean, sd in zip(result["mean"][i], result["sd"][i], strict=True):
            cells.append(number(mean, 3) + ("" if sd is None else f" ± {sd:.3f}"))
        rows.append([source, *cells])
    parts = [table(rows)]
    if changes := _changes(result["cells"]):
        parts.append("Change against every head on, with its 95 % interval:\n" + table(changes))
    matching = [f"{s}: {', '.join(t)}" for s, t in result["universal"].items() if t]
    if matching:
        seeds = next(t["seeds"] for found in result["tickets"].values() for t in found.values())
        parts.append("matching subnetworks: " + "; ".join(matching) + "\n" + caveat(seeds))
    return "\n\n".join(parts)


def _changes(cells: list[dict[str, Any]]) -> list[list[str]]:
    """One row per mask and model without retraining; retrained ones have a spread over seeds instead."""
    rows = [
        [c["source"], c["target"], _signed(c["delta"]), f"[{_signed(c['low'])}, {_signed(c['high'])}]"]
        for c in cells
        if c["source"] and c["delta"] is not None and c["low"] is not None
    ]
    return [["mask of", "model of", "change", "95 % interval"], *rows] if rows else []


def _signed(value: float) -> str:
    return f"{value:+.3f}"


@contextmanager
def _of_target(name: str) -> Iterator[None]:
    """A complaint about a target names it, and the keys of the JSON file that its options have."""
    try:
        yield
    except UserError as wrong:
        keys = ", ".join(f'"{option}"' for option in wrong.parameters.get("options", ()))
        more = f" In the JSON file: {keys}." if keys else ""
        raise wrong.reworded(f"Target '{name}': {wrong}{more}") from wrong


def _read(path: Path) -> dict[str, Any]:
    try:
        spec = json.loads(read_small(path, LARGEST_SPEC, "the spec"))
    except (ValueError, RecursionError) as error:
        raise OptionError(f"'{path}' is not JSON: {error}.") from error
    if not isinstance(spec, dict) or not spec.get("masks") or not spec.get("targets"):
        raise OptionError(f"'{path}' needs masks and targets: {SHAPE}")
    for what, kind, each in (("masks", str, "a mask in hexadecimal"), ("targets", dict, "a model and a task")):
        given = spec[what]
        if not isinstance(given, dict) or not all(isinstance(v, kind) for v in given.values()):
            raise OptionError(f"'{path}': {what} gives {each} for each name: {SHAPE}")
    if not isinstance(spec.get("retrain", False), bool):
        raise OptionError(f"'{path}': retrain is true or false, not {spec['retrain']!r}.")
    seeds = spec.get("seeds", [0])
    if not isinstance(seeds, list) or not seeds or len({repr(s) for s in seeds}) < len(seeds):
        raise OptionError(f"'{path}': seeds is a list of different whole numbers, such as [0, 1, 2].")
    for seed in seeds:
        seed_number(seed)
    return spec


def _known(out: Path | None, masks: dict[str, HeadMask], targets: set[str], retrain: bool) -> list[Cell]:
    """Cells of an earlier, interrupted call. A file that holds anything else is refused, not written to."""
    from ..pruning.tickets.transfer import FULL

    cells = _cells(out) if out is not None else []
    for cell in cells:
        if cell.source not in (FULL, *masks) or cell.target not in targets:
            raise OptionError(
                f"'{out}' holds cells of another matrix ({cell.source}, {cell.target}). Choose another file."
            )
        if cell.source != FULL and cell.mask and cell.mask != masks[cell.source].hex:
            raise OptionError(f"'{out}' holds cells of another mask of '{cell.source}'. Choose another file.")
        if (cell.seed is not None) is not retrain:
            how = "without" if retrain else "with"
            raise OptionError(f"'{out}' holds cells {how} retraining. Choose another file.")
    return cells


def _cells(out: Path) -> list[Cell]:
    """The cells in a file; none if it is not there. A line that an interrupted call has cut short is left out."""
    from ..pruning.options import read_options
    from ..pruning.tickets.transfer import Cell

    if not out.exists():
        return []
    cells = []
    try:
        lines = out.read_text(encoding="utf-8").splitlines()
        for line in lines:
            try:
                given = json.loads(line)
            except ValueError:
                if line[: len(BEGIN)] != BEGIN[: len(line)]:
                    raise
            else:
                cells.append(read_options(Cell, given, "field of a cell"))
    except (OSError, ValueError, TypeError, OptionError) as error:
        raise OptionError(
            f"'{out}' is there and was not written by this command, so it stays as it is. Choose another file."
        ) from error
    return cells


def _break(out: Path | None) -> str:
    """A new line, where an interrupted call has left a broken one behind."""
    text = "" if out is None or not out.exists() else out.read_text(encoding="utf-8")
    return "\n" if text and not text.endswith("\n") else ""
