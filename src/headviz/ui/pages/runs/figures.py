"""The numbers of a pruning run: one step beside the full models, every step as a table, of which metric or task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from ....runs import baselines
from ....runs.tables import step_table
from ....tasks import points_in
from ...shell import show

if TYPE_CHECKING:
    from ....runs.reading import RunView

Step = dict[str, Any]


def chosen(label: str, names: Sequence[str], key: str) -> str:
    """The name that a figure is about. It is asked for only where there are several."""
    if len(names) == 1:
        return names[0]
    wanted = st.segmented_control(
        show.plain(label), names, format_func=show.plain, default=names[0], required=True, key=key
    )
    return wanted or names[0]


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
        note += f" 95 % interval of the change: {show.low_end(low, scale)} to {show.high_end(high, scale)} points"
    elif delta is not None:
        note += " With one seed nobody knows how much two trainings differ by chance."
    changed = "" if delta is None else (f"{show.points(delta, scale)} points" if delta else "unchanged")
    shown: list[tuple[str, str, str]] = [(metric, _value(step["metrics"].get(metric), metric), changed)]
    if full is not None and which == baselines.RETRAINED:
        shown.append((baselines.NAMES[which], _value(full["metrics"].get(metric), metric), "the same seed"))
    if given is not None:
        agreement = step.get("agreement")
        said = "" if agreement is None else f"{100 * agreement:.0f} % same answers"
        shown.append((baselines.NAMES[baselines.GIVEN], _value(given["metrics"].get(metric), metric), said))
    if "heads_off" in step:
        shown.append(("heads removed", str(step["heads_off"]), f"{100 * step['sparsity']:.1f} %"))
    if given is not None and step.get("parameters") and given.get("parameters"):
        less = show.less(step["parameters"], given["parameters"]), f"FLOPs {show.less(step['flops'], given['flops'])}"
        shown.append(("parameters", *less))
    with st.container(horizontal=True, gap="medium"):
        for i, (name, value, below) in enumerate(shown):
            told = "" if i else note
            st.metric(
                show.plain(name),
                show.plain(value),
                show.plain(below),
                delta_color="gray" if i else show.tone(low, high),
                delta_arrow="off",
                width="content",
                help=show.plain(told),
            )


def _value(value: float | None, metric: str) -> str:
    return "undefined" if value is None else show.metric(value, points_in(metric))


def table(view: RunView) -> None:
    """Every model of the run."""
    show.result_table(step_table(view.record.kind, view.record.spec, view.baseline, view.steps))
