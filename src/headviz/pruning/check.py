"""The first state of a run, or a ``UserError`` that says why the plan cannot work. Nothing is written before that."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import numpy as np
import torch

from .. import __version__
from ..attention import transformers
from ..errors import ModelError, OptionError, TaskError
from ..evaluation.dispatch import check_fit, check_gold
from ..evaluation.plain import cut_off
from ..heads import HeadMask
from ..models.pruning import require_prunable
from ..progress import Cancel, PhaseProgress, of_phase
from ..scores.catalogue import PRESETS, SCORES, Score, check_fits
from ..tasks import chosen_on
from .algorithms import ALGORITHMS, NOTHING
from .finetuning import require_trainable
from .judging import judge_of
from .options import FinetuneOptions
from .plan import FULL, PruningPlan, beyond, cumulative, listed, remaining
from .removal import require_repairable
from .state import BUILD, State, Work
from .step import parts_of, require_score

if TYPE_CHECKING:
    from ..models.classifier import Classifier
    from ..tasks import Dataset, SampleReport
    from .context import Context


# what must be equal for a mask found on θ* to mean the same heads of θ0
SHAPE = (
    "model_type num_hidden_layers num_attention_heads hidden_size intermediate_size vocab_size decoder_layers "
    "num_decoder_layers encoder_ffn_dim decoder_ffn_dim"
).split()


def start(
    context: Context, plan: PruningPlan, progress: PhaseProgress | None = None, cancel: Cancel | None = None
) -> State:
    """Check the plan against its models and data, and evaluate θ* with all heads."""
    clf, algorithm = context.clf, ALGORITHMS[plan.algorithm]
    _check_model(clf, plan, context.train)
    steps = heads_off(plan, len(plan.rows(clf)), clf.num_heads)
    if _cuts(plan) and clf.family.why_not_empty and steps[-1] >= clf.num_heads and not plan.keep_per_layer:
        raise OptionError(
            f"A layer may lose all its heads in this plan, and {clf.family.why_not_empty}. "
            "Keep one head of each layer (--keep-per-layer 1, keep_per_layer=1).",
            options=("keep_per_layer",),
        )
    _check_data(context, plan)
    require_score(plan, context.score)
    options = None
    if algorithm.retrains:
        options = plan.finetune or context.recipe or FinetuneOptions()
        base = context.base(plan.seeds[0])
        check_base(clf, base)
        require_trainable(base, context.train, context.dev, options)
    notes = notes_of(context, plan)
    judge = judge_of(context, plan.label_order, plan.flops_length)
    result = judge.evaluated(clf, None, of_phase(progress, "evaluate"), cancel)
    full = HeadMask.full(clf.num_layers, clf.num_heads)
    reference = judge.record(result, full, Work(BUILD, plan.seeds[0], 0), 0.0, result.answers)
    return State(
        plan=plan.to_dict(),
        plan_digest=plan.digest,
        model_digest=context.digest("model", plan),
        base_digest=context.digest("base", plan) if algorithm.retrains else None,
        data_digest=context.digest("data", plan),
        num_layers=clf.num_layers,
        num_heads=clf.num_heads,
        labels=clf.classes or (),
        sizes=tuple(steps),
        finetune=None if options is None else options.to_dict(),
        versions=_versions(clf),
        reference=reference,
        notes=notes,
        score_parts=tuple(
            parts_of(plan, context.score, len(context.sample(plan, seed, plan.samples))) for seed in plan.seeds
        ),
        logits={reference.logits: result.answers},
    )


def heads_off(plan: PruningPlan, layers: int, heads: int) -> list[int]:
    """How many heads are off after each step; an ``OptionError`` if the plan does not fit the grid."""
    total = layers * heads
    if plan.sparsities is not None:
        return listed(total, plan.sparsities, plan.keep_per_layer, layers)
    rule = remaining if ALGORITHMS[plan.algorithm].of_remaining else cumulative
    return rule(total, plan.step, plan.until, plan.keep_per_layer, layers, plan.last_step)


def check_base(clf: Classifier, base: Classifier) -> None:
    """A ``ModelError`` if θ0 does not have θ*'s shape: its heads would not be those that were scored."""
    differ = []
    for name in SHAPE:
        mine, theirs = getattr(clf.config, name, None), getattr(base.config, name, None)
        if mine != theirs:
            differ.append(f"{name.replace('num_', '').replace('_', ' ')} {theirs} instead of {mine}")
    if differ:
        raise ModelError(
            f"The base model '{base.name}' does not have the shape of '{clf.name}': {', '.join(differ)}. "
            "Give the pre-trained model that the fine-tuned one was made from."
        )
    if not base.present.is_full:
        raise ModelError(f"The base model '{base.name}' has been pruned already. Give one with all its heads.")


