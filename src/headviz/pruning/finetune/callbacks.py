"""Callbacks of a training: progress, cancelling, the order of an epoch, checkpoints, early stopping."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...attention import transformers
from ...progress import stop_if
from .checkpoints import WHOLE
from .order import Order

if TYPE_CHECKING:
    from ...progress import Cancel, Progress

PRIMARY = "eval_primary"  # the dev metric that early stopping watches, as Trainer logs it
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
        history: Callable[[History], None] | None = None,
    ) -> None:
        self.order, self.progress, self.cancel, self.saves = order, progress, cancel, saves
        self.history, self._told = history, float("-inf")

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.order.epoch = int(state.epoch or 0)  # a fraction is the part of a resumed epoch that is done

    def on_substep_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        stop_if(self.cancel)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.progress is not None:
            self.progress(int(state.global_step), int(state.max_steps))
        self.on_substep_end(args, state, control)
        if float(state.epoch).is_integer():
            # a checkpoint saved now would lack the dev metrics, which are measured after this
            control.should_save = False

    def on_log(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Report the history so far, after updates and evaluations, at most once every ``TELL`` seconds."""
        now = time.monotonic()
        if self.history is not None and now - self._told >= TELL:
            self._told = now
            self.history(state.log_history)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        control.should_save = self.saves

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        (Path(args.output_dir) / f"checkpoint-{state.global_step}" / WHOLE).touch()


class Patience(transformers.TrainerCallback):
    """Early stopping that counts from the history. Transformers' own starts to count again when it is resumed."""

    def __init__(self, epochs: int) -> None:
        self.epochs = epochs

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.is_over(state.log_history):
            control.should_training_stop = True

    def is_over(self, history: Sequence[dict[str, Any]]) -> bool:
        """Whether so many epochs have passed since the first one with the best dev metric."""
        values = [h[PRIMARY] for h in history if PRIMARY in h]
        return bool(values) and len(values) - 1 - values.index(max(values)) >= self.epochs

    def ended(self, checkpoint: str) -> float | None:
        """The epoch of a checkpoint after which the training must stop; None = it goes on."""
        state = json.loads((Path(checkpoint) / "trainer_state.json").read_text(encoding="utf-8"))
        return float(state["epoch"]) if self.is_over(state["log_history"]) else None
