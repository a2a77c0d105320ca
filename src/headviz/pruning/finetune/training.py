"""Fine-tuning through transformers' Trainer: a classifier or translator, with all heads or pruned.

The caller's model is copied, never changed. A training with a folder writes checkpoints there and continues from the
last complete one; the result equals that of an uninterrupted training bit for bit. Trainer's checkpoints hold pickles:
they are read as tensors only (``weights_only``), and its pickled arguments are never read.
"""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ...answers.class_names import parse_order
from ...errors import OptionError, TaskError, seed_number
from ...evaluation.dispatch import check_gold, gold_answers
from ...evaluation.plain import gold_for, metrics_for
from ...models.as_described import without_wrappers
from ...models.classifier import NUM_TEXTS
from ...models.quiet import quiet
from ...storage.exchange import MaskLike
from ..options import FinetuneOptions
from ..state import Point
from .callbacks import Watch
from .checkpoints import claim, training_folder, whole_checkpoint
from .curve import Diverged, divergence, learning_curve
from .order import Rows
from .trainer import trainer_for

if TYPE_CHECKING:
    from ...models.classifier import Classifier
    from ...progress import Cancel, Progress
    from ...tasks import Dataset


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained classifier and its training."""

    classifier: Classifier
    curve: tuple[Point, ...]
    updates: int
    epochs: float  # fewer than asked for when stopped early
    best_epoch: float | None  # the epoch whose weights these are, where early stopping chose
    seconds: float


def fine_tune(
    clf: Classifier,
    train: Dataset,
    options: FinetuneOptions,
    seed: int = 0,
    *,
    mask: MaskLike | None = None,
    dev: Dataset | None = None,
    label_order: Sequence[str] | str | None = None,
    folder: str | Path | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
    curve: Callable[[tuple[Point, ...]], None] | None = None,
) -> Trained:
    """Train a copy of ``clf`` on ``train``. Equal inputs, seeds and thread counts give equal weights.

    First put a fresh head on a pre-trained encoder, with ``headviz.load(base, fresh_labels=…, seed=…)``. A translator
    learns the tokens of its references one after the other. ``dev`` is used for early stopping and for dev metrics
    per epoch only. ``progress`` counts updates; ``curve`` gets the learning curve so far, about once a second.

    ``mask`` switches heads off all through the training; they stay in the model, untrained, so evaluate it under the
    same mask. That is for comparisons: a pruned model has the same gradients, is faster and needs no mask afterwards.
    """
    start = time.perf_counter()
    seed_number(seed)
    require_trainable(clf, train, dev, options)
    mask = None if mask is None else clf.read(mask)
    order, gold = gold_answers(clf, train, label_order)
    rows = Rows(clf, train, gold)
    measured = None
    if dev is not None and order is not None and _measures(options):
        measured = Rows(clf, dev, gold_for(dev, order))
    with training_folder(folder) as place, _own_random_numbers(), quiet():
        claim(place, clf, train, options, seed, order, mask)
        model: Any = copy.deepcopy(clf.model)
        model.requires_grad_(True)
        if order is not None:
            setattr(model.config, NUM_TEXTS, 1 if train.pairs is None else 2)
        metrics = None if dev is None or order is None else lambda logits: metrics_for(dev, logits, order)
        saves = folder is not None or options.early_stopping is not None
        tell = None if curve is None else lambda history: curve(learning_curve(history, dev))
        watch = Watch(rows.order(options, seed), progress, cancel, saves, tell)
        checkpoint = whole_checkpoint(place)
        trainer = trainer_for(clf, model, rows, measured, metrics, options, seed, place, watch, checkpoint, mask)
        trainer.train(resume_from_checkpoint=checkpoint)
        without_wrappers(model)  # the weights are float32, and so is everything that is computed with them
        _without_cache_setting(model.config, clf.config)
        history, best = trainer.state.log_history, trainer.state.best_model_checkpoint
        updates, epochs = int(trainer.state.global_step), float(trainer.state.epoch or 0.0)
        per_epoch = updates / epochs if epochs else 0.0
    if not all(bool(torch.isfinite(p).all()) for p in model.parameters()):
        raise Diverged(divergence(updates, updates, options), learning_curve(history, dev))
    best_epoch = None if best is None else int(best.rsplit("-", 1)[1]) / per_epoch
    return Trained(
        replace(clf, model=model),
        learning_curve(history, dev),
        updates,
        epochs,
        best_epoch,
        time.perf_counter() - start,
    )


def head_labels(train: Dataset, label_order: Sequence[str] | str | None = None) -> tuple[str, ...]:
    """The names of a new head's outputs: the task's classes, in the user's order if there is one."""
    if not (names := tuple(train.label_names)):
        return ("value",)
    wanted = names if label_order is None else tuple(parse_order(label_order))
    return wanted if len(wanted) == len(names) else names  # class_order refuses a wrong order before training


def require_trainable(clf: Classifier, train: Dataset, dev: Dataset | None, options: FinetuneOptions) -> None:
    """A ``UserError`` if this training cannot begin."""
    check_gold(clf, train, "training needs them")
    if _measures(options):
        clf.check_classes(
            OptionError(
                "Dev metrics per epoch and early stopping are for classifiers: translating dev after each epoch takes "
                "longer than the epoch. Leave them out and measure the trained model."
            )
        )
    if len(train) < 1:
        raise TaskError("There is nothing to train on: the data set has no examples.")
    if options.early_stopping is not None and dev is None:
        raise OptionError("Early stopping needs a dev set to watch.")
    if options.precision == "float16" and clf.device.type != "cuda":
        raise OptionError(
            f"float16 training needs a CUDA device, and this is {clf.device}. Choose bfloat16 or float32."
        )
    if clf.dtype != torch.float32:
        raise OptionError(f"Weights are trained in float32, not {clf.dtype}. Load the model without a dtype.")


def _measures(options: FinetuneOptions) -> bool:
    return options.evaluate_epochs or options.early_stopping is not None


def _without_cache_setting(config: Any, before: Any) -> None:
    """Remove ``use_cache``, which Trainer adds to any config, where the family has no such setting.

    Loading drops it there, so the saved model would have another digest than the trained one.
    """
    if hasattr(config, "use_cache") and not hasattr(before, "use_cache"):
        del config.use_cache


@contextmanager
def _own_random_numbers() -> Iterator[None]:
    """Restore the caller's random number generators afterwards, because Trainer seeds all global ones."""
    python, numpy = random.getstate(), np.random.get_state()
    with torch.random.fork_rng():
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
