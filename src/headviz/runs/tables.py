"""The tables of runs: the models of a run's steps, and the results of a sweep. Each place that shows them draws these.

A new column is one line of ``step_columns`` or ``SWEEP_COLUMNS``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from operator import attrgetter
from typing import Any

from ..answers.metrics import METRICS
from ..display import numbers
from ..display.figures import speed
from ..display.table import FILES, PAGE, PLACES, TERMINAL, Column, Ends, Table
from ..pruning import baselines
from ..tasks import points_in
from .reading import Row
from .record import PRUNE

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
    columns = (
        (any(_model(s, prunes) for s in models), Column("model", value=lambda s: _model(s, prunes))),
        (several, Column("seed", value=lambda s: None if s.get("reference") else s.get("seed"))),
        (True, _plain("heads removed", "sparsity", numbers.share, "the share of all heads", sized)),
        ("tied" in has, _plain("heads tied", "tied", meaning="heads whose score is that of another", places=tied)),
        *((True, _metric(n)) for n in names),
        *((True, _change(n)) for n in names if prunes),
        *((True, _away(n)) for n in names[:1] if retrained),
        (prunes, Column("against", value=lambda s: baselines.NAMES.get(s.get("against", "")), places=DETAIL)),
        ("heads_off" in has, _plain("heads off", "heads_off", places=detail)),
        ("agreement" in has, _plain("same answers", "agreement", numbers.share, "as the full model", detail)),
        ("parameters" in has, _plain("parameters", "parameters", "{:,}".format)),
        ("flops" in has, _plain("FLOPs", "flops", "{:.3g}".format, places=detail)),
        ("speedup" in has, _plain("speedup", "speedup", "×{:.2f}".format, places=detail)),
        (True, _plain("time", "seconds", numbers.span)),
        ("mask" in has, _plain("mask", "mask", str, "in hexadecimal digits, 1 = on", (TERMINAL, PAGE, FILES))),
    )
    return [column for wanted, column in columns if wanted]


def _plain(title: str, field: str, form: Any = "", meaning: str = "", places: Collection[str] = PLACES) -> Column:
    """A field of a step; of two numbers, before and after, the latter."""

    def value(step: Step) -> Any:
        found = step.get(field)
        return found[-1] if isinstance(found, list | tuple) else found

    return Column(title, form, value, meaning, name=field, places=places)


def _metric(name: str) -> Column:
    """A metric; other kinds of runs than those that prune may have metrics of their own."""
    known = METRICS.get(name.split("-")[0])
    scale = 100 if known is None else known.points
    return Column(
        name,
        lambda v: numbers.metric(v, scale),
        lambda s: s["metrics"].get(name),
        ends=lambda s: tuple((s.get("intervals") or {}).get(name) or (None, None)),
    )


def _change(name: str) -> Column:
    """What changes against the full model that the step is compared with."""
    scale = points_in(name)

    def change(step: Step, end: str) -> float | None:
        found: float | None = ((step.get("change") or {}).get(name) or {}).get(end)
        return found

    def ends(step: Step) -> Ends:
        return change(step, "low"), change(step, "high")

    return Column(
        f"change of {name}",
        lambda v: numbers.points(v, scale),
        lambda s: change(s, "delta"),
        "in points",
        ends=ends,
        ends_format=lambda low, high: numbers.interval(low, high, scale),
    )


def _away(name: str) -> Column:
    """What changes against the model as it was given, where steps are compared with another."""
    scale = points_in(name)
    return Column(
        f"{name} from θ*, points",
        lambda v: numbers.points(v, scale),
        lambda s: None if s.get("reference") else ((s.get("deltas") or {}).get(name) or {}).get("delta"),
        places=(PAGE,),
    )


def _model(step: Step, prunes: bool) -> str:
    """What a row's model is called; empty in a run of one model."""
    if prunes:
        return baselines.NAMES[baselines.role(step)]
    if "target" in step:  # of a run that makes models faster
        return f"{step['target']:g}× as fast (removed: {speed.NAMES[step['remove']]})"
    return str(step.get("name", ""))


def compared(spec: Step, baseline: Sequence[Step], steps: Sequence[Step]) -> str:
    """Which full model the steps are compared with, and how heads that tie are removed."""
    ties = baselines.tie_rule(spec, steps)
    if baselines.against(spec, baseline) == baselines.RETRAINED:
        return (
            "Each retrained network is compared with the full θ0, retrained in the same way with the same seed. "
            f"θ*, the model as it was given, has a row of its own.{ties}"
        )
    note = " The run did not train the full model." if baselines.retrains(spec) else ""
    return f"Every step is compared with θ*, the model as it was given.{note}{ties}"


def _of(field: str) -> Callable[[Row], Any]:
    return attrgetter(field)


def _three(value: float) -> str:
    return numbers.fixed(value, 3)


SWEEP_COLUMNS = (
    Column("task", value=_of("task")),
    Column("algorithm", value=_of("algorithm")),
    Column("score", value=_of("score")),
    Column("heads removed", numbers.share, _of("sparsity"), name="sparsity"),
    Column("model", baselines.NAMES.__getitem__, _of("model")),
    Column("metric", value=_of("metric")),
    Column("mean", _three, _of("mean"), "over the seeds that are done"),
    Column("sd", _three, _of("sd"), "standard deviation over the seeds"),
    Column("seeds", value=_of("seeds")),
    Column("missing", value=_of("missing"), meaning="seeds without this step"),
)


def sweep_table(rows: Sequence[Row]) -> Table:
    """The results of a sweep, one row per sparsity and metric."""
    return Table.of("sweep_results", SWEEP_COLUMNS, rows)
