"""The tables of runs: the models of a run's steps, and the results of a sweep. Each place that shows them draws these.

A new column is one line of ``step_columns`` or ``SWEEP_COLUMNS``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any

import plotly

from ..answers.metrics import METRICS, SAME_ANSWERS, agreement_name, corrected, metric_title
from ..display import numbers
from ..display.figures import speed
from ..display.figures.style import CLASSES, FAINT, SMALL, band, constant_line, frame, safe
from ..display.numbers import number
from ..display.table import FILES, PAGE, PLACES, TERMINAL, Column, Ends, Table
from ..pruning import baselines
from ..tasks import points_in
from .reading import Row, RunView, by_combination, full_models
from .record import PRUNE

if TYPE_CHECKING:
    import plotly.graph_objects as go


Step = Mapping[str, Any]
DETAIL = (FILES,)  # of a pruning run, whose steps differ little in these


def step_table(kind: str, spec: Step, baseline: Sequence[Step], steps: Sequence[Step]) -> Table:
    """One row per model, the full ones first."""
    models = [*baselines.distinct(baseline), *steps]
    prunes = kind == PRUNE
    return Table.of(
        "run_steps",
        step_columns(models, prunes, prunes and baselines.against(spec, baseline) == baselines.RETRAINED),
        models,
        caption=f"Every model of the run; changes are in points. {compared(spec, baseline, steps)}" if prunes else "",
    )


def step_columns(models: Sequence[Step], prunes: bool, retrained: bool) -> list[Column]:
    """The columns of these models; ``retrained`` = each step is compared with a full model of its own training."""
    names = list(dict.fromkeys(n for s in models for n in s["metrics"]))
    several = len({s.get("seed") for s in models if not s.get("reference")}) > 1
    has = {name for s in models for name, value in s.items() if value is not None}
    detail = DETAIL if prunes else PLACES
    tied = PLACES if baselines.ties(models) else DETAIL
    sized = PLACES if "sparsity" in has else DETAIL
    agreement = agreement_name(names)
    form = numbers.share if agreement == SAME_ANSWERS else numbers.number
    columns = (
        (any(_model(s, prunes) for s in models), Column("model", value=lambda s: _model(s, prunes))),
        (several, Column("seed", value=lambda s: None if s.get("reference") else s.get("seed"))),
        (True, _plain("heads removed", "sparsity", numbers.share, "the share of all heads", sized)),
        ("tied" in has, _plain("heads tied", "tied", meaning="heads whose score is that of another", places=tied)),
        *((True, _metric(n)) for n in names),
        *((True, _change(n)) for n in names if prunes),
        *((True, _change_from_given(n)) for n in names[:1] if retrained),
        (prunes, Column("against", value=lambda s: baselines.NAMES.get(s.get("against", "")), places=DETAIL)),
        ("heads_off" in has, _plain("heads off", "heads_off", places=detail)),
        ("agreement" in has, _plain(agreement, "agreement", form, "compared with the full model", detail)),
        ("parameters" in has, _plain("parameters", "parameters", "{:,}".format)),
        ("flops" in has, _plain("FLOPs", "flops", "{:.3g}".format, places=detail)),
        ("speedup" in has, _plain("speedup", "speedup", "×{:.2f}".format, places=detail)),
        (True, _plain("time", "seconds", numbers.span)),
        ("mask" in has, _plain("mask", "mask", str, "in hexadecimal digits, 1 = on", (TERMINAL, FILES))),
    )
    return [column for shown, column in columns if shown]


def _plain(title: str, field: str, form: Any = "", meaning: str = "", places: Collection[str] = PLACES) -> Column:
    """A field of a step; of two numbers, before and after, the latter."""

    def value(step: Step) -> Any:
        value = step.get(field)
        return value[-1] if isinstance(value, list | tuple) else value

    return Column(title, form, value, meaning, name=field, places=places)


def _metric(name: str) -> Column:
    """A metric; other kinds of runs than those that prune may have metrics of their own."""
    metric = METRICS.get(name.split("-")[0])
    scale = 100 if metric is None else metric.points
    return Column(
        metric_title(name),
        lambda v: numbers.metric(v, scale),
        lambda s: s["metrics"].get(name),
        name=name,
        ends=lambda s: tuple((s.get("intervals") or {}).get(name) or (None, None)),
    )


def _change(name: str) -> Column:
    """What changes against the full model that the step is compared with."""
    scale = points_in(name)

    def ends(step: Step) -> Ends:
        change = baselines.change_of(step, name)
        return change.get("low"), change.get("high")

    return Column(
        f"change of {metric_title(name)}",
        lambda v: numbers.points(v, scale),
        lambda s: baselines.change_of(s, name).get("delta"),
        "in points",
        f"change of {name}",
        ends=ends,
        ends_format=lambda low, high: numbers.interval(low, high, scale),
    )


def _change_from_given(name: str) -> Column:
    """What changes against the model before pruning, where steps are compared with another."""
    scale = points_in(name)
    return Column(
        f"{metric_title(name)} from θ*, points",
        lambda v: numbers.points(v, scale),
        lambda s: None if s.get("reference") else ((s.get("deltas") or {}).get(name) or {}).get("delta"),
        places=(PAGE,),
    )


def _model(step: Step, prunes: bool) -> str:
    """What a row's model is called; empty in a run of one model."""
    if prunes:
        return baselines.NAMES[baselines.role(step)]
    if "target" in step:  # of a run that makes models faster
        return speed.step_name(step)
    return str(step.get("name", ""))


