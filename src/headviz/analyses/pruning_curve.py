"""Metric against percentage pruned, by any score and by the oracle order. [M §4, Fig. 3, 6]

Heads are masked lowest score first. The oracle order is that of single-head ablation *on the reported data*: it
knows the answers, and shows what a score could reach, not what a score may use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import OptionError
from ..evaluation.comparison import measure
from ..heads import HeadMask, lowest
from ..progress import Cancel, Progress
from ..results import Result
from .common import Subject, subject, sweep

if TYPE_CHECKING:
    from ..evaluation.evaluator import Evaluator


@dataclass(frozen=True)
class CurvePoint(Result):
    """One sparsity on one curve; the interval and p value are of ``value - baseline``, paired."""

    sparsity: float
    mask: HeadMask
    value: float
    delta: float
    interval_low: float
    interval_high: float
    p_value: float


@dataclass(frozen=True)
class Curve(Result):
    """One order of heads."""

    name: str
    points: tuple[CurvePoint, ...]

    @property
    def free(self) -> float:
        """The largest sparsity up to which no point is significantly worse (its interval stays at or above 0)."""
        reached = 0.0
        for point in self.points:
            if point.interval_high < 0:
                break
            reached = point.sparsity
        return reached

    def extra(self) -> dict[str, Any]:
        return {"free": self.free}


@dataclass(frozen=True)
class PruningCurves(Result):
    """Several curves of one model on one data set."""

    subject: Subject
    baseline: float
    curves: tuple[Curve, ...]


def pruning_curves(
    evaluator: Evaluator,
    orders: Mapping[str, NDArray],
    *,
    step: float = 0.1,
    until: float = 1.0,
    keep_per_layer: int = 0,
    metric: str | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> PruningCurves:
    """One curve per L×H score table in ``orders`` (high = keep); for the oracle give ``Ablation.values``."""
    about, present = subject(evaluator, metric), evaluator.clf.present
    check_steps(step, until, keep_per_layer, present.num_heads)
    if not orders:
        raise OptionError("A pruning curve needs at least one score table.")
    for name, values in orders.items():
        if np.shape(values) != (present.num_layers, present.num_heads):
            raise OptionError(
                f"Score '{name}' has shape {np.shape(values)}; the model has "
                f"{present.num_layers} layers × {present.num_heads} heads."
            )
    plans = {name: _masks(present, values, step, until, keep_per_layer) for name, values in orders.items()}
    masks = [mask for plan in plans.values() for mask in plan]
    answers, found = sweep(evaluator, masks, about.metric, keep=False, progress=progress, cancel=cancel)
    baseline = measure(answers, answers.full, about.metric)
    curves, used = [], 0
    for name, plan in plans.items():
        part = found[used : used + len(plan)]
        used += len(plan)
        curves.append(
            Curve(
                name,
                tuple(
                    CurvePoint(m.sparsity, m, d.masked, d.delta, d.interval_low, d.interval_high, d.p_value)
                    for m, d in zip(plan, part, strict=True)
                ),
            )
        )
    return PruningCurves(about, baseline, tuple(curves))


def check_steps(step: float, until: float, keep_per_layer: int, heads: int) -> None:
    """Refuse what no curve can be made of, before anything is computed. ``heads`` are those of one layer."""
    if not (0 < step <= 1 and 0 < until <= 1):
        raise OptionError(f"step and until must lie above 0 and be at most 1, not {step:g} and {until:g}.")
    if not 0 <= keep_per_layer < heads:
        raise OptionError(
            f"A layer has {heads} heads, so from 0 to {heads - 1} of them can be kept, not {keep_per_layer}: "
            "otherwise none may go."
        )


def _masks(present: HeadMask, values: Any, step: float, until: float, keep_per_layer: int) -> list[HeadMask]:
    """The full model, then round(k·step·N) heads off until the first sparsity ≥ ``until``."""
    kappa = Fraction(repr(float(step)))  # 3 · 0.1 is 0.3 exactly
    masks, k = [present], 0
    while masks[-1].sparsity < until - 1e-9:
        k += 1
        count = round(k * kappa * present.size) - len(present.off)
        if count <= 0:
            continue
        off = lowest(values, min(count, len(present.kept)), present.kept, keep_per_layer)
        mask = present.without(off)
        if mask == masks[-1]:
            if count > len(off):  # nothing more may go
                break
            continue
        masks.append(mask)
    return masks
