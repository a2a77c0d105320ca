"""Transformers' Trainer with our options: the order of an epoch, schedule, loss, a teacher, dev metrics, the curve."""

from __future__ import annotations

import copy
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch.nn.functional import mse_loss

from ..attention import transformers
from ..errors import UserError
from ..evaluation.plain import encode_data
from ..heads import ENCODER
from ..models.feed_forward import neurons
from ..models.in_place import masked
from ..progress import stop_if
from ..results import plain
from .options import IN_BATCH, FinetuneOptions
from .reconstruction import calls_of
from .state import Point
from .training_folder import seal

if TYPE_CHECKING:
    from ..heads import HeadMask
    from ..models.classifier import Classifier
    from ..progress import Cancel, Progress
    from ..tasks import Dataset

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
    mask: HeadMask | None,
    teacher: Teacher | None,
) -> Any:
    trained = model  # as it is, whatever Trainer wraps around it
    imitation = None if teacher is None else Imitation(teacher, clf, model)

    def losses(model: Any, inputs: Any, labels: Any) -> tuple[torch.Tensor, torch.Tensor]:
        if options.negatives == IN_BATCH:
            return clf.ranked_in_batch(model, inputs, labels)
        if imitation is not None:
            return imitation.losses(model, inputs, labels)
        logits = clf.trained_logits(model, inputs)
        return logits, clf.loss(logits.float(), labels)

    class _Trainer(transformers.Trainer):
        def _get_train_sampler(self, train_dataset: Any = None) -> Any:
            return watch.order

        def compute_loss(
            self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
        ) -> Any:
            labels, training = inputs.pop("labels"), model.training
            if imitation is not None:
                model.eval()  # no dropout: what is learned is a function, and the teacher has none
            with nullcontext() if mask is None else masked(trained, mask):
                logits, loss = losses(model, inputs, labels)
            if training and not bool(torch.isfinite(loss)):
                step, total = int(self.state.global_step), int(self.state.max_steps)
                raise Diverged(divergence(step, total, options), learning_curve(self.state.log_history, None))
            return (loss, {"logits": logits}) if return_outputs else loss

        def evaluate(self, *args: Any, **kwargs: Any) -> Any:
            # its data loader draws a seed, which would change the dropout of all updates that follow
            with torch.random.fork_rng([clf.device] if clf.device.type == "cuda" else []):
                return super().evaluate(*args, **kwargs)

    def collate(batch: list[tuple[Any, Any]]) -> dict[str, torch.Tensor]:
        return clf.labelled([e for e, _ in batch], [y for _, y in batch])

    def updates_in(share: float) -> int:
        return int(np.ceil(share * updates_of(options, len(rows))))

    best = Best() if teacher is None else Best("loss", -1)
    patience = None if options.early_stopping is None else Patience(options.early_stopping, best)
    stopping = patience is not None
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
        lr_scheduler_kwargs={"num_decay_steps": updates_in(options.fall)} if options.schedule == "plateau" else None,
        warmup_steps=updates_in(options.warmup),
        max_grad_norm=options.max_grad_norm,
        bf16=options.precision == "bfloat16",
        fp16=options.precision == "float16",
        use_cpu=clf.device.type == "cpu",
        seed=seed,
        # the loss of every update, because averages would change when a training is resumed
        logging_steps=1,
        logging_nan_inf_filter=False,
        eval_strategy="no" if dev is None else "epoch",
        save_strategy="epoch" if watch.saves else "no",  # and as often as ``watch`` says
        save_total_limit=2,
        load_best_model_at_end=stopping,
        metric_for_best_model=best.name if stopping else None,
        greater_is_better=best.sign > 0 if stopping else None,
        dataloader_pin_memory=False,
        remove_unused_columns=False,
        label_names=["labels"],  # for question answering it would look for two others
        report_to="none",
        disable_tqdm=True,
    )
    trainer = _Trainer(
        model=model,
        args=arguments,
        data_collator=collate,
        train_dataset=rows,
        eval_dataset=dev,
        compute_metrics=_measure(metrics) if dev is not None else None,
        callbacks=[watch, *([patience] if patience else [])],
    )
    # transformers assumes that any model with **kwargs averages over accumulated batches itself
    trainer.model_accepts_loss_kwargs = False
    trainer.remove_callback(transformers.PrinterCallback)
    return trainer


