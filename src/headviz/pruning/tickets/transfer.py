"""Transfer of masks: masks that were found on one task, applied to the models of others.

Without retraining a cell is the target's fine-tuned model under the source's mask. With retraining the target's
pre-trained model is pruned by the source's mask and fine-tuned on the target, once per seed; it may then be a
*matching* subnetwork by the criterion of ``winning``. A mask that matches on several tasks is *universal*.
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
    """One number of the matrix, of one seed if it was retrained."""

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
    """Yield the cells one by one, except those in ``known``.

    A target is trained with ``options``, else its base model's recipe, else the thesis's. ``label_orders`` gives, by
    target, the classes in the order of the model's outputs, where their names do not say it.
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
        context, order = targets[target], (label_orders or {}).get(target)
        clf, dev = context.clf, context.dev
        mask = masks[source] if source else HeadMask.full(clf.num_layers, clf.num_heads)
        tell = of_phase(progress, f"{number}/{len(wanted)}")
        if seed is None:
            yield _as_it_is(context, mask, source, target, order, tell, cancel)
            continue
        base, recipe = context.base(seed), options or context.recipe or FinetuneOptions()
        small = base if mask.is_full else prune(base, mask)
        trained = fine_tune(
            small, context.train, recipe, seed, dev=dev, label_order=order, progress=tell, cancel=cancel
        )
        metrics = evaluate(trained.classifier, dev, label_order=order, cancel=cancel).metrics
        yield Cell(source, target, seed, none(next(iter(metrics.values()))), mask.sparsity, mask=mask.hex)


def _as_it_is(
    context: Context,
    mask: HeadMask,
    source: str,
    target: str,
    order: Sequence[str] | None,
    progress: Progress | None,
    cancel: Cancel | None,
) -> Cell:
    """A cell without retraining, compared with the same model with every head."""
    clf, dev = context.clf, context.dev
    full = masked = evaluate(clf, dev, label_order=order, cancel=cancel)
    if not mask.is_full:
        masked = evaluate(clf, dev, mask, label_order=order, progress=progress, cancel=cancel)
    found = measured(dev, class_order(clf, dev, order), masked.metrics, masked.logits, full.logits)
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
