"""Learning curves of students: mean over seeds, interval as a band, the teacher dashed, one class for all dotted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from ...display.figures.style import CLASSES, NEUTRAL, band, constant_line, frame

# colour and mark by start, the same in every figure
LOOKS = {
    "random": (NEUTRAL, "circle"),
    "copy": (CLASSES[1], "square"),
    "conditional": (CLASSES[0], "diamond"),
    "variational": (CLASSES[3], "triangle-up"),
    "kd": (CLASSES[2], "x"),
    "kd-copy": (CLASSES[4], "cross"),
}


def learning_curves(
    students: Sequence[Mapping[str, Any]], teacher: float | None, metric: str, constant: float | None = None
) -> go.Figure:
    """``students`` as ``distillation.job.outcome`` gives them; ``constant``: what one class for all reaches."""
    fig = go.Figure()
    last = 0
    for student in students:
        colour, mark = LOOKS[student["init"]]
        points = [p for p in student["curve"] if p["metrics"].get(metric) is not None]
        steps = [p["step"] for p in points]
        last = max([last, *steps])
        low, high = ([p[name].get(metric) for p in points] for name in ("interval_low", "interval_high"))
        if points and None not in low and None not in high:
            band(fig, steps, low, high, colour, legendgroup=student["init"])
        fig.add_scatter(
            x=steps,
            y=[p["metrics"][metric] for p in points],
            mode="lines+markers",
            name=student["title"],
            line={"color": colour, "width": 2.2},
            marker={"size": 6, "symbol": mark},
            legendgroup=student["init"],
            hovertemplate=f"{student['title']}<br>step %{{x}}: %{{y:.4g}}<extra></extra>",
        )
    if teacher is not None:
        fig.add_scatter(
            x=[0, last],
            y=[teacher, teacher],
            mode="lines",
            name="teacher",
            line={"color": NEUTRAL, "width": 1.6, "dash": "dash"},
            hovertemplate="teacher %{y:.4g}<extra></extra>",
        )
    if constant is not None:
        constant_line(fig, constant)
    fig.update_xaxes(title="training steps", rangemode="tozero")
    fig.update_yaxes(title=metric)
    return frame(fig, 400)
