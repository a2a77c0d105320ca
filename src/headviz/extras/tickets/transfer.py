"""Transfer of masks: masks that were found on one task, applied to the models of others.

Without retraining a cell is the target's fine-tuned model under the source's mask. With retraining the target's
pre-trained model is pruned by the source's mask and fine-tuned on the target, once per seed; it may then be a
*matching* subnetwork by the criterion of ``winning``. A mask that matches on several tasks is *universal*.

Random masks of as many heads are measured on every target as well: a mask that does no better than those has not
transferred. ``transfer_matrix`` makes the table of the cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...answers.metrics import remark
from ...errors import MaskError
from ...evaluation.dispatch import gold_answers
from ...heads import HeadMask
from ...models.pruning import never_empty, prune, require_prunable
from ...progress import tracked
from ...pruning.check import check_base
from ...pruning.finetuning import fine_tune
from ...pruning.judging import Judge, judge_of
from ...pruning.options import FinetuneOptions
from ...storage.store import make_key
from .transfer_matrix import Cell, PlannedCell, planned_cells

if TYPE_CHECKING:
    from ...models.classifier import Classifier
    from ...progress import Cancel
    from ...pruning.context import Context
    from ...pruning.judging import Evaluated
    from ...tasks import Dataset


def transfer_cells(
    masks: Mapping[str, HeadMask],
    targets: Mapping[str, Context],
    *,
    retrain: bool = False,
    seeds: Sequence[int] = (0,),
    random: int | None = None,
    options: FinetuneOptions | None = None,
    label_orders: Mapping[str, Sequence[str] | None] | None = None,
    measured: Sequence[Cell] = (),
    cancel: Cancel | None = None,
) -> Iterator[Cell]:
    """Yield the cells one by one, except those in ``measured``.

    A target is trained with ``options``, else its base model's recipe, else the thesis's. ``label_orders`` gives, by
    target, the classes in the order of the model's outputs, where their names do not say it. ``random`` is how many
    random masks of each size stand next to them on every target, None = five, or one for each seed with ``retrain``.
    """
    check_masks(masks, targets, seeds if retrain else (), random)
    if retrain:
        for context in targets.values():
            check_base(context.clf, context.base(seeds[0]))
    keys = {cell.key for cell in measured}
    for target, context in targets.items():
        clf = context.clf
        present = HeadMask.full(clf.num_layers, clf.num_heads) if retrain else clf.present  # a base model has all
        cells = planned_cells(masks, (target,), present, retrain, seeds, random)
        judge = judge_of(context, (label_orders or {}).get(target))
        full: Evaluated | None = None
        for cell in tracked(cells, cancel=cancel):
            if cell.key in keys:
                continue
            subject = subject_of(context, judge.label_order, cell.seed, options)
            if cell.seed is not None:
                trained = _retrained(context, cell.mask, cell.seed, options, judge, cancel)
                yield _cell(cell, judge, trained, None, subject)
                continue
            if full is None:
                full = judge.evaluated(clf, None, cancel=cancel)
            evaluated = full if cell.mask == present else judge.evaluated(clf, cell.mask, cancel=cancel)
            yield _cell(cell, judge, evaluated, full, subject)


def subject_of(
    context: Context, label_order: Sequence[str] | None, seed: int | None, options: FinetuneOptions | None
) -> str:
    """Identifies what a cell is measured on: the target's model and data, and with a seed the training of its base."""

    def read_by(clf: Classifier, data: Dataset) -> list[Any]:
        order, _ = gold_answers(clf, data, label_order)
        prefix, *settings = (getattr(clf, name, None) for name in ("prefix", "generation", "languages"))  # translator's
        parts = [clf.digest, clf.tokenizer_digest, prefix, data.digest, None if order is None else order.tolist()]
        return parts + [value for value in settings if value]

    parts: dict[str, Any] = {"model": read_by(context.clf, context.dev)}
    if seed is not None:
        parts["base"] = read_by(context.base(seed), context.train)
        parts["options"] = _recipe(context, options).to_dict()
    return make_key("transfer", **parts)


def _recipe(context: Context, options: FinetuneOptions | None) -> FinetuneOptions:
    return options or context.recipe or FinetuneOptions()


def check_masks(
    masks: Mapping[str, HeadMask], targets: Mapping[str, Context], seeds: Sequence[int], random: int | None
) -> None:
    """Refuse masks of another grid than a target's and, for retraining with ``seeds``, masks that cannot be pruned."""
    for source, mask in masks.items():
        for target, context in targets.items():
            grid = (context.clf.num_layers, context.clf.num_heads)
            if (mask.num_layers, mask.num_heads) != grid:
                raise MaskError(
                    f"The mask of '{source}' is for {mask.num_layers}×{mask.num_heads} heads, "
                    f"but the model of '{target}' has {grid[0]}×{grid[1]}."
                )
    for target, context in targets.items() if seeds else ():
        clf = context.clf
        require_prunable(clf)
        full = HeadMask.full(clf.num_layers, clf.num_heads)
        for cell in planned_cells(masks, (target,), full, True, seeds, random):
            if never_empty(clf, cell.mask):
                owner, instead = f"The mask of '{cell.source}'", "Leave it out"
                if cell.draw is not None:
                    owner, instead = f"A mask of {len(cell.mask.off)} random heads", "Ask for none, random=0"
                raise MaskError(
                    f"{owner} leaves a layer of '{target}' without a head, and {clf.family.why_not_empty}. "
                    f"{instead}, or transfer without retraining."
                )


def _retrained(
    context: Context, mask: HeadMask, seed: int, options: FinetuneOptions | None, judge: Judge, cancel: Cancel | None
) -> Evaluated:
    """The answers of a network that was pruned before it was trained."""
    base, recipe = context.base(seed), _recipe(context, options)
    small = base if mask == base.present else prune(base, mask)
    trained = fine_tune(
        small, context.train, recipe, seed, dev=context.dev, label_order=judge.label_order, cancel=cancel
    )
    return judge.evaluated(trained.classifier, None, cancel=cancel)


def _cell(cell: PlannedCell, judge: Judge, evaluated: Evaluated, full: Evaluated | None, subject: str) -> Cell:
    """A cell's numbers; with ``full`` also the paired change."""
    measured = judge.measured(evaluated.answers, (full or evaluated).answers)
    name = next(iter(measured.metrics))
    change = measured.deltas.get(name, {}) if full is not None else {}
    constants = measured.constant or {}
    return Cell(
        cell.source,
        cell.target,
        cell.seed,
        measured.metrics[name],
        cell.mask.sparsity,
        **{end: change.get(end) for end in ("delta", "low", "high")},
        mask=cell.mask.hex,
        draw=cell.draw,
        p=change.get("p"),
        name=name,
        constant=constants.get(name),
        undefined=measured.undefined.get(name, ""),
        remark=remark(measured.predicted, constants.get("accuracy"), measured.metrics.get("accuracy")),
        subject=subject,
    )
