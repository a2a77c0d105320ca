"""A transfer as one file: masks, models and data by name, and how to measure; ``headviz transfer`` reads it.

    {"masks": {"mrpc": "fff…"}, "targets": {"rte": {"model": M, "task": "rte", "base": M0, "data": DIR}},
     "retrain": false, "seeds": [0], "random": 5}

A mask may also be the heads that are off by layer, {"3": [5], "7": [0]}. A target has the options of a pruning plan
that say what it works on. Its cells are JSON lines, one per cell.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...commands.common import table
from ...display.numbers import fixed, interval, points
from ...errors import ModelError, OptionError, UserError, require_kind, seed_number, unknown_choice, whole_number
from ...heads import HeadMask
from ...options import Option, add_options, read_options
from ...progress import progress_bar
from ...pruning.algorithms import of_one_scoring
from ...pruning.options import FinetuneOptions
from ...pruning.plan import PruningPlan
from ...runs.record import PRUNE
from ...storage.exchange import MaskLike, mask_of, own_mask, pruned_heads
from ...storage.paths import out_file, outside_path, read_small
from ...storage.writing import disk_errors
from ...tasks import points_in
from .transfer_matrix import FULL, Cell, Matrix, finding, matrix, planned_cells
from .winning import caveat

if TYPE_CHECKING:
    from ...progress import Cancel, Progress
    from ...pruning.context import Context
    from ...runs.reading import RunView


LARGEST = 16 * 2**20  # bytes
MOST_RANDOM = 10_000  # random masks of each size
SHAPE = (
    '{"masks": {"mrpc": "fff…"}, "targets": {"rte": {"model": M, "task": "rte", "base": M0, "data": DIR}}, '
    '"retrain": false, "seeds": [0], "random": 5}'
)
BEGIN = '{"source": "'  # of every line of cells


@dataclass(frozen=True)
class TransferSpec:
    """``masks`` are hexadecimal or heads by layer; ``targets`` are options of pruning plans.

    ``finetune`` None = each base's own recipe. ``random`` is the number of random masks of each size, None = five, or
    one per seed with ``retrain``. Raises ``UserError`` for a wrong value; a target is checked when it is opened.
    """

    masks: Mapping[str, str | Mapping[Any, Any]]
    targets: Mapping[str, Mapping[str, Any]]
    retrain: bool = False
    seeds: Sequence[int] = (0,)
    random: int | None = None
    finetune: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        by_layer = "a mask in hexadecimal or heads by layer"
        for field, kind, each in (("masks", str | Mapping, by_layer), ("targets", Mapping, "a model and a task")):
            value = getattr(self, field)
            if not isinstance(value, Mapping) or not value or not all(isinstance(v, kind) for v in value.values()):
                raise OptionError(f"{field} gives {each} for each name: {SHAPE}")
        if "" in self.masks:
            raise OptionError(f"A mask needs a name that is not empty: {SHAPE}")
        if not isinstance(self.retrain, bool):
            raise OptionError(f"retrain is true or false, not {self.retrain!r}.")
        seeds = self.seeds
        if not isinstance(seeds, list | tuple) or not seeds or len({repr(s) for s in seeds}) < len(seeds):
            raise OptionError("seeds is a list of different whole numbers, such as [0, 1, 2].")
        for seed in seeds:
            seed_number(seed)
        if self.random is not None:
            whole_number(self.random, "random", 0, MOST_RANDOM)
        if self.finetune is not None:
            FinetuneOptions.from_dict(self.finetune)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> TransferSpec:
        names = [f.name for f in dataclasses.fields(cls)]
        if unknown := [name for name in record if name not in names]:
            raise OptionError(unknown_choice("field of a transfer", unknown[0], names))
        return cls(**{"masks": {}, "targets": {}, **record})

    @classmethod
    def read(cls, place: Path) -> TransferSpec:
        """The spec in a JSON file; complaints name the file."""
        try:
            record = json.loads(read_small(place, LARGEST, "the spec"))
        except (ValueError, RecursionError) as error:
            raise OptionError(f"'{place}' is not JSON: {error}.") from error
        if not isinstance(record, dict):
            raise OptionError(f"'{place}' needs masks and targets: {SHAPE}")
        try:
            return cls.from_dict(record)
        except UserError as error:
            raise error.reworded(f"'{place}': {error}") from error

    def to_dict(self) -> dict[str, Any]:
        """As it is written into a file; defaults are left out."""
        record = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if getattr(self, f.name) != f.default}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in record.items()}

    def plan(self, target: str) -> PruningPlan:
        """What a target is, as a plan that is never run."""
        return PruningPlan.from_dict({"algorithm": of_one_scoring(self.retrain), **self.targets[target]})

    def open(self, target: str, folder: Path) -> Context:
        """Load a target's models and data; a complaint names the target and its keys in the file."""
        from ...pruning.context import open_context

        with _of_target(target):
            return open_context(self.plan(target), folder)

    def masks_on(self, context: Context) -> dict[str, HeadMask]:
        grid = context.clf.num_layers, context.clf.num_heads
        return {
            name: HeadMask.from_hex(mask, *grid) if isinstance(mask, str) else mask_of(mask, *grid)
            for name, mask in self.masks.items()
        }

    def cells(
        self,
        opened: Callable[[str], Context] | None = None,
        *,
        measured: Sequence[Cell] = (),
        progress: Progress | None = None,
        cancel: Cancel | None = None,
    ) -> Iterator[Cell]:
        """Yield the cells that are not ``measured``.

        ``opened`` gives a target's models and data; without it each target is loaded in its turn, and let go after it.
        """
        from .transfer import transfer_cells

        done, total = len(measured), 0
        masks: dict[str, HeadMask] = {}
        for target in self.targets:
            context = self.open(target, Path()) if opened is None else opened(target)
            masks = masks or self.masks_on(context)  # of one grid: another with as many heads is refused
            total = total or self.count(masks)
            if progress is not None:
                progress(done, total)
            for cell in transfer_cells(
                masks,
                {target: context},
                retrain=self.retrain,
                seeds=self.seeds,
                random=self.random,
                options=self._options,
                label_orders={target: self.plan(target).label_order},
                measured=measured,
                cancel=cancel,
            ):
                done += 1
                if progress is not None:
                    progress(done, total)
                yield cell

    def subject(self, context: Context, target: str, seed: int | None) -> str:
        """Identifies what a target's cells are measured on, as it is written into them."""
        from .transfer import subject_of

        return subject_of(context, self.plan(target).label_order, seed, self._options)

    @property
    def _options(self) -> FinetuneOptions | None:
        return None if self.finetune is None else FinetuneOptions.from_dict(self.finetune)

    def count(self, masks: Mapping[str, HeadMask]) -> int:
        """How many cells there are."""
        first = next(iter(masks.values()))
        full = HeadMask.full(first.num_layers, first.num_heads)
        return len(planned_cells(masks, tuple(self.targets), full, self.retrain, self.seeds, self.random))


