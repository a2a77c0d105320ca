"""What is done between the updates of a training: progress, cancelling, the epoch's order, whole checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from ..errors import Cancelled

if TYPE_CHECKING:
    from ..evaluation import Cancel, Progress
    from .finetune import Order

WHOLE = "headviz-whole"  # lies in checkpoints that were written to their end
TELL = 1.0  # seconds between two tellings of the losses so far

History = list[dict[str, Any]]  # as Trainer keeps it


class Watch(TrainerCallback):
    """Looks in after every batch."""

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
        self.order.epoch = int(state.epoch or 0)  # the fraction is what a resumed epoch has behind it

    def on_substep_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.cancel is not None and self.cancel():
            raise Cancelled

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.progress is not None:
            self.progress(int(state.global_step), int(state.max_steps))
        self.on_substep_end(args, state, control)
        if float(state.epoch).is_integer():
            # saved now, the checkpoint would lack the dev metrics that are measured right after
            control.should_save = False

    def on_log(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """After every update and every measuring on dev: what is known so far, but not more often than one looks."""
        now = time.monotonic()
        if self.history is not None and now - self._told >= TELL:
            self._told = now
            self.history(state.log_history)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        control.should_save = self.saves

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        (Path(args.output_dir) / f"checkpoint-{state.global_step}" / WHOLE).touch()