def compared(spec: Step, baseline: Sequence[Step], steps: Sequence[Step]) -> str:
    """Which full model the steps are compared with, and how heads that tie are removed."""
    ties = baselines.tie_rule(spec, steps)
    if baselines.against(spec, baseline) == baselines.RETRAINED:
        return (
            "Each retrained network is compared with the full θ0, retrained in the same way with the same seed. "
            f"θ*, the model before pruning, has a row of its own.{ties}"
        )
    note = " The run did not train the full model." if baselines.retrains(spec) else ""
    return f"Every step is compared with θ*, the model before pruning.{note}{ties}"


def _three(value: float) -> str:
    return numbers.fixed(value, 3)


SWEEP_COLUMNS = (
    Column("task", value=attrgetter("task")),
    Column("algorithm", value=attrgetter("algorithm")),
    Column("score", value=attrgetter("score")),
    Column("heads removed", numbers.share, attrgetter("sparsity"), name="sparsity"),
    Column("model", baselines.NAMES.__getitem__, attrgetter("model")),
    Column("metric", value=attrgetter("metric")),
    Column("mean", _three, attrgetter("mean"), "over the seeds that are done"),
    Column("sd", _three, attrgetter("sd"), "standard deviation over the seeds"),
    Column("seeds", value=attrgetter("seeds")),
    Column("missing", value=attrgetter("missing"), meaning="seeds without this step"),
)


def sweep_table(rows: Sequence[Row]) -> Table:
    """The results of a sweep, one row per sparsity and metric."""
    return Table.of("sweep_results", SWEEP_COLUMNS, rows)


# -----------------------------------------------------------------------------------------------
# A run's metric against the share of heads removed: the points of the curve, and the figure of several curves.


