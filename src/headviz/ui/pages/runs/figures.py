"""The numbers of a pruning run: its finding, one step beside the full models, and the table of all steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any, Literal

import streamlit as st

from ....runs import baselines
from ....tasks import points_in
from ...shell import show

if TYPE_CHECKING:
    from ....runs.reading import RunView

Step = dict[str, Any]


def finding(steps: Sequence[Step], metric: str) -> str:
    """Up to which share of heads the loss is not clear, and what the last step costs."""
    by_share: dict[float, list[Step]] = {}
    for s in steps:
        by_share.setdefault(round(s["sparsity"], 9), []).append(s)
    last_share, last = max(by_share.items())
    if any(s.get("against") == baselines.RETRAINED for s in last):
        return _retrained(last_share, last, metric)
    free, worst = None, None
    for share, group in sorted(by_share.items()):
        changes = [s.get("change", {}).get(metric) or {} for s in group]
        if any(c.get("high") is None for c in changes):
            return f"{metric} after removing {100 * share:.0f} % of the heads: {_mean(group, metric)}."
        if any(c["high"] < 0 for c in changes):
            worst = share
            break
        free = share
    if worst is None:
        return f"Up to {100 * last_share:.0f} % of the heads can be removed without a clear loss of {metric}."
    cost = mean(s["change"][metric]["delta"] for s in last)
    change = show.points(cost, points_in(metric))
    end = f"{metric} is {_mean(last, metric)} at {100 * last_share:.0f} % ({change} points)."
    if free is None:
        return f"Already the first step costs {metric}: {end}"
    return f"Up to {100 * free:.0f} % of the heads can be removed without a clear loss; {end}"


def _retrained(share: float, group: Sequence[Step], metric: str) -> str:
    """Retrained pruned models against the full model retrained in the same way, seed by seed. There is no interval."""
    said = f"With {100 * share:.0f} % of the heads removed and retrained, {metric} is {_mean(group, metric)}"
    scale = points_in(metric)
    pairs = [
        (s["metrics"][metric] - d, d) for s in group if (d := (s["change"].get(metric) or {}).get("delta")) is not None
    ]
    if not pairs:
        return f"{said}; the full θ0 retrained in the same way is not measured yet."
    changes = [d for _, d in pairs]
    full = show.metric(mean(f for f, _ in pairs), scale)
    change = show.points(mean(changes), scale)
    if len(changes) == 1:
        return f"{said}; the full θ0 retrained in the same way reaches {full} ({change} points, one seed)."
    spread = f"{change} ± {show.points(stdev(changes), scale).lstrip('+')} points over {len(changes)} seeds"
    return f"{said}; the full θ0 retrained in the same way reaches {full} ({spread})."


def _mean(group: Sequence[Step], metric: str) -> str:
    known = [s["metrics"][metric] for s in group if s["metrics"].get(metric) is not None]
    return show.metric(mean(known), points_in(metric)) if known else "undefined"


def boxes(view: RunView, step: Step, metric: str) -> None:
    """The step's numbers, those of the full model it is compared with, and those of θ* where that is another model."""
    which = baselines.against(view.record.spec, view.baseline)
    full = baselines.full_of(view.baseline, step.get("seed"), which)
    given = baselines.full_of(view.baseline, None, baselines.GIVEN)
    change = step.get("change", {}).get(metric) or {}
    delta, low, high = (change.get(k) for k in ("delta", "low", "high"))
    scale = points_in(metric)
    note = f"Against {baselines.WORDS[which]}."
    if low is not None:
        note += f" 95 % interval of the change: {show.points(low, scale)} to {show.points(high, scale)} points"
    elif delta is not None:
        note += " With one seed nobody knows how much two trainings differ by chance."
    changed = None if delta is None else (f"{show.points(delta, scale)} points" if delta else "unchanged")
    shown: list[tuple[str, str, str | None]] = [(metric, _value(step["metrics"].get(metric), metric), changed)]
    if full is not None and which == baselines.RETRAINED:
        shown.append((baselines.NAMES[which], _value(full["metrics"].get(metric), metric), "the same seed"))
    if given is not None:
        agreement = step.get("agreement")
        said = None if agreement is None else f"{100 * agreement:.0f} % same answers"
        shown.append((baselines.NAMES[baselines.GIVEN], _value(given["metrics"].get(metric), metric), said))
    if "heads_off" in step:
        shown.append(("heads removed", f"{step['heads_off']}", f"{100 * step['sparsity']:.1f} %"))
    if given is not None and step.get("parameters") and given.get("parameters"):
        less = _less(step["parameters"], given["parameters"]), f"FLOPs {_less(step['flops'], given['flops'])}"
        shown.append(("parameters", *less))
    with st.container(horizontal=True, gap="medium"):
        for i, (name, value, below) in enumerate(shown):
            colour, told = ("gray", None) if i else (tone(low, high), note)
            st.metric(name, value, below, delta_color=colour, delta_arrow="off", width="content", help=told)


