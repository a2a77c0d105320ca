"""The steps of a run as tables: all numbers for files, a selection for the report's page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..display import numbers
from ..display.figures import speed
from ..evaluation.verdict import points_up
from ..runs import baselines
from ..runs.record import PRUNE
from ..tasks import points_in

if TYPE_CHECKING:
    from ..runs.reading import RunView

Table = tuple[tuple[str, ...], list[Sequence[Any]]]  # header, rows


def table(view: RunView, full: bool) -> Table:
    """One row per model, the full ones first, each named; ``full`` = every column. Shares are of 1, changes too."""
    steps = [*baselines.distinct(view.baseline), *view.steps]
    names = _metrics(steps)
    prunes, several = view.record.kind == PRUNE, _several(steps)
    wide = [
        n for n in ("heads_off", "tied", "agreement", "parameters", "flops", "speedup") if any(n in s for s in steps)
    ]
    named = [_model(s, prunes) for s in steps]
    header: tuple[str, ...] = (*(("model",) if any(named) else ()), *(("seed",) if several else ()), "sparsity", *names)
    if prunes:
        header += (*(f"change of {n}" for n in names), "against")
    header += (*wide, "seconds")
    if full:
        header += ("mask", *_ends(names), *(_ends([f"change of {n}" for n in names]) if prunes else ()))
    rows: list[Sequence[Any]] = []
    for s, name in zip(steps, named, strict=True):
        row = [
            *((name,) if any(named) else ()),
            *((_seed(s),) if several else ()),
            s.get("sparsity"),
            *(s["metrics"].get(n) for n in names),
        ]
        if prunes:
            row += [*(_change(s, n).get("delta") for n in names), baselines.NAMES.get(s.get("against", ""))]
        row += [*(_last(s.get(n)) for n in wide), s.get("seconds")]
        if full:
            bounds = s.get("intervals") or {}
            row += [s.get("mask"), *(v for n in names for v in (bounds.get(n) or (None, None)))]
            row += [_change(s, n).get(end) for n in names for end in ("low", "high")] if prunes else []
        rows.append(row)
    return header, rows


def _ends(names: Sequence[str]) -> list[str]:
    return [f"{n} {end}" for n in names for end in ("low", "high")]


def _model(step: Mapping[str, Any], prunes: bool) -> str:
    """What a row's model is called; empty in a run of one model."""
    if prunes:
        return baselines.NAMES[baselines.role(step)]
    if "target" in step:  # of a run that makes models faster
        return f"{step['target']:g}× as fast (removed: {speed.NAMES[step['remove']]})"
    return str(step.get("name", ""))


def _last(value: Any) -> Any:
    """What is left, where a run notes a number before and after."""
    return value[-1] if isinstance(value, list | tuple) else value


def for_people(view: RunView) -> Table:
    """The steps of a pruning run for a report's page or a paper: intervals beside metrics, and changes in points."""
    steps = [*baselines.distinct(view.baseline), *view.steps]
    names, several = _metrics(steps), _several(steps)
    header = (
        "model",
        *(("seed",) if several else ()),
        "heads removed",
        *(("heads tied",) if (ties := baselines.ties(steps)) else ()),
        *(f"{n} [95 %]" for n in names),
        *(f"change of {n}, points" for n in names),
        "parameters",
        "time",
    )
    rows: list[Sequence[Any]] = []
    for s in steps:
        rows.append(
            [
                baselines.NAMES[baselines.role(s)],
                *((_seed(s),) if several else ()),
                f"{100 * s['sparsity']:.1f} %",
                *((s.get("tied"),) if ties else ()),
                *(_with_interval(s, n) for n in names),
                *(_points_with_interval(_change(s, n), n) for n in names),
                s.get("parameters"),
                numbers.span(s["seconds"]),
            ]
        )
    return header, rows


def compared(view: RunView) -> str:
    """Which full model the steps are compared with, and how heads that tie are removed."""
    ties = baselines.tie_rule(view.record.spec, view.steps)
    which = baselines.against(view.record.spec, view.baseline)
    if which == baselines.RETRAINED:
        return (
            "Each retrained network is compared with the full θ0, retrained in the same way with the same seed. "
            f"θ*, the model as it was given, has a row of its own.{ties}"
        )
    note = " The run did not train the full model." if baselines.retrains(view.record.spec) else ""
    return f"Every step is compared with θ*, the model as it was given.{note}{ties}"


def tickets(found: Sequence[Mapping[str, Any]], metric: str) -> Table:
    """The winning tickets of a run's summary; one seed has no spread, so it has none."""
    header: tuple[str, ...]
    header = ("heads removed", f"{metric}, mean", "sd", f"full model's {metric}, mean", "sd", "seeds", "wins")
    tests = [t["within"] for t in found if t["within"] is not None]
    header += ("loss excluded, points", f"within {tests[0]['margin']:g} points") if tests else ()
    flat = any(t.get("remark") for t in found)
    header += ("answers",) if flat else ()
    words = {True: "yes", False: "no", None: "not known: one seed"}
    failed = next((i for i, t in enumerate(found) if not (t["within"] or {}).get("within")), None)
    rows: list[Sequence[Any]] = [
        [
            f"{100 * t['sparsity']:.1f} %",
            *(value(t[k], metric) for k in ("mean", "sd", "full_mean", "full_sd")),
            t["seeds"],
            words[t["winning"]],
            *(() if not tests else ("–", "not tested") if failed is not None and i > failed else _margin(t["within"])),
            *((t.get("remark"),) if flat else ()),
        ]
        for i, t in enumerate(found)
    ]
    return header, rows


def _margin(test: Mapping[str, Any] | None) -> tuple[str, str]:
    """The loss that is excluded, and whether it is within the margin; a dash with too few seeds."""
    if test is None or test["within"] is None:
        return "–", "not known"
    return points_up(test["excludes"]), "yes" if test["within"] else "no"


def training(options: Mapping[str, Any]) -> str:
    """The options of a fine-tuning in one sentence, without those that are not used."""
    said = ((k.replace("_", " "), v) for k, v in options.items() if v not in (None, False, "", [], ()))
    return ", ".join(k if v is True else f"{k} {v:g}" if isinstance(v, float) else f"{k} {v}" for k, v in said)


def value(number: float | None, metric: str) -> str | None:
    """Three decimals of a share, two of points."""
    return None if number is None else numbers.metric(number, points_in(metric))


def points(change: float | None, metric: str) -> str | None:
    """A difference in points with its sign; never -0."""
    return None if change is None else numbers.points(change, points_in(metric))


def _with_interval(step: Mapping[str, Any], name: str) -> str | None:
    shown = value(step["metrics"].get(name), name)
    low, high = (value(v, name) for v in (step.get("intervals") or {}).get(name) or (None, None))
    return shown if shown is None or low is None else f"{shown} [{low}, {high}]"


def _points_with_interval(change: Mapping[str, Any], metric: str) -> str | None:
    delta = change.get("delta")
    return None if delta is None else numbers.change(delta, change.get("low"), change.get("high"), points_in(metric))


def _metrics(steps: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(n for s in steps for n in s["metrics"]))


def _several(steps: Sequence[Mapping[str, Any]]) -> bool:
    return len({s.get("seed") for s in steps if not s.get("reference")}) > 1


def _seed(step: Mapping[str, Any]) -> Any:
    """The seed of a row; the given model has none."""
    return None if step.get("reference") else step.get("seed")


def _change(step: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (step.get("change") or {}).get(name) or {}
    return found