@dataclass(frozen=True)
class Curve:
    """One run's metric against sparsity, for every seed."""

    name: str
    metric: str
    baseline: float | None  # of the full models that the steps are compared with, mean over seeds
    by_seed: Mapping[int, Sequence[tuple[float, float]]]  # seed -> (sparsity, value) of the steps so far
    against: str = baselines.GIVEN  # which full model that is
    unpruned: float | None = None  # θ*, where the steps are compared with another model
    constant: float | None = None  # what the best constant answer reaches

    @property
    def means(self) -> list[tuple[float, float, float | None]]:
        """(sparsity, mean, sd over seeds); sd is None with fewer than two."""
        values: dict[float, list[float]] = {}
        for points in self.by_seed.values():
            for x, y in points:
                values.setdefault(round(x, 9), []).append(y)
        return [(x, mean(v), stdev(v) if len(v) > 1 else None) for x, v in sorted(values.items())]

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
    full_role = baselines.against(run.get("spec") or {}, run["baseline"])
    by_seed: dict[int, list[tuple[float, float]]] = {}
    for step in run["steps"]:
        seed = step.get("seed")
        of_seed = by_seed.setdefault(int(seed or 0), [])
        full = baselines.full_of(run["baseline"], seed, full_role)
        for s in (full, step) if not of_seed else (step,):
            if s is not None and (value := s["metrics"].get(metric)) is not None:
                of_seed.append((s["sparsity"], value))
    full_mean = baselines.summary(run["baseline"], full_role, metric)
    unpruned = baselines.summary(run["baseline"], baselines.GIVEN, metric)
    return Curve(
        name or f"{run['title']} ({run['id']})",
        metric,
        full_mean and full_mean[0],
        {seed: of_seed for seed, of_seed in by_seed.items() if of_seed},
        full_role,
        unpruned[0] if unpruned and full_role != baselines.GIVEN else None,
        next((c for s in points if (c := (s.get("constant") or {}).get(metric)) is not None), None),
    )


def sweep_curves(children: Sequence[RunView]) -> list[Curve]:
    """One curve for each algorithm and score of a sweep, over its seeds; of several tasks each by itself."""
    groups = by_combination(children)
    several = len({task for task, _, _ in groups}) > 1
    curves = []
    for (task, algorithm, score), runs in groups.items():
        of_runs = [c for run in runs if (c := curve_of(run.to_dict())) is not None]
        if not of_runs:
            continue
        first = of_runs[0]
        full = [v for run in runs for s in full_models(run) if (v := s["metrics"].get(first.metric)) is not None]
        by_seed = {seed: points for c in of_runs for seed, points in c.by_seed.items()}
        name = f"{algorithm} by {score}" + (f", {task}" if several else "")
        curves.append(replace(first, name=name, baseline=mean(full) if full else None, by_seed=by_seed))
    return curves


def run_curves(curves: Sequence[Curve]) -> go.Figure:
    """Metric against percentage pruned, one colour per run; thin lines are seeds, bands one sd over them.

    Dashed: the full model that a run's steps are compared with; dotted: θ* where that is another one, and the best
    constant answer. Hovering tells the metric corrected for that: the share left of what the full model has above it.
    """
    fig = plotly.graph_objects.Figure()
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
            _level(fig, curve.baseline, tint, "dash", called, below=bool(curve.unpruned))
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
    baselines_shown = {round(c.unpruned, 9) for c in curves if c.unpruned is not None}
    if len(baselines_shown) == 1:
        _level(fig, baselines_shown.pop(), FAINT, "dot", baselines.NAMES[baselines.GIVEN])
    for level in {round(c.constant, 9) for c in curves if c.constant is not None}:
        constant_line(fig, level, curves[0].metric)
    fig.update_xaxes(title="heads pruned, %", range=[-2, 102], zeroline=False)
    fig.update_yaxes(title=metric_title(curves[0].metric) if curves else "", zeroline=False)
    return frame(fig, 400, top=32, showlegend=several_runs)


def _level(fig: go.Figure, value: float, colour: str, dash: str, name: str, below: bool = False) -> None:
    """A line across, named at its right end."""
    place = f"{'bottom' if below else 'top'} right"
    label = {"annotation_text": name, "annotation_position": place, "annotation_font": {"size": SMALL}}
    fig.add_hline(y=value, line={"color": colour, "dash": dash, "width": 1}, **(label if name else {}))
