"""A run's metric against the share of heads removed: the points of the curve, and the figure of several curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any

from ..answers.metrics import corrected
from ..display.figures.style import CLASSES, FAINT, NEUTRAL, SMALL, band, constant_line, frame, safe
from ..display.numbers import number
from ..pruning import baselines

if TYPE_CHECKING:
    import plotly.graph_objects as go


@dataclass(frozen=True)
class Curve:
    """One run's metric against sparsity, for every seed."""

    name: str
    metric: str
    baseline: float | None  # of the full models that the steps are compared with, mean over seeds
    by_seed: Mapping[int, Sequence[tuple[float, float]]]  # seed -> (sparsity, value) of the steps so far
    against: str = baselines.GIVEN  # which full model that is
    given: float | None = None  # θ*, where the steps are compared with another model
    constant: float | None = None  # what the best constant answer reaches

    @property
    def means(self) -> list[tuple[float, float, float | None]]:
        """(sparsity, mean, sd over seeds); sd is None with fewer than two."""
        found: dict[float, list[float]] = {}
        for points in self.by_seed.values():
            for x, y in points:
                found.setdefault(round(x, 9), []).append(y)
        return [(x, mean(v), stdev(v) if len(v) > 1 else None) for x, v in sorted(found.items())]

    @property
    def corrected(self) -> list[float]:
        """Of each mean the share that is left of what the full model has above the best constant answer."""
        full = float("nan") if self.baseline is None else self.baseline
        return [corrected(value, full, self.constant) for _, value, _ in self.means]


def curve_of(run: Mapping[str, Any], metric: str | None = None, name: str | None = None) -> Curve | None:
    """The curve of a run as JSON (``RunView.to_dict``); None before there is anything to draw.

    It begins at 0 % with the full model that the steps are compared with: each seed's own, where it has one.
    """
    points = [*run["baseline"], *run["steps"]]
    if not points or any(s.get("sparsity") is None for s in points):
        return None
    metric = metric or next(iter(points[0]["metrics"]), None)
    if metric is None:
        return None
    which = baselines.against(run.get("spec") or {}, run["baseline"])
    by_seed: dict[int, list[tuple[float, float]]] = {}
    for step in run["steps"]:
        seed = step.get("seed")
        own = by_seed.setdefault(int(seed or 0), [])
        full = baselines.full_of(run["baseline"], seed, which)
        for s in (full, step) if not own else (step,):
            if s is not None and (value := s["metrics"].get(metric)) is not None:
                own.append((s["sparsity"], value))
    full_mean = baselines.summary(run["baseline"], which, metric)
    given = baselines.summary(run["baseline"], baselines.GIVEN, metric)
    return Curve(
        name or f"{run['title']} ({run['id']})",
        metric,
        full_mean and full_mean[0],
        {seed: own for seed, own in by_seed.items() if own},
        which,
        given[0] if given and which != baselines.GIVEN else None,
        next((c for s in points if (c := (s.get("constant") or {}).get(metric)) is not None), None),
    )


def run_curves(curves: Sequence[Curve], height: int = 400) -> go.Figure:
    """Metric against percentage pruned, one colour per run; thin lines are seeds, bands one sd over them.

    Dashed: the full model that a run's steps are compared with; dotted: θ* where that is another one, and one class
    for all answers. Hovering tells the metric corrected for that: the share left of what the full model has above it.
    """
    import plotly.graph_objects as go

    fig = go.Figure()
    several_runs = len(curves) > 1
    levels = {round(c.baseline, 9) for c in curves if c.baseline is not None}
    for i, curve in enumerate(curves):
        tone = CLASSES[i % len(CLASSES)]
        if curve.baseline is not None and round(curve.baseline, 9) in levels:
            shared = len(levels) == 1  # one line for all, in no run's colour
            called = "" if several_runs and not shared else baselines.NAMES[curve.against]
            if called and len(curve.by_seed) > 1 and curve.against != baselines.GIVEN:
                called += " (mean over seeds)"
            tint = FAINT if shared else tone
            _level(fig, curve.baseline, tint, "dash", called, below=bool(curve.given))
            levels = set() if shared else levels
        several = len(curve.by_seed) > 1
        means = curve.means
        spread = [(100 * x, m - s, m + s) for x, m, s in means if s is not None]
        if spread:
            xs, low, high = (list(column) for column in zip(*spread, strict=True))
            band(fig, xs, low, high, tone, legendgroup=curve.name)
        for seed, points in sorted(curve.by_seed.items()) if several else ():
            fig.add_scatter(
                x=[100 * x for x, _ in points],
                y=[y for _, y in points],
                mode="lines",
                opacity=0.4,
                line={"color": tone, "width": 1},
                legendgroup=curve.name,
                showlegend=False,
                hovertemplate=f"seed {seed}: %{{x:.0f}} % pruned, %{{y:.4f}}<extra></extra>",
            )
        fig.add_scatter(
            x=[100 * x for x, _, _ in means],
            y=[m for _, m, _ in means],
            mode="lines+markers",
            name=safe(curve.name),
            legendgroup=curve.name,
            line={"color": tone, "width": 2},
            marker={"size": 6},
            customdata=[number(x) for x in curve.corrected],
            hovertemplate="%{x:.0f} % pruned: %{y:.4f}<br>corrected for chance: %{customdata}<extra></extra>",
        )
    # runs of one model share its line; with several models there is no single "model as given"
    given = {round(c.given, 9) for c in curves if c.given is not None}
    if len(given) == 1:
        _level(fig, given.pop(), FAINT, "dot", baselines.NAMES[baselines.GIVEN])
    for level in {round(c.constant, 9) for c in curves if c.constant is not None}:
        constant_line(fig, level)
    fig.update_xaxes(title="heads pruned, %", range=[-2, 102], zeroline=False)
    fig.update_yaxes(title=curves[0].metric if curves else "", zeroline=False)
    return frame(fig, height, top=32, showlegend=several_runs)


def _level(fig: go.Figure, value: float, colour: str, dash: str, name: str, below: bool = False) -> None:
    """A line across, named at its right end."""
    place = f"{'bottom' if below else 'top'} right"
    more = {"annotation_text": name, "annotation_position": place, "annotation_font": {"size": SMALL, "color": NEUTRAL}}
    fig.add_hline(y=value, line={"color": colour, "dash": dash, "width": 1}, **(more if name else {}))
