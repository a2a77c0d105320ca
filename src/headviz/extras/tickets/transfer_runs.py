"""Finished pruning runs as a transfer: the masks of all at one share of heads off, on the models and data of all."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import ModelError
from ...pruning.plan import PruningPlan
from ...runs.record import PRUNE
from .transfer_spec import TransferSpec

if TYPE_CHECKING:
    from ...progress import Cancel, Progress
    from ...pruning.context import Context
    from ...runs.reading import RunView
    from .transfer import Cell

# options of a run's plan that say what its masks are measured on
_PLACE = (
    "model revision device task data text_columns label_column label_order dev_split dev_limit stack prefix languages "
    "ablation reference"
).split()
# those that say how its networks are trained
_TRAINING = "base base_revision train_split train_limit initialisation".split()


@dataclass(frozen=True)
class Planned:
    """A transfer of some runs. ``own`` says which target each mask was found on; ``digests`` are of their models."""

    spec: TransferSpec
    own: Mapping[str, str]
    digests: Mapping[str, str | None]


def able(views: Sequence[RunView]) -> list[RunView]:
    """The finished pruning runs among these and among the runs of sweeps."""
    flat = [one for view in views for one in (view.children or (view,))]
    return [v for v in flat if v.record.kind == PRUNE and v.state == "done" and v.steps]


def masks_of(view: RunView) -> dict[float, str]:
    """The masks of a run's first seed by their share of heads off."""
    first = view.steps[0].get("seed")
    return {round(s["sparsity"], 9): s["mask"] for s in view.steps if s.get("seed") == first}


def alike(views: Sequence[RunView], to: RunView) -> list[RunView]:
    """Those whose masks have as many heads as this run's; grids of another shape are refused once they are known."""

    def digits(view: RunView) -> int:
        return len(view.steps[0]["mask"])

    return [v for v in views if digits(v) == digits(to)]


def shares_of(views: Sequence[RunView]) -> list[float]:
    """The shares of heads off at which all of them have a mask."""
    return sorted(set.intersection(*(set(masks_of(v)) for v in views))) if views else []


def plan_of(
    views: Sequence[RunView],
    share: float,
    *,
    retrain: bool = False,
    seeds: Sequence[int] = (0,),
    random: int | None = None,
) -> Planned:
    """The masks of these runs at this share, on the models and data of all of them; equal ones are one target."""
    places = [_place(v.record.spec, retrain) for v in views]
    different = [p for i, p in enumerate(places) if p not in places[:i]]
    names = _names(different)
    targets = dict(zip(names, different, strict=True))
    found_on = [names[different.index(place)] for place in places]
    sources = _sources(views, found_on)
    masks = {source: masks_of(v)[share] for source, v in zip(sources, views, strict=True)}
    digests = {name: (v.record.spec.get("digests") or {}).get("model") for name, v in zip(found_on, views, strict=True)}
    spec = TransferSpec(masks, targets, retrain=retrain, seeds=tuple(seeds), random=random)
    return Planned(spec, dict(zip(sources, found_on, strict=True)), digests)


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


def _sources(views: Sequence[RunView], found_on: Sequence[str]) -> list[str]:
    """A name for each mask: its target's, with the score and the run's id where several are of one target."""
    if len(set(found_on)) == len(found_on):
        return list(found_on)
    specs = [v.record.spec for v in views]
    full = [f"{name}: {s.get('algorithm')} by {s.get('score')}" for name, s in zip(found_on, specs, strict=True)]
    return [n if full.count(n) == 1 else f"{n}, {v.record.id}" for n, v in zip(full, views, strict=True)]


def measure(
    planned: Planned,
    known: Sequence[Cell] = (),
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

    cells = list(known)
    for cell in planned.spec.cells(opened, known=known, each=progress, cancel=cancel):
        cells.append(cell)
        if keep is not None:
            keep(cell)
    return cells
