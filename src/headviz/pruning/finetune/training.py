"""Fine-tuning through transformers' Trainer: a classifier or translator with all heads, or a really pruned one.

The caller's model is copied, never trained in place. A training with a folder writes checkpoints there and continues
from the last whole one; the result is bit for bit that of an uninterrupted training. Trainer's checkpoints hold
pickles: they are read back as tensors only (``weights_only``), and its pickled arguments are never read.
"""

from __future__ import annotations

import copy
import hashlib
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ...attribution.inputs import NUM_TEXTS
from ...errors import OptionError, TaskError, UserError
from ...evaluation.plain import class_order, encode_data, gold_for, metrics_for
from ...evaluation.translation import require_translation
from ...models.base import TRANSLATION
from ...models.quiet import quiet
from ...tasks.labels import parse_order
from ..options import FinetuneOptions, seed_number
from ..state import Point
from .callbacks import WHOLE, Patience, Watch

if TYPE_CHECKING:
    from ...evaluation.plain import Cancel, Progress
    from ...models.classifier import Classifier
    from ...tasks import Dataset

CURVE_POINTS = 100
FINGERPRINT = "training.json"
# our schedule -> transformers' name; all rise over the warm-up first
SCHEDULERS = {
    "linear": "linear",
    "cosine": "cosine",
    "constant": "constant_with_warmup",
    "plateau": "warmup_stable_decay",
}