def _check_model(clf: Classifier, plan: PruningPlan, train: Dataset) -> None:
    if not clf.present.is_full:
        raise ModelError(
            f"'{clf.name}' has been pruned already: {len(clf.present.off)} of its heads are gone. "
            "Start from the model with all its heads."
        )
    if _cuts(plan):
        require_prunable(clf)
    require_repairable(clf, plan.repair, data=train)


def _cuts(plan: PruningPlan) -> bool:
    """Whether the run goes on with really pruned models, not only with masks."""
    return ALGORITHMS[plan.algorithm].retrains or plan.repair != NOTHING


def _check_data(context: Context, plan: PruningPlan) -> None:
    clf, task = context.clf, context.dev.task
    for data in (context.train, context.dev, context.pool or context.train):
        check_gold(clf, data, "pruning needs them")
        check_fit(clf, data, plan.label_order)
    score = _score_of(context, plan)
    if score is not None and not ALGORITHMS[plan.algorithm].only_score:
        check_fits(score, clf.answer)
    if plan.label_order is not None:
        clf.check_classes(OptionError("A translation has no classes: leave label_order out."))
    if plan.score_source != "fine-tuned":
        clf.check_classes(OptionError("Masked-language scores are for encoders; a translation model has no such head."))
    classes = clf.classes or ()
    if task.label_names and plan.label_order is None and len(classes) != len(task.label_names):
        raise TaskError(
            f"Task '{task.name}' has {len(task.label_names)} labels ({', '.join(task.label_names)}), but "
            f"'{clf.name}' has {len(classes)} ({', '.join(classes)}). Choose a model that was fine-tuned on "
            "this task, or say which output means what (--label-order, label_order=)."
        )


def _score_of(context: Context, plan: PruningPlan) -> Score | None:
    """The score that the plan names; None where it is not one of the catalogue."""
    name = PRESETS[plan.score].score if plan.score in PRESETS else plan.score
    return SCORES[name] if name in SCORES and context.score is None else None


def scored_on(context: Context, plan: PruningPlan) -> tuple[Dataset, ...]:
    """What the heads are scored on, of each seed; nothing for a score that needs no examples."""
    score = _score_of(context, plan)
    if score is not None and score.without_examples:
        return ()
    return tuple(context.sample(plan, seed, plan.samples) for seed in plan.seeds)


def notes_of(context: Context, plan: PruningPlan) -> tuple[str, ...]:
    """Notes for the user about the steps and the scoring samples."""
    rows, heads = len(plan.rows(context.clf)), context.clf.num_heads
    by_steps = plan.sparsities is None and plan.last_step == FULL
    notes = beyond(rows * heads, heads_off(plan, rows, heads), plan.until) if by_steps else []
    drawn = scored_on(context, plan)
    remarks = (_share_note(data.report, plan, seed) for seed, data in zip(plan.seeds, drawn, strict=bool(drawn)))
    notes += dict.fromkeys(note for note in remarks if note)  # what is not about a seed stands once
    notes += context.dev.answer.notes(context.dev)
    if cut := context.reuse("cut off", context.dev.digest, lambda: cut_off(context.clf, context.dev)):
        notes.append(f"of {len(context.dev):,} dev texts, {cut}")
    if shared := chosen_on(context.train, context.dev):
        notes.append(shared)
    return (*context.train.notes, *context.dev.notes, *notes)


def _share_note(report: SampleReport | None, plan: PruningPlan, seed: int) -> str:
    """The note about a sample without equal shares: with advice if the user chose its size, without if not."""
    if report is None or not report.short:
        return ""
    even = min(report.available.values()) * len(report.available)
    if plan.samples == PruningPlan.samples:
        shares = ", ".join(f"{k} {n:,}" for k, n in report.per_class.items())
        return f"Scores are measured on {report.drawn:,} examples: {shares}; equal shares would take {even:,} of them."
    lacking = ", ".join(f"{k} has {report.per_class[k]} of {report.wanted[k]}" for k in report.short)
    return (
        f"The scoring sample of seed {seed} is not balanced: {lacking}. Ask for fewer samples ({even} can be balanced)."
    )


def _versions(clf: Classifier) -> dict[str, str]:
    return {
        "headviz": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "numpy": np.__version__,
        "threads": str(torch.get_num_threads()),
        "device": str(clf.device),
    }
