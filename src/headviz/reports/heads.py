"""Reports of runs that do not prune: a learning curve, or a table of heads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..display.table import Table
from ..heads import HeadId, head_name
from ..ties import in_order, order_told

if TYPE_CHECKING:
    import plotly.graph_objects as go

KINDS = ("score", "ablation", "finetune")  # of runs; the others are shown by their steps


def figure_of(run: Mapping[str, Any]) -> tuple[str, go.Figure, str] | None:
    """Heading, figure and caption of a run; None before there is anything to draw."""
    return {"score": _score, "ablation": _ablation, "finetune": _training}[run["kind"]](run)


def _score(run: Mapping[str, Any]) -> tuple[str, go.Figure, str] | None:
    from plotly.subplots import make_subplots

    from ..display.figures.style import frame, grid

    outcome = run["outcome"]
    if not outcome:
        return None
    values = np.array(outcome["values"], dtype=float)
    fig = make_subplots(1, 1)
    grid(fig, values, outcome["score"], 1, 1)
    said = f"{outcome['score']} of every head, on {outcome['samples']:,} examples; high = keep."
    said += order_told(outcome.get("tied", 0), int(np.isfinite(values).sum()))
    return "Score of every head", frame(fig, 110 + max(220, 26 * len(values))), said


def _ablation(run: Mapping[str, Any]) -> tuple[str, go.Figure, str] | None:
    from ..analyses.ablation import Ablation, figure

    if not run["outcome"]:
        return None
    found = Ablation.from_dict(run["outcome"])
    about = found.subject
    said = f"Points of {about.metric} that {about.model} loses without each head, on {about.n:,} examples."
    said += order_told(found.tied, len(found.base.kept))
    return "Cost of every head", figure(found), said


def _training(run: Mapping[str, Any]) -> tuple[str, go.Figure, str] | None:
    from ..display.figures.training import learning_curve

    points = run["steps"][0].get("curve") if run["steps"] else None
    if not points:
        return None
    metric = next(iter(run["steps"][0]["metrics"]), "")
    return ("Learning curve", learning_curve(points, metric), "Training loss by update, and dev after each epoch.")


def table_of(run: Mapping[str, Any]) -> Table | None:
    """The heads of a score or an ablation, highest first; None for other runs and unfinished ones."""
    outcome = run["outcome"]
    if run["kind"] not in ("score", "ablation") or not outcome:
        return None
    named = {"value": "values", "low": "interval_low", "high": "interval_high"}
    if run["kind"] == "ablation":
        named = {"cost": "values", **named, "p": "p_value", "q": "q_value"}
        del named["value"]
    tables = [outcome[name] for name in named.values()]
    stacks = outcome.get("subject", {}).get("rows") or None
    rows = [
        [head_name(HeadId(layer, head), stacks), *(t[layer][head] for t in tables)]
        for layer, line in enumerate(outcome["values"])
        for head, value in enumerate(line)
        if value is not None
    ]
    return Table("heads", ("head", *named), in_order(rows, [-row[1] for row in rows], seed=0))