def transfer(
    masks: Mapping[str, str | MaskLike],
    targets: Mapping[str, Mapping[str, object]],
    *,
    retrain: bool = False,
    seeds: Sequence[int] = (0,),
    random: int | None = None,
    finetune: Mapping[str, object] | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Matrix:
    """Give masks that were found on some tasks to the models of others; the result's ``entries`` say what each keeps.

    A target is what a pruning run works on: ``{"model": …, "task": …}``, with ``data``, ``base`` (θ0, for ``retrain``)
    and the like. ``random`` masks of each size stand next to them on every target (None = five, or one for each seed
    with ``retrain``): a mask that is no better than those has not transferred. Do not read a small change as none:
    an entry's ``low`` says which loss is not excluded.

    >>> import headviz
    >>> half = headviz.HeadMask.full(12, 12).without_random(72)
    >>> demo = {"model": "demo", "task": "demo", "dev_limit": 30, "device": "cpu"}
    >>> result = headviz.transfer({"half": half}, {"demo": demo}, random=2)
    >>> [(entry.source, entry.target, entry.random_count) for entry in result.entries]
    [('half', 'demo', 2)]
    """
    require_kind(masks, Mapping, "{'mrpc': mask}")
    written = {name: mask if isinstance(mask, str) else _written(mask) for name, mask in masks.items()}
    spec = TransferSpec(written, targets, retrain, seeds, random, finetune)
    return matrix(list(spec.cells(progress=progress, cancel=cancel)))


def _written(mask: MaskLike) -> str | dict[int, list[int]]:
    """A mask as the JSON file has it: heads by layer stay so, as only the model tells their grid."""
    return pruned_heads(mask) if isinstance(mask, Mapping) else own_mask(mask).hex


@contextmanager
def _of_target(name: str) -> Iterator[None]:
    """A complaint about a target names it, and the keys of the JSON file that its options have."""
    try:
        yield
    except UserError as error:
        keys = ", ".join(f'"{option}"' for option in error.parameters.get("options", ()))
        keys = f" In the JSON file: {keys}." if keys else ""
        raise error.reworded(f"Target '{name}': {error}{keys}") from error


def line_of(cell: Cell) -> str:
    return json.dumps(dataclasses.asdict(cell))


def cells_of(text: str, name: str) -> list[Cell]:
    """The cells in JSON lines. A line that an interrupted call has cut short is left out; anything else is refused."""
    cells = []
    try:
        for line in text.splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                if line[: len(BEGIN)] != BEGIN[: len(line)]:
                    raise
            else:
                cells.append(read_options(Cell, record, "field of a cell"))
    except (ValueError, TypeError, RecursionError, OptionError) as error:
        raise OptionError(f"'{name}' was not written by headviz transfer, so it is not read.") from error
    return cells


# -----------------------------------------------------------------------------------------------
# Finished pruning runs as a transfer: the masks of all at one share of heads off, on the models and data of all.


# options of a run's plan that say what its masks are measured on
_PLACE = (
    "model revision device task data text_columns label_column label_order dev_split dev_limit stack prefix languages "
    "ablation reference"
).split()
# those that say how its networks are trained
_TRAINING = "base base_revision train_split train_limit initialisation".split()


@dataclass(frozen=True)
class TransferOfRuns:
    """``own_targets`` says which target each mask was found on; ``digests`` are of the models."""

    spec: TransferSpec
    own_targets: Mapping[str, str]
    digests: Mapping[str, str | None]


def finished_prunings(views: Sequence[RunView]) -> list[RunView]:
    """The finished pruning runs among these and among the runs of sweeps."""
    runs = [run for view in views for run in (view.children or (view,))]
    return [v for v in runs if v.record.kind == PRUNE and v.state == "done" and v.steps]


def masks_of(view: RunView) -> dict[float, str]:
    """The masks of a run's first seed by their share of heads off."""
    first = view.steps[0].get("seed")
    return {round(s["sparsity"], 9): s["mask"] for s in view.steps if s.get("seed") == first}


def of_same_grid(views: Sequence[RunView], to: RunView) -> list[RunView]:
    """The runs with as many heads as this one. A grid of another shape is refused later, when its model is known."""
    digits = len(to.steps[0]["mask"])
    return [v for v in views if len(v.steps[0]["mask"]) == digits]


def shares_of(views: Sequence[RunView]) -> list[float]:
    """The shares of heads off at which all of them have a mask."""
    return sorted(set.intersection(*(set(masks_of(v)) for v in views)))


def plan_of(
    views: Sequence[RunView],
    share: float,
    *,
    retrain: bool = False,
    seeds: Sequence[int] = (0,),
    random: int | None = None,
) -> TransferOfRuns:
    """The masks of these runs at this share, on the models and data of all of them. Equal models and data are one
    target."""
    places = [_place(v.record.spec, retrain) for v in views]
    different = [p for i, p in enumerate(places) if p not in places[:i]]
    names = _names(different)
    targets_of_runs = [names[different.index(place)] for place in places]
    sources = _sources(views, targets_of_runs)
    masks = {source: masks_of(v)[share] for source, v in zip(sources, views, strict=True)}
    digests = {
        target: (v.record.spec.get("digests") or {}).get("model")
        for target, v in zip(targets_of_runs, views, strict=True)
    }
    spec = TransferSpec(masks, dict(zip(names, different, strict=True)), retrain, tuple(seeds), random)
    return TransferOfRuns(spec, dict(zip(sources, targets_of_runs, strict=True)), digests)


def _place(spec: Mapping[str, Any], retrain: bool) -> dict[str, Any]:
    """What a run works on, as options of a plan that differ from their defaults."""
    default = {f.name: f.default for f in dataclasses.fields(PruningPlan)}
    names = [*_PLACE, *(_TRAINING if retrain else ())]
    return {n: spec[n] for n in names if spec.get(n) is not None and spec[n] != default.get(n)}


def _names(places: Sequence[Mapping[str, Any]]) -> list[str]:
    """A name for each target: its task, with the model's and a number where several are of one task."""
    tasks = [str(p["task"]) for p in places]
    full = [
        t if tasks.count(t) == 1 else f"{t}, {Path(str(p['model'])).name}" for t, p in zip(tasks, places, strict=True)
    ]
    return [n if full.count(n) == 1 else f"{n} {full[: i + 1].count(n)}" for i, n in enumerate(full)]


def _sources(views: Sequence[RunView], targets: Sequence[str]) -> list[str]:
    """A name for each mask: its target's, with the score and the run's id where several are of one target."""
    if len(set(targets)) == len(targets):
        return list(targets)
    specs = [v.record.spec for v in views]
    full = [f"{target}: {s.get('algorithm')} by {s.get('score')}" for target, s in zip(targets, specs, strict=True)]
    return [n if full.count(n) == 1 else f"{n}, {v.record.id}" for n, v in zip(full, views, strict=True)]


def measure(
    planned: TransferOfRuns,
    measured: Sequence[Cell] = (),
    keep: Callable[[Cell], None] | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> list[Cell]:
    """All cells of a transfer; ``keep`` gets each new one. Refuses a model that is no longer the runs'."""

    def opened(target: str) -> Context:
        context = planned.spec.open(target, Path())
        expected = planned.digests.get(target)
        if expected is not None and context.clf.filled(None).digest != expected:
            raise ModelError(
                f"'{context.clf.name}' does not hold the weights that its run was started with, so its mask does not "
                "belong to it. Start a new run.",
                code="source-changed",
            )
        return context

    cells = list(measured)
    for cell in planned.spec.cells(opened, measured=measured, progress=progress, cancel=cancel):
        cells.append(cell)
        if keep is not None:
            keep(cell)
    return cells


HELP = (
    f'JSON file: {SHAPE}. A target of your own files also has "text_columns": ["a", "b"] and "label_column": "y"; '
    '"label_order", "revision", "train_limit" and "dev_limit" are possible, too. "random" is the number of random '
    "masks of each size next to them; without retraining 5, with it 1 for each seed"
)
OPTIONS = (
    Option("out", help="JSON lines, one per cell, written as they come; an existing file is continued", metavar="FILE"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("spec", metavar="SPEC", help=HELP)
    add_options(parser, OPTIONS)


def run(args: argparse.Namespace) -> dict[str, Any]:
    from .transfer import check_masks

    place = outside_path(args.spec, "the spec")
    spec = TransferSpec.read(place)
    out = None if args.out is None else out_file(args.out, "cells.jsonl")
    contexts = {name: spec.open(name, place.parent) for name in spec.targets}  # all mistakes before any work
    masks = spec.masks_on(next(iter(contexts.values())))
    check_masks(masks, contexts, spec.seeds if spec.retrain else (), spec.random)
    cells, line_break = _earlier(out)
    _check_cells(cells, out, spec, masks, contexts)
    with progress_bar("transferring") as progress:
        for cell in spec.cells(contexts.__getitem__, measured=cells, progress=progress):
            cells.append(cell)
            if out is not None:
                with disk_errors(out), open(out, "a", encoding="utf-8") as file:
                    file.write(line_break + line_of(cell) + "\n")
                line_break = ""
    result = matrix(cells, metrics={name: context.dev.task.metrics[0] for name, context in contexts.items()})
    summary = {"finding": finding(result), "universal": result.universal()}
    return {**result.to_dict(), **summary, "cells": [c.to_dict() for c in cells]}


def show(result: dict[str, Any]) -> str:
    rows = [["mask of ↓, model of →", *result["targets"]]]
    rows.append(["every head on", *(fixed(v, 3) for v in result["full"])])
    for source, means, sds in zip(result["sources"], result["mean"], result["sd"], strict=True):
        rows.append([source, *map(_spread, means, sds)])
    for share in dict.fromkeys(e["sparsity"] for e in result["random"]):
        by_target = {e["target"]: (e["value"], e["sd"]) for e in result["random"] if e["sparsity"] == share}
        spreads = [_spread(*by_target.get(target, (None, None))) for target in result["targets"]]
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


def _spread(mean: float | None, sd: float | None) -> str:
    return fixed(mean, 3) + ("" if sd is None else f" ± {sd:.3f}")


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


def _earlier(out: Path | None) -> tuple[list[Cell], str]:
    """Cells of an earlier, interrupted call, and the line break that it left out behind a broken line."""
    if out is None or not out.exists():
        return [], ""
    try:
        text = out.read_text(encoding="utf-8")
        return cells_of(text, str(out)), "\n" if text and not text.endswith("\n") else ""
    except (OSError, ValueError, OptionError) as error:
        raise OptionError(
            f"'{out}' is there and was not written by this command, so it stays as it is. Choose another file."
        ) from error


def _check_cells(
    cells: Sequence[Cell],
    out: Path | None,
    spec: TransferSpec,
    masks: Mapping[str, HeadMask],
    contexts: Mapping[str, Context],
) -> None:
    """Refuse cells of another transfer: the file is not written to."""
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
        if not cell.subject:
            continue
        place = cell.target, cell.seed
        if place not in subjects:
            subjects[place] = spec.subject(contexts[cell.target], *place)
        if cell.subject != subjects[place]:
            raise OptionError(
                f"'{out}' holds cells of '{cell.target}' with another model, other data or another training. "
                "Choose another file."
            )
