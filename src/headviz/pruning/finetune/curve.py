"""The learning curve of a training, from the history that Trainer logs, and the error if it diverged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import UserError
from ..measure import none
from ..options import FinetuneOptions
from ..state import Point

if TYPE_CHECKING:
    from ...tasks import Dataset

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
        part = losses[i : i + width]
        mean = float(np.mean([h["loss"] for h in part]))
        last = part[-1]
        points.append(Point(int(last["step"]), float(last["epoch"]), none(mean), none(last.get("learning_rate"))))
    names = () if dev is None else dev.task.metrics
    for h in history:
        found = {name: none(h[f"eval_{name}"]) for name in names if f"eval_{name}" in h}
        if found:
            points.append(Point(int(h["step"]), float(h["epoch"]), metrics=found))
    return tuple(sorted(points, key=lambda p: (p.step, p.loss is None)))
