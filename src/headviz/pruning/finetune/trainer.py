"""Transformers' Trainer with our options: optimizer, schedule, loss and dev metrics."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ...models.in_place import masked
from ..options import FinetuneOptions
from .callbacks import Patience, Watch
from .curve import Diverged, divergence, learning_curve
from .order import Rows

if TYPE_CHECKING:
    from ...heads import HeadMask
    from ...models.classifier import Classifier

# our schedule -> transformers' name; all begin with the warm-up
SCHEDULERS = {
    "linear": "linear",
    "cosine": "cosine",
    "constant": "constant_with_warmup",
    "plateau": "warmup_stable_decay",
}


def trainer_for(
    clf: Classifier,
    model: Any,
    rows: Rows,
    dev: Rows | None,
    metrics: Any,
    options: FinetuneOptions,
    seed: int,
    place: Path,
    watch: Watch,
    checkpoint: str | None,
    mask: HeadMask | None = None,
) -> Any:
    from ...attention import transformers

    trained = model  # as it is, whatever Trainer wraps around it

    class _Trainer(transformers.Trainer):
        def _get_train_sampler(self, train_dataset: Any = None) -> Any:
            return watch.order

        def compute_loss(
            self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
        ) -> Any:
            labels = inputs.pop("labels")
            with nullcontext() if mask is None else masked(trained, mask):
                logits = model(**inputs, **clf.training_options).logits
            loss = clf.loss(logits.float(), labels)
            if model.training and not bool(torch.isfinite(loss)):
                step, total = int(self.state.global_step), int(self.state.max_steps)
                raise Diverged(divergence(step, total, options), learning_curve(self.state.log_history, None))
            return (loss, {"logits": logits}) if return_outputs else loss

        def evaluate(self, *args: Any, **how: Any) -> Any:
            # its data loader draws a seed, which would change the dropout of all updates that follow
            with torch.random.fork_rng([clf.device] if clf.device.type == "cuda" else []):
                return super().evaluate(*args, **how)

    def collate(batch: list[tuple[Any, Any]]) -> dict[str, torch.Tensor]:
        return clf.labelled([e for e, _ in batch], [y for _, y in batch])

    def part(share: float) -> int:
        return int(np.ceil(share * updates_of(options, len(rows))))

    patience = None if options.early_stopping is None else Patience(options.early_stopping)
    stopping = patience is not None
    by_epoch = options.checkpoint_steps is None or stopping
    ended = patience.ended(checkpoint) if patience and checkpoint else None
    arguments = transformers.TrainingArguments(
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
        lr_scheduler_kwargs={"num_decay_steps": part(options.fall)} if options.schedule == "plateau" else None,
        warmup_steps=part(options.warmup),
        max_grad_norm=options.max_grad_norm,
        bf16=options.precision == "bfloat16",
        fp16=options.precision == "float16",
        use_cpu=clf.device.type == "cpu",
        seed=seed,
        # the loss of every update, because averages would change when a training is resumed
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
    # transformers assumes that any model with **kwargs averages over accumulated batches itself
    trainer.model_accepts_loss_kwargs = False
    trainer.remove_callback(transformers.PrinterCallback)
    return trainer


def _measure(metrics: Any) -> Any:
    def measure(result: Any) -> dict[str, float]:
        found = metrics(np.asarray(result.predictions, dtype=np.float32))
        primary = next(iter(found.values()))
        # an undefined metric (all predictions equal) must not count as the best
        return {**found, "primary": primary if primary == primary else -1.0}

    return measure


def updates_of(options: FinetuneOptions, examples: int) -> int:
    """How many updates a training takes."""
    batches = -(-examples // options.batch)
    return int(np.ceil(options.epochs * max(1, -(-batches // options.accumulation))))
