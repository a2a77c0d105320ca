"""Learning curves: points of one training, and mean with interval over seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Point:
    """What was measured after so many steps. Losses are means since the last point; None = not measured."""

    step: int
    metrics: dict[str, float | None]
    loss: float | None = None
    kl: float | None = None  # nats per weight, of variational inference
    seconds: float = 0.0  # of training so far, without the measuring

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "seconds": round(self.seconds, 3)}

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Point:
        return cls(**given)


@dataclass(frozen=True)
class Band:
    """Mean over seeds with its 95 % interval by Student's t; the interval is None for one seed."""

    mean: float | None
    low: float | None
    high: float | None
    seeds: int


def band(values: Sequence[float | None]) -> Band:
    """Mean and interval over seeds; undefined values are left out and not counted."""
    there = [v for v in values if v is not None and math.isfinite(v)]
    if not there:
        return Band(None, None, None, 0)
    mean = float(np.mean(there))
    if len(there) == 1:
        return Band(mean, None, None, 1)
    from scipy.stats import t

    half = float(t.ppf(0.975, len(there) - 1) * np.std(there, ddof=1) / len(there) ** 0.5)
    return Band(mean, mean - half, mean + half, len(there))


def merged(curves: Sequence[Sequence[Point]]) -> list[dict[str, Any]]:
    """Point by point over seeds: {step, metrics, interval_low, interval_high, loss}.

    ``loss`` is the mean training loss since the point before; None where nothing was trained yet.
    """
    out = []
    for points in zip(*curves, strict=True):
        bands = {name: band([p.metrics[name] for p in points]) for name in points[0].metrics}
        out.append(
            {
                "step": points[0].step,
                "metrics": {name: b.mean for name, b in bands.items()},
                "interval_low": {name: b.low for name, b in bands.items()},
                "interval_high": {name: b.high for name, b in bands.items()},
                "loss": band([p.loss for p in points]).mean,
            }
        )
    return out


def steps_to(curve: Sequence[dict[str, Any]], metric: str, level: float) -> int | None:
    """The step of the first point of a merged curve at or above a level; None if there is none."""
    for point in curve:
        value = point["metrics"][metric]
        if value is not None and value >= level:
            return int(point["step"])
    return None
