"""What a faster model keeps: a metric against the measured speed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import plotly

from ...tasks import points_in
from .. import numbers
from ..table import FILES, PAGE, TERMINAL, Column, Ends, Table
from .style import MODELS, NEUTRAL, frame, safe

if TYPE_CHECKING:
    import plotly.graph_objects as go

NAMES = {"both": "heads and neurons", "heads": "heads only"}
_SHADES = {"both": MODELS[0], "heads": MODELS[1]}


def kept_against_speed(steps: Sequence[Mapping[str, Any]], metric: str, baseline: float | None) -> go.Figure:
    """One line for each way of removing, with the intervals of speed and of the change. ``steps`` are a run's."""
    fig = plotly.graph_objects.Figure()
    for remove, name in NAMES.items():
        rows = sorted(
            (s for s in steps if s["remove"] == remove and s.get("speedup") and s["metrics"].get(metric) is not None),
            key=lambda s: s["speedup"],
        )
        if not rows:
            continue
        values = [s["metrics"][metric] for s in rows]
        change = [c if (c := s.get("change") or {}).get("metric") == metric else {} for s in rows]
        fig.add_scatter(
            x=[s["speedup"] for s in rows],
            y=values,
            mode="lines+markers",
            name=name,
            line={"color": _SHADES[remove], "width": 2},
            marker={"size": 8},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [s["speedup_high"] - s["speedup"] for s in rows],
                "arrayminus": [s["speedup"] - s["speedup_low"] for s in rows],
                "thickness": 1.2,
            },
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [_end(c, "high") for c in change],
                "arrayminus": [_end(c, "low") for c in change],
                "thickness": 1.2,
            },
            hovertemplate=f"%{{x:.2f}}×: {safe(metric)} %{{y:.4f}}<extra>{name}</extra>",
        )
    if baseline is not None:
        fig.add_scatter(
            x=[1.0], y=[baseline], mode="markers", name="as given", marker={"size": 10, "color": NEUTRAL, "symbol": "x"}
        )
    fig.update_xaxes(title="times as fast, measured", zeroline=False)
    fig.update_yaxes(title=safe(metric), zeroline=False)
    return frame(fig, 360)


def _end(change: Mapping[str, Any], end: str) -> float:
    """How far an end of the change's interval is from the change itself."""
    low_or_high, at = change.get(end), change.get("difference")
    return 0.0 if low_or_high is None or at is None else abs(low_or_high - at)


def faster_table(models: Sequence[Mapping[str, Any]], metric: str) -> Table:
    """One row for each model: its speed, and what the metric loses. The models are a run's steps, or the command's."""
    scale = points_in(metric)

    def value(field: str) -> Callable[[Any], float | None]:
        return lambda model: (model.get(field) or {}).get(metric)

    def change(end: str) -> Callable[[Any], float | None]:
        return lambda model: (model.get("change") or {}).get(end)

    def ends(model: Any) -> Ends:
        return change("low")(model), change("high")(model)

    size = (PAGE, FILES)
    columns = (
        Column("removed", value=lambda model: NAMES.get(model.get("remove", "")), places=size),
        Column("target", "{:g}×".format, itemgetter("target")),
        Column("speed", "%.2f", itemgetter("speedup"), ends=itemgetter("speedup_low", "speedup_high")),
        Column(f"{metric} before", numbers.fixed, value("baseline"), places=(TERMINAL,)),
        Column(metric, numbers.fixed, value("metrics")),
        Column(
            "change, points",
            lambda v: numbers.points(v, scale),
            change("difference"),
            ends=ends,
            ends_format=lambda low, high: numbers.interval(low, high, scale),
        ),
        Column("heads remaining", value=lambda model: sum(model["heads_per_layer"]), places=size),
        Column("neurons remaining", value=lambda model: sum(model["neurons_per_layer"]), places=size),
        Column("parameters", "{:,}".format, lambda model: model["parameters"][1], places=size),
        Column("saved", value=lambda model: model.get("out"), places=(TERMINAL,)),
    )
    return Table.of("faster_table", columns, models, caption="Speed by interleaved pairs of passes of both models.")