@dataclass(frozen=True)
class Teacher:
    """A model whose answers and hidden states a smaller one learns to give.

    ``share`` of the loss of the answers is that of the teacher's, the rest that of the labels. To it comes ``layers``
    times the mean squared difference of the hidden states, as a share of the teacher's mean square.
    """

    model: Classifier
    share: float = 0.9
    temperature: float = 2.0
    layers: float = 1.0

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "model": self.model.digest}


class Imitation:
    """The losses of a model that learns from a teacher.

    A layer is compared with the teacher's layer of its number. A layer without heads and neurons is not, and neither is
    the one before it: the block of such layers ends where the teacher's last of them does. The last layer is left to
    the answers, which often read its first token alone.
    """

    def __init__(self, teacher: Teacher, clf: Classifier, model: Any) -> None:
        self.clf = clf
        # hooks read the states: on a copy, because the model may be in use elsewhere
        self.teacher = replace(teacher, model=replace(teacher.model, model=copy.deepcopy(teacher.model.model).eval()))
        parts = clf.family.layers.get(ENCODER) if teacher.layers else None
        self.pairs: list[tuple[Any, Any]] = []
        if parts is not None and len(clf.family.layers) == 1:
            sizes = zip(clf.heads_per_layer, neurons(clf) or [1] * clf.num_layers, strict=True)
            empty = [heads == 0 == inner for heads, inner in sizes]
            networks: tuple[Any, Any] = model, self.teacher.model.model
            ours, theirs = (network.base_model.get_submodule(parts.modules) for network in networks)
            self.pairs = [(ours[i], theirs[i]) for i in range(clf.num_layers - 1) if not empty[i + 1]]

    def losses(self, model: Any, inputs: dict[str, Any], labels: Any) -> tuple[torch.Tensor, torch.Tensor]:
        real = inputs.get("attention_mask")
        same_inputs, teacher = dict(inputs), self.teacher
        with calls_of(*(ours for ours, _ in self.pairs)) as ours:
            logits = self.clf.trained_logits(model, inputs).float()
        with torch.no_grad(), calls_of(*(theirs for _, theirs in self.pairs)) as theirs:
            target = self.clf.trained_logits(teacher.model.model, same_inputs).float()
        loss = (1 - teacher.share) * self.clf.loss(logits, labels)
        loss = loss + teacher.share * self.clf.answer.imitated(logits, target, teacher.temperature)
        for (_, mine), (_, other) in zip(ours, theirs, strict=True):
            rows = slice(None) if real is None or real.shape != mine.shape[:2] else real != 0
            square = other[rows].float().square().mean()
            loss = loss + teacher.layers / len(ours) * mse_loss(mine[rows].float(), other[rows].float()) / square
        return logits, loss


def _measure(metrics: Any) -> Any:
    def measure(result: Any) -> dict[str, float]:
        values = metrics(np.asarray(result.predictions, dtype=np.float32))
        primary = next(iter(values.values()))
        # an undefined metric (all predictions equal) must not count as the best
        return {**values, "primary": primary if primary == primary else -1.0}

    return measure


