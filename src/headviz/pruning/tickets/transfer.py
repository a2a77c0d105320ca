"""Masks found on one task, given to the models of others: the transfer matrix, and universal tickets from it.

Without retraining a cell is the target's fine-tuned model under the source's mask. With it, the target's pre-trained
model is pruned by the source's mask and fine-tuned on the target, once per seed, and is a *matching* subnetwork by the
criterion of ``tickets``; a mask that matches on several tasks is *universal*.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ...errors import MaskError
from ...evaluation.dispatch import evaluate
from ...evaluation.plain import class_order
from ...heads import HeadMask
from ...models.pruning import prune
from ...progress import of_phase, tracked
from ...results import Result
from ..check import check_base
from ..finetune.training import fine_tune
from ..measure import measured, none
from ..options import FinetuneOptions
from .margin import MARGIN
from .winning import Ticket, mean_and_sd, ticket, universal

if TYPE_CHECKING:
    from ...progress import Cancel, PhaseProgress, Progress
    from ..context import Context

FULL = ""  # the source of cells with every head on


@dataclass(frozen=True)
class Cell(Result):
    """One number of the matrix, or one seed's share of it."""

    source: str  # whose mask; empty = every head on
    target: str  # whose model and data
    seed: int | None  # None = not retrained
    metric: float | None
    sparsity: float = 0.0
    delta: float | None = None  # against the target's fine-tuned model with every head, paired
    low: float | None = None
    high: float | None = None
    mask: str = ""  # hexadecimal

    @property
    def key(self) -> tuple[str, str, int | None]:
        return self.source, self.target, self.seed


@dataclass(frozen=True, eq=False)
class Matrix(Result):
    """Rows = sources, columns = targets; NaN = not measured."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    mean: np.ndarray
    sd: np.ndarray
    full: np.ndarray  # of each target, every head on
    tickets: dict[str, dict[str, Ticket]]  # source -> target; retrained cells of several seeds only

    def universal(self) -> dict[str, tuple[str, ...]]:
        """For each source the targets on which its mask matches."""
        return {source: universal(found) for source, found in self.tickets.items()}


def transfer(
    masks: Mapping[str, HeadMask],
    targets: Mapping[str, Context],
    *,
    retrain: bool = False,
    seeds: Sequence[int] = (0,),
    options: FinetuneOptions | None = None,
    label_orders: Mapping[str, Sequence[str] | None] | None = None,
    known: Sequence[Cell] = (),
    progress: PhaseProgress | None = None,
    cancel: Cancel | None = None,
) -> Iterator[Cell]:
    """Yield every cell, one at a time; those already ``known`` are not computed again.

    A target's training options are ``options``, else its base model's recipe, else the thesis's; ``label_orders``
    gives, by target, its classes in the order of the model's outputs, where their names do not tell.
    """
    for source, mask in masks.items():
        for target, context in targets.items():
            grid = (context.clf.num_layers, context.clf.num_heads)
            if (mask.num_layers, mask.num_heads) != grid:
                raise MaskError(
                    f"The mask of '{source}' is for {mask.num_layers}×{mask.num_heads} heads, "
                    f"but the model of '{target}' has {grid[0]}×{grid[1]}."
                )
    if retrain:
        for context in targets.values():
            check_base(context.clf, context.base(seeds[0]))
    there = {cell.key for cell in known}
    wanted = [
        (source, target, seed)
        for target in targets
        for source in (FULL, *masks)
        for seed in (seeds if retrain else (None,))
    ]
    for number, (source, target, seed) in enumerate(tracked(wanted, cancel=cancel), 1):
        if (source, target, seed) in there:
            continue
        context = targets[target]
        mask = masks[source] if source else HeadMask.full(context.clf.num_layers, context.clf.num_heads)
        tell = of_phase(progress, f"{number}/{len(wanted)}")
        order = (label_orders or {}).get(target)
        yield _cell(context, mask, source, target, seed, options, order, tell, cancel)


def _cell(
    context: Context,
    mask: HeadMask,
    source: str,
    target: str,
    seed: int | None,
    options: FinetuneOptions | None,
    order: Sequence[str] | None,
    progress: Progress | None,
    cancel: Cancel | None,
) -> Cell:
    if seed is not None:
        base = context.base(seed)
        trained = fine_tune(
            base if mask.is_full else prune(base, mask),
            context.train,
            options or context.recipe or FinetuneOptions(),
            seed,
            dev=context.dev,
            label_order=order,
            progress=progress,
            cancel=cancel,
        )
        metrics = evaluate(trained.classifier, context.dev, label_order=order, cancel=cancel).metrics
        return Cell(source, target, seed, none(next(iter(metrics.values()))), mask.sparsity, mask=mask.hex)
    clf, dev = context.clf, context.dev
    full = masked = evaluate(clf, dev, label_order=order, cancel=cancel)
    if not mask.is_full:
        masked = evaluate(clf, dev, mask, label_order=order, progress=progress, cancel=cancel)
    found = measured(dev, class_order(clf, dev, order), masked, full.logits)
    name = next(iter(found.metrics))
    delta = found.deltas.get(name, {})
    ends = {end: delta.get(end) for end in ("delta", "low", "high")}
    return Cell(source, target, None, found.metrics[name], mask.sparsity, **ends, mask=mask.hex)


def matrix(cells: Sequence[Cell], margin: float = MARGIN, metrics: Mapping[str, str] | None = None) -> Matrix:
    """The table of some cells; with several seeds also the criterion of tickets and a test with a margin in points.

    ``metrics`` names the metric of each target, where one comes in points of its own (BLEU).
    """
    sources = tuple(dict.fromkeys(c.source for c in cells if c.source != FULL))
    targets = tuple(dict.fromkeys(c.target for c in cells))
    mean = np.full((len(sources), len(targets)), np.nan)
    sd, full = mean.copy(), np.full(len(targets), np.nan)
    won: dict[str, dict[str, Ticket]] = {source: {} for source in sources}

    def values(source: str, target: str) -> dict[int | None, float]:
        return {c.seed: c.metric for c in cells if (c.source, c.target) == (source, target) and c.metric is not None}

    retrained = any(c.seed is not None for c in cells)
    for j, target in enumerate(targets):
        metric = (metrics or {}).get(target, "accuracy")
        whole = values(FULL, target)
        if whole:
            full[j] = np.mean(list(whole.values()))
        for i, source in enumerate(sources):
            own = values(source, target)
            if not own:
                continue
            mean[i, j], spread = mean_and_sd(list(own.values()))
            sd[i, j] = np.nan if spread is None else spread
            if retrained and whole:
                share = next(c.sparsity for c in cells if (c.source, c.target) == (source, target))
                found = ticket(share, list(whole.values()), list(own.values()), margin, metric)
                paired = list(whole) == list(own)
                won[source][target] = found if paired else replace(found, within=None)
    return Matrix(sources, targets, mean, sd, full, won)
