"""Learning curves: points of one training, and mean with interval over seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import itemgetter
from typing import Any, NamedTuple

from ...answers.metrics import metric_title
from ...display import numbers
from ...display.table import FILES, PAGE, Column, Ends, Table
from ...statistics.intervals import interval_of_mean
from ...tasks import points_in


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


class Band(NamedTuple):
    """Mean over seeds with its 95 % interval by Student's t; the interval is None for one seed."""

    mean: float | None = None
    low: float | None = None
    high: float | None = None


def band(values: Sequence[float | None]) -> Band:
    """Mean and interval over seeds; undefined values are left out and not counted."""
    defined = [v for v in values if v is not None and math.isfinite(v)]
    if not defined:
        return Band()
    mean, low, high = interval_of_mean(defined)
    return Band(mean, low, high) if len(defined) > 1 else Band(mean)


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


def students_table(result: Mapping[str, Any], metrics: Sequence[str]) -> Table:
    """The teacher and its students: each metric with its interval, and what the metric was before training."""

    def form(name: str) -> Callable[[float], str]:
        return lambda value: numbers.metric(value, points_in(name))

    def reached(name: str) -> Column:
        top = None if points_in(name) == 1 else 1.0  # a share cannot be more

        def ends(model: Any) -> Ends:
            low, high = ((model.get(f"interval_{end}") or {}).get(name) for end in ("low", "high"))
            return low, high if high is None or top is None else min(top, high)

        return Column(metric_title(name), form(name), lambda model: model["metrics"][name], ends=ends)

    def before(name: str) -> Callable[[Any], float | None]:
        return lambda model: model["curve"][0]["metrics"][name] if model.get("curve") else None

    columns = (
        Column("model", value=itemgetter("title")),
        *map(reached, metrics),
        *(Column("before training", form(name), before(name), places=(PAGE, FILES)) for name in metrics[:1]),
        Column("parameters", "{:,}".format, itemgetter("parameters")),
        Column("seconds", "%.1f", lambda model: model.get("seconds")),
    )
    models = [{**result["teacher"], "title": "teacher"}, *result["students"]]
    return Table.of("distil_table", columns, models, caption="Means over seeds with 95 % intervals (Student's t).")