def updates_of(options: FinetuneOptions, examples: int) -> int:
    """How many updates a training takes."""
    batches = -(-examples // options.batch)
    return int(np.ceil(options.epochs * max(1, -(-batches // options.accumulation))))


TELL = 1.0  # seconds between two reports of the losses so far

History = list[dict[str, Any]]  # as Trainer keeps it


class Watch(transformers.TrainerCallback):
    """Called after every batch."""

    def __init__(
        self,
        order: Order,
        progress: Progress | None,
        cancel: Cancel | None,
        saves: bool,
        every: int | None,
        report: Callable[[History], None] | None,
    ) -> None:
        self.order, self.progress, self.cancel = order, progress, cancel
        self.saves, self.every = saves, every  # after each epoch, and every so many updates
        self.report, self._reported = report, float("-inf")

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        # transformers would do one more update of an epoch that was to end early and did
        self.order.ended = state.global_step >= state.max_steps

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.order.epoch = int(state.epoch or 0)  # a fraction is the part of a resumed epoch that is done

    def on_substep_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        stop_if(self.cancel)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.progress is not None:
            self.progress(int(state.global_step), int(state.max_steps))
        self.on_substep_end(args, state, control)
        # at an epoch's end a checkpoint saved now would lack the dev metrics, which are measured after this
        if self.every and state.global_step % self.every == 0 and not float(state.epoch).is_integer():
            control.should_save = self.saves

    def on_log(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Report the history so far, after updates and evaluations, at most once every ``TELL`` seconds."""
        seconds = time.monotonic()
        if self.report is not None and seconds - self._reported >= TELL:
            self._reported = seconds
            self.report(state.log_history)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        control.should_save = self.saves and not self.order.ended
        control.should_evaluate = control.should_evaluate and not self.order.ended

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        seal(Path(args.output_dir) / f"checkpoint-{state.global_step}")


class Best(NamedTuple):
    """What makes an epoch the best: the first dev metric, or with a teacher the loss, which few examples tell, too."""

    name: str = "primary"
    sign: int = 1

    def values(self, history: Sequence[dict[str, Any]]) -> list[float]:
        """Of each epoch, the larger the better."""
        return [self.sign * h[f"eval_{self.name}"] for h in history if f"eval_{self.name}" in h]


class Patience(transformers.TrainerCallback):
    """Early stopping that counts from the history. Transformers' own starts to count again when it is resumed."""

    def __init__(self, epochs: int, best: Best) -> None:
        self.epochs, self.best = epochs, best

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.is_over(state.log_history):
            control.should_training_stop = True

    def is_over(self, history: Sequence[dict[str, Any]]) -> bool:
        """Whether so many epochs have passed since the first one with the best dev metric."""
        values = self.best.values(history)
        return bool(values) and len(values) - 1 - values.index(max(values)) >= self.epochs

    def ended(self, checkpoint: str) -> float | None:
        """The epoch of a checkpoint after which the training must stop; None = it goes on."""
        state = json.loads((Path(checkpoint) / "trainer_state.json").read_text(encoding="utf-8"))
        return float(state["epoch"]) if self.is_over(state["log_history"]) else None


class Rows(torch.utils.data.Dataset):
    """Token ids and labels of a data set, in its order."""

    def __init__(self, clf: Classifier, data: Dataset, gold: np.ndarray | None) -> None:
        self.encodings = encode_data(clf, data)
        self.gold = gold

    def __len__(self) -> int:
        return len(self.encodings)

    def __getitem__(self, i: int) -> tuple[Any, Any]:
        return self.encodings[i], None if self.gold is None else self.gold[i].tolist()

    def order(self, options: FinetuneOptions, seed: int) -> Order:
        lengths = [len(e) for e in self.encodings]
        return Order(lengths, options.batch * options.accumulation, seed, options.group_lengths)


class Order(torch.utils.data.Sampler):
    """The order of one epoch. It depends on seed and epoch only, so a resumed epoch has the same order.

    With ``group``, texts of similar length share a batch: within every 50 batches drawn at random the texts are
    sorted by length, and then the batches are shuffled.
    """

    def __init__(self, lengths: list[int], batch: int, seed: int, group: bool) -> None:
        self.lengths, self.batch, self.seed, self.group = lengths, batch, seed, group
        self.epoch = 0
        self.ended = False  # there is nothing left to train on

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[int]:
        if self.ended:
            return iter(())
        draw = random.Random(f"headviz-order-{self.seed}-{self.epoch}")
        order = list(range(len(self.lengths)))
        draw.shuffle(order)
        if not self.group:
            return iter(order)
        size = 50 * self.batch
        batches: list[list[int]] = []
        for at in range(0, len(order), size):
            by_length = sorted(order[at : at + size], key=self.lengths.__getitem__)
            batches += [by_length[i : i + self.batch] for i in range(0, len(by_length), self.batch)]
        # a shorter batch must be the last one, or it would shift the borders of those after it
        shorter = [b for b in batches if len(b) < self.batch]
        full = [b for b in batches if len(b) == self.batch]
        draw.shuffle(full)
        return chain.from_iterable((*full, *shorter))


CURVE_POINTS = 100


class Diverged(UserError):
    """A training whose loss is no longer a number. ``curve`` holds what was measured before."""

    code = "diverged"

    def __init__(self, text: str, curve: tuple[Point, ...]) -> None:
        super().__init__(text)
        self.curve = curve


def divergence(step: int, total: int, options: FinetuneOptions) -> str:
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
        averaged = losses[i : i + width]
        mean = float(np.mean([h["loss"] for h in averaged]))
        last = averaged[-1]
        points.append(Point(int(last["step"]), float(last["epoch"]), plain(mean), plain(last.get("learning_rate"))))
    names = () if dev is None else dev.task.metrics
    for h in history:
        curve = {name: plain(h[f"eval_{name}"]) for name in names if f"eval_{name}" in h}
        if curve:
            points.append(Point(int(h["step"]), float(h["epoch"]), metrics=curve))
    return tuple(sorted(points, key=lambda p: (p.step, p.loss is None)))