def tone(low: float | None, high: float | None) -> Literal["orange", "blue", "gray"]:
    """Orange for a clear loss, blue for a clear gain, grey within chance or without an interval."""
    if low is None or high is None or low <= 0 <= high:
        return "gray"
    return "orange" if high < 0 else "blue"


def _value(value: float | None, metric: str) -> str:
    return "undefined" if value is None else show.metric(value, points_in(metric))


def _less(now: int, before: int) -> str:
    return f"{100 * (now / before - 1):+.1f} %".replace("-", "−").replace("+0.0", "±0").replace("−0.0", "±0")


def rows(view: RunView, names: Sequence[str]) -> tuple[list[str], list[list[Any]]]:
    """Header and rows of the table: the full models first, then every step."""
    several = len({s.get("seed") for s in view.steps}) > 1
    anew = baselines.against(view.record.spec, view.baseline) == baselines.RETRAINED
    metric, scale = names[0], points_in(names[0])
    changed = ["change, points", "from θ*, points"] if anew else ["change, points", "low", "high"]
    header = ["model", *(["seed"] if several else []), "heads removed, %", *names, *changed, "seconds", "mask"]
    out = []
    for s in (*baselines.distinct(view.baseline), *view.steps):
        change = s.get("change", {}).get(metric) or {}
        ends: list[Any] = [change.get(k) for k in ("delta", "low", "high")]
        if anew:
            away = (s.get("deltas", {}).get(metric) or {}).get("delta")
            ends = [ends[0], None if s.get("reference") else away]
        out.append(
            [
                baselines.NAMES[baselines.role(s)],
                *([None if s.get("reference") else s.get("seed")] if several else []),
                100 * s["sparsity"],
                *(s["metrics"].get(n) for n in names),
                *(None if v is None else scale * v for v in ends),
                s["seconds"],
                s["mask"],
            ]
        )
    return header, out


def table(view: RunView, names: Sequence[str]) -> None:
    """Every model of the run."""
    header, body = rows(view, names)
    anew = baselines.against(view.record.spec, view.baseline) == baselines.RETRAINED
    against = (
        f"the change of {names[0]} is against the full θ0 retrained with the same seed; the next column is against θ*"
        if anew
        else f"the change of {names[0]} is against θ* as given, with its 95 % interval"
    )
    show.table(header, body, "run_steps", cells=digits(header), caption=f"Every model of the run; {against}.")


def digits(header: Sequence[str]) -> dict[str, Callable[[Any], str]]:
    """How the columns of numbers are written. The CSV has every digit."""
    words = ("model", "seed", "mask", "task", "algorithm", "score", "metric", "seeds", "missing")
    signed = ("change, points", "from θ*, points", "low", "high")
    plain = ("heads removed, %", "seconds")
    return {
        h: (lambda v: show.points(v, 1)) if h in signed else _fixed(1) if h in plain else _fixed(3)
        for h in header
        if h not in words
    }


def _fixed(places: int) -> Callable[[Any], str]:
    def write(value: float | None) -> str:
        return "–" if value is None or value != value else f"{value:.{places}f}".replace("-", "−")

    return write