class Diverged(UserError):
    """A training whose loss is no longer a number. ``curve`` holds what was measured before."""

    def __init__(self, text: str, curve: tuple[Point, ...]) -> None:
        super().__init__(text)
        self.curve = curve


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained classifier and how it came about."""

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
    dev: Dataset | None = None,
    label_order: Sequence[str] | str | None = None,
    folder: str | Path | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
    curve: Callable[[tuple[Point, ...]], None] | None = None,
) -> Trained:
    """Train a copy of ``clf`` on ``train``. Equal inputs, seeds and thread counts give equal weights.

    A translator learns to give its references' tokens, each after those before it.
    Put a fresh head on a pre-trained encoder with ``headviz.load(base, fresh_labels=…, seed=…)`` first. ``dev`` is
    needed for early stopping and for dev metrics per epoch, and for nothing else. ``progress`` counts updates;
    ``curve`` is told about once a second what the learning curve looks like so far.
    Do not use it to train under a mask: prune first.
    """
    start = time.perf_counter()
    seed_number(seed)
    require_trainable(clf, train, dev, options)
    texts = train.is_translation
    order = None if texts else class_order(clf, train, label_order)
    rows = _Rows(clf, train, None if order is None else gold_for(train, order))
    measured = None
    if dev is not None and order is not None and _measures(options):
        measured = _Rows(clf, dev, gold_for(dev, order))
    with _folder(folder) as place, _own_random_numbers(), quiet():
        _claim(place, clf, train, options, seed)
        model: Any = copy.deepcopy(clf.model)
        model.requires_grad_(True)
        if not texts:
            setattr(model.config, NUM_TEXTS, 1 if train.pairs is None else 2)
        metrics = None if dev is None or order is None else lambda logits: metrics_for(dev, logits, order)
        saves = folder is not None or options.early_stopping is not None
        tell = None if curve is None else lambda history: curve(learning_curve(history, dev))
        watch = Watch(rows.order(options, seed), progress, cancel, saves, tell)
        checkpoint = _whole_checkpoint(place)
        trainer = _trainer(clf, model, rows, measured, metrics, options, seed, place, watch, checkpoint)
        trainer.train(resume_from_checkpoint=checkpoint)
        history, best = trainer.state.log_history, trainer.state.best_model_checkpoint
        updates, epochs = int(trainer.state.global_step), float(trainer.state.epoch or 0.0)
        per_epoch = updates / epochs if epochs else 0.0
    if not all(bool(torch.isfinite(p).all()) for p in model.parameters()):
        raise Diverged(_divergence(updates, updates, options), learning_curve(history, dev))
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
    """The names of a new head's outputs: the task's classes, in the order that the user wants them in."""
    if train.is_regression:
        return ("value",)
    names = tuple(train.label_names)
    wanted = names if label_order is None else tuple(parse_order(label_order))
    return wanted if len(wanted) == len(names) else names  # what is wrong with it is told before training


def require_trainable(clf: Classifier, train: Dataset, dev: Dataset | None, options: FinetuneOptions) -> None:
    """One clear line if this training cannot begin."""
    if train.is_translation or clf.kind == TRANSLATION:
        _require_sentences(clf, train, options)
    elif train.labels is None:
        raise TaskError(
            "These examples carry no gold labels, and training needs them. Name the label column."
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


def _require_sentences(clf: Classifier, train: Dataset, options: FinetuneOptions) -> None:
    require_translation(clf, train)
    if train.pairs is None:
        raise TaskError("These sentences carry no references, and training needs them. Name their column.")
    if _measures(options):
        raise OptionError(
            "Dev metrics per epoch and early stopping are for classifiers: translating dev after each epoch takes "
            "longer than the epoch. Leave them out and measure the trained model."
        )


def _measures(options: FinetuneOptions) -> bool:
    return options.evaluate_epochs or options.early_stopping is not None


class _Rows(torch.utils.data.Dataset):
    """Token ids and labels of a data set, in its order."""

    def __init__(self, clf: Classifier, data: Dataset, gold: np.ndarray | None) -> None:
        self.encodings = encode_data(clf, data)
        self.gold = gold

    def __len__(self) -> int:
        return len(self.encodings)

    def __getitem__(self, i: int) -> tuple[Any, Any]:
        return self.encodings[i], None if self.gold is None else self.gold[i].item()

    def order(self, options: FinetuneOptions, seed: int) -> Order:
        lengths = [len(e) for e in self.encodings]
        return Order(lengths, options.batch * options.accumulation, seed, options.group_lengths)


class Order(torch.utils.data.Sampler):
    """The order of one epoch, a function of seed and epoch alone, so that a resumed epoch is the same one.

    With ``group``, texts of similar length share a batch: within every 50 batches drawn at random the texts are
    sorted by length, and the batches then shuffled.
    """

    def __init__(self, lengths: list[int], batch: int, seed: int, group: bool) -> None:
        self.lengths, self.batch, self.seed, self.group = lengths, batch, seed, group
        self.epoch = 0

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[int]:
        draw = random.Random(f"headviz-order-{self.seed}-{self.epoch}")
        order = list(range(len(self.lengths)))
        draw.shuffle(order)
        if not self.group:
            return iter(order)
        size = 50 * self.batch
        batches: list[list[int]] = []
        for at in range(0, len(order), size):
            part = sorted(order[at : at + size], key=lambda i: self.lengths[i])
            batches += [part[i : i + self.batch] for i in range(0, len(part), self.batch)]
        # the short rest must come last, or it would shift the borders of every batch after it
        rest = [b for b in batches if len(b) < self.batch]
        whole = [b for b in batches if len(b) == self.batch]
        draw.shuffle(whole)
        return iter([i for b in (*whole, *rest) for i in b])


def _trainer(
    clf: Classifier,
    model: Any,
    rows: _Rows,
    dev: _Rows | None,
    metrics: Any,
    options: FinetuneOptions,
    seed: int,
    place: Path,
    watch: Watch,
    checkpoint: str | None,
) -> Any:
    from transformers import PrinterCallback, Trainer, TrainingArguments

    class _Trainer(Trainer):
        def _get_train_sampler(self, train_dataset: Any = None) -> Any:
            return watch.order

        def compute_loss(
            self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
        ) -> Any:
            labels = inputs.pop("labels")
            outputs = model(**inputs, **clf.training_options)
            loss = clf.loss(outputs.logits.float(), labels)
            if model.training and not bool(torch.isfinite(loss)):
                step, total = int(self.state.global_step), int(self.state.max_steps)
                raise Diverged(
                    _divergence(step, total, options), learning_curve(self.state.log_history, None)
                )
            return (loss, {"logits": outputs.logits}) if return_outputs else loss

    def collate(batch: list[tuple[Any, Any]]) -> dict[str, torch.Tensor]:
        return clf.labelled([e for e, _ in batch], [y for _, y in batch])

    patience = None if options.early_stopping is None else Patience(options.early_stopping)
    stopping = patience is not None
    by_epoch = options.checkpoint_steps is None or stopping
    ended = patience.ended(checkpoint) if patience and checkpoint else None
    arguments = TrainingArguments(
        output_dir=str(place),
        num_train_epochs=options.epochs if ended is None else ended,
        per_device_train_batch_size=options.batch,
        per_device_eval_batch_size=64,
        gradient_accumulation_steps=options.accumulation,
        learning_rate=options.learning_rate,
        optim="adamw_torch",
        adam_epsilon=options.epsilon,
        adam_beta2=options.beta2,
        weight_decay=options.weight_decay,
        lr_scheduler_type=SCHEDULERS[options.schedule],
        lr_scheduler_kwargs=_decay(options, len(rows)),
        warmup_steps=_warmup(options, len(rows)),
        max_grad_norm=options.max_grad_norm,
        bf16=options.precision == "bfloat16",
        fp16=options.precision == "float16",
        use_cpu=clf.device.type == "cpu",
        seed=seed,
        # every update's loss: averages over several would not survive a resumption unchanged
        logging_steps=1,
        logging_nan_inf_filter=False,
        eval_strategy="no" if dev is None else "epoch",
        save_strategy=("epoch" if by_epoch else "steps") if watch.saves else "no",
        save_steps=options.checkpoint_steps or 500,
        save_total_limit=2,
        load_best_model_at_end=stopping,
        metric_for_best_model="primary" if stopping else None,
        greater_is_better=True if stopping else None,
        dataloader_pin_memory=False,
        remove_unused_columns=False,
        report_to="none",
        disable_tqdm=True,
    )
    callbacks: list[Any] = [watch, *([patience] if patience else [])]
    trainer = _Trainer(
        model=model,
        args=arguments,
        data_collator=collate,
        train_dataset=rows,
        eval_dataset=dev,
        compute_metrics=_measure(metrics) if dev is not None else None,
        callbacks=callbacks,
    )
    # transformers takes any model with **kwargs for one that averages over accumulated batches itself
    trainer.model_accepts_loss_kwargs = False
    trainer.remove_callback(PrinterCallback)
    return trainer


def _measure(metrics: Any) -> Any:
    def measure(result: Any) -> dict[str, float]:
        found = metrics(np.asarray(result.predictions, dtype=np.float32))
        primary = next(iter(found.values()))
        # an undefined metric (one class only predicted) must not count as the best
        return {**found, "primary": primary if primary == primary else -1.0}

    return measure


def updates_of(options: FinetuneOptions, examples: int) -> int:
    """How many updates a training takes."""
    batches = -(-examples // options.batch)
    return int(np.ceil(options.epochs * max(1, -(-batches // options.accumulation))))


def _warmup(options: FinetuneOptions, examples: int) -> int:
    return int(np.ceil(options.warmup * updates_of(options, examples)))


def _decay(options: FinetuneOptions, examples: int) -> dict[str, int] | None:
    if options.schedule != "plateau":
        return None
    return {"num_decay_steps": int(np.ceil(options.fall * updates_of(options, examples)))}


def _divergence(step: int, total: int, options: FinetuneOptions) -> str:
    hint = "" if options.precision == "float32" else f", or train in float32 instead of {options.precision}"
    return (
        f"The training diverged: its loss is not a number any more at update {step} of {total}. "
        f"Lower the learning rate (it is {options.learning_rate:g}){hint}."
    )


def learning_curve(history: Sequence[dict[str, Any]], dev: Dataset | None) -> tuple[Point, ...]:
    """Training losses, averaged to at most 100 points, and the dev metrics of each epoch, by update."""
    losses = [h for h in history if "loss" in h]
    width = max(1, -(-len(losses) // CURVE_POINTS))
    points = []
    for i in range(0, len(losses), width):
        part = losses[i : i + width]
        mean = float(np.mean([h["loss"] for h in part]))
        last = part[-1]
        points.append(
            Point(int(last["step"]), float(last["epoch"]), _finite(mean), _finite(last.get("learning_rate")))
        )
    names = () if dev is None else dev.task.metrics
    for h in history:
        found = {name: _finite(h[f"eval_{name}"]) for name in names if f"eval_{name}" in h}
        if found:
            points.append(Point(int(h["step"]), float(h["epoch"]), metrics=found))
    return tuple(sorted(points, key=lambda p: (p.step, p.loss is None)))


def _finite(value: Any) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)


# folders and random numbers --------------------------------------------------------------------


@contextmanager
def _folder(folder: str | Path | None) -> Iterator[Path]:
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="headviz-training-") as temporary:
            yield Path(temporary)
        return
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    yield place


def _claim(place: Path, clf: Classifier, train: Dataset, options: FinetuneOptions, seed: int) -> None:
    """Refuse to continue somebody else's training."""
    mine = {
        "options": options.to_dict(),
        "seed": seed,
        "model": clf.digest,
        "data": hashlib.sha256(f"{train.digest}{clf.tokenizer_digest}".encode()).hexdigest(),
    }
    path = place / FINGERPRINT
    if path.exists():
        there = json.loads(path.read_text(encoding="utf-8"))
        if there != mine:
            changed = ", ".join(k for k in mine if there.get(k) != mine[k])
            raise OptionError(
                f"'{place}' holds checkpoints of another training (different {changed}). "
                "Remove the folder, or choose another, to start anew."
            )
        return
    part = path.with_suffix(".tmp")
    part.write_text(json.dumps(mine), encoding="utf-8")
    part.replace(path)


def _whole_checkpoint(place: Path) -> str | None:
    """The newest checkpoint that was written to its end; halves of others are left out."""
    found = [p.parent for p in place.glob(f"checkpoint-*/{WHOLE}")]
    newest = max(found, key=lambda p: int(p.name.rsplit("-", 1)[1]), default=None)
    return None if newest is None else str(newest)


@contextmanager
def _own_random_numbers() -> Iterator[None]:
    """Trainer seeds every global generator; the caller's go on as if nothing had happened."""
    python, numpy = random.getstate(), np.random.get_state()
    with torch.random.fork_rng():
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
