"""A pruning run: its curve, the order in which heads went, and one step to take along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import streamlit as st

from ..errors import UserError
from ..heads import HeadId, HeadMask
from ..palette import Scale
from ..tasks import points_in
from . import frame, loaders, runmaps, runsave, show, state, ticketview
from .grid import Look, head_grid
from .runsource import look_at
from .runstate import state_of

if TYPE_CHECKING:
    from ..runs.reading import RunView

Step = dict[str, Any]
TABS = ("Steps", "One example", "Save the model", "Winning tickets")


def detail(view: RunView, others: Sequence[RunView] = ()) -> None:
    """Everything below the state line."""
    if not view.steps:
        if view.baseline:
            st.info(
                "The full model is measured; the first step is under way.", icon=":material/hourglass_top:"
            )
        elif view.state in ("running", "queued"):
            st.info("The curve appears with the first step. You may leave: the run goes on.",
                    icon=":material/hourglass_top:")  # fmt: skip
        return
    names = list(view.steps[-1]["metrics"])
    show.finding(finding(view.steps, names[0]))
    left, right = st.columns([3, 2], gap="large")
    with left:
        _curves([view, *others], names)
    with right:
        order(view)
    step = _choose(view)
    _figures(view, step, names[0])
    if frame.controls():
        st.button(
            "Open its mask in the Mask lab", key="run_open", icon=":material/grid_on:",
            on_click=_open, args=(view.record.spec, step["mask"]),
        )  # fmt: skip
        if st.session_state.pop("run_go", False):
            st.switch_page("pages/masklab.py")
    tabs = state.tabs(TABS[:3] if not ticketview.retrains(view) else TABS, "run_tabs")
    parts = (lambda: _table(view, names), lambda: runmaps.example(view, step), lambda: runsave.form(view, step),
             lambda: ticketview.tickets([view]))  # fmt: skip
    for tab, part in zip(tabs, parts, strict=False):
        if tab.open:
            with tab:
                part()


def finding(steps: Sequence[Step], metric: str) -> str:
    """How far the pruning costs nothing that could be told from chance, and what the last step costs."""
    by_share: dict[float, list[Step]] = {}
    for s in steps:
        by_share.setdefault(round(s["sparsity"], 9), []).append(s)
    free, worst = None, None
    for share, group in sorted(by_share.items()):
        changes = [s.get("deltas", {}).get(metric) or {} for s in group]
        if any(c.get("high") is None for c in changes):
            return f"{metric} after removing {100 * share:.0f} % of the heads: {_mean(group, metric)}."
        if any(c["high"] < 0 for c in changes):
            worst = share
            break
        free = share
    last_share, last = max(by_share.items())
    if worst is None:
        return f"Up to {100 * last_share:.0f} % of the heads are gone without a clear loss of {metric}."
    cost = sum(s["deltas"][metric]["delta"] for s in last) / len(last)
    change = show.points(cost, points_in(metric))
    end = f"{metric} is {_mean(last, metric)} at {100 * last_share:.0f} % ({change} points)."
    if free is None:
        return f"Every step costs {metric}: {end}"
    return f"Up to {100 * free:.0f} % of the heads go without a clear loss; {end}"


def _mean(group: Sequence[Step], metric: str) -> str:
    known = [s["metrics"][metric] for s in group if s["metrics"].get(metric) is not None]
    return show.metric(sum(known) / len(known), points_in(metric)) if known else "undefined"


def _curves(views: Sequence[RunView], names: Sequence[str]) -> None:
    from ..charts_runs import curve_of, run_curves

    metric = names[0]
    if len(names) > 1:
        metric = (
            st.segmented_control("Metric", names, default=names[0], required=True, key="run_metric")
            or names[0]
        )
    curves = [c for v in views if (c := curve_of(v.to_json(), metric)) is not None]
    show.figure(
        run_curves(curves), "run_curves",
        f"{metric} against the share of heads removed; dashed, the model with every head."
        + (" Thin lines are seeds, the band one standard deviation." if len({s.get("seed") for s in views[0].steps}) > 1
           else ""),
    )  # fmt: skip
    if frame.controls():
        _beside(views)


def _beside(views: Sequence[RunView]) -> None:
    """Other runs on the same picture."""
    from . import runsview

    first = views[0].record
    others = [
        r for r in runsview.overview() if r.record.kind == "prune" and r.steps and r.record.id != first.id
    ]
    able = runsview.labels(others)
    if not able:
        return
    now = [v.record.id for v in views[1:] if v.record.id in able]
    st.session_state["run_beside"] = now
    st.multiselect(
        "Compare with", list(able), key="run_beside", format_func=lambda i: able.get(i, i),
        placeholder="other runs on the same picture", on_change=_compare, args=(first.id,),
    )  # fmt: skip


def _compare(run_id: str) -> None:
    state.update(run=",".join([run_id, *st.session_state["run_beside"]]))


# ---- the order in which heads went


def survival(steps: Sequence[Step], layers: int, heads: int) -> np.ndarray:
    """The largest share of heads removed at which each head is still there, 0 = gone at the first step; one seed's."""
    values = np.zeros((layers, heads))
    for s in steps:
        for h in HeadMask.from_hex(s["mask"], layers, heads).kept:
            values[h] = max(values[h], s["sparsity"])
    return values


def order(view: RunView) -> None:
    """Each head by how long it was kept; a click chooses the head whose maps are shown below."""
    known = state_of(view)
    if known is None:
        return
    size = (known.num_layers, known.num_heads)
    seed = view.steps[0].get("seed")
    own = [s for s in view.steps if s.get("seed") == seed]
    values = survival(own, *size)
    shares = sorted({s["sparsity"] for s in own})
    top = shares[-1]
    gone = {h: _gone(own, h, size) for h in (HeadId(i, j) for i in range(size[0]) for j in range(size[1]))}
    full = HeadMask.full(*size)
    head_grid(
        "run_order", full, values, selected=state.head(full),
        tips={"": [[gone[HeadId(i, j)] for j in range(size[1])] for i in range(size[0])]},
        look=Look(name="still there at, share of heads removed", scale=Scale(0.0, top, False), width=26,
                  file="headviz-order"),
        on_select=_select,
    )  # fmt: skip
    first = f", seed {seed}" if len({s.get("seed") for s in view.steps}) > 1 else ""
    st.caption(
        f"Heads that stand out were kept longest, faint ones went first{first}. Choose one to follow its maps."
    )


def _gone(steps: Sequence[Step], head: HeadId, size: tuple[int, int]) -> str:
    off = [s["sparsity"] for s in steps if head in HeadMask.from_hex(s["mask"], *size).off]
    return f"removed at {100 * min(off):.0f} %" if off else "still there"


def _select(head: HeadId) -> None:
    state.update(head=head.dotted)


# ---- one step


def _choose(view: RunView) -> Step:
    """The step that is looked at: by its share of heads, and its seed where there are several."""
    seeds = list(dict.fromkeys(s.get("seed") for s in view.steps))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        seed = seeds[0]
        if len(seeds) > 1:
            seed = st.selectbox("Seed", seeds, key="run_seed", width=90)
        own = {int(s["step"]): s for s in view.steps if s.get("seed") == seed} or {
            int(s["step"]): s for s in view.steps
        }
        now = state.view().step
        st.session_state["run_step"] = now if now in own else max(own)
        choose: Any = st.selectbox if len(own) > 12 else st.segmented_control
        more: dict[str, Any] = {} if len(own) > 12 else {"required": True, "wrap": True}
        choose("After removing", list(own), key="run_step", on_change=_step,
               format_func=lambda k: f"{100 * own[k]['sparsity']:.0f} %" if k in own else str(k), **more)  # fmt: skip
    return own[st.session_state["run_step"] if st.session_state["run_step"] in own else max(own)]


def _step() -> None:
    state.update(step=int(st.session_state["run_step"] or 0))


def _figures(view: RunView, step: Step, metric: str) -> None:
    """The step against the full model."""
    full = view.baseline[0] if view.baseline else None
    change = step.get("deltas", {}).get(metric) or {}
    delta, low, high = (change.get(k) for k in ("delta", "low", "high"))
    scale = points_in(metric)
    boxes = st.container(horizontal=True, gap="medium")
    boxes.metric(
        metric, _value(step["metrics"].get(metric), metric),
        None if delta is None else (f"{show.points(delta, scale)} points" if delta else "unchanged"),
        delta_color=tone(low, high), delta_arrow="off", width=150,
        help=None if low is None
        else f"95 % interval of the change: {show.points(low, scale)} to {show.points(high, scale)} points",
    )  # fmt: skip
    if full is not None:
        agreement = step.get("agreement")
        boxes.metric(
            "full model", _value(full["metrics"].get(metric), metric),
            None if agreement is None else f"{100 * agreement:.0f} % same answers",
            delta_color="gray", delta_arrow="off", width=150,
        )  # fmt: skip
    if "heads_off" in step:
        boxes.metric("heads removed", f"{step['heads_off']}", f"{100 * step['sparsity']:.1f} %", delta_color="gray",
                        delta_arrow="off", width=150)  # fmt: skip
    if full is not None and step.get("parameters") and full.get("parameters"):
        boxes.metric(
            "parameters", _less(step["parameters"], full["parameters"]),
            f"FLOPs {_less(step['flops'], full['flops'])}", delta_color="gray", delta_arrow="off", width=150,
        )  # fmt: skip


def tone(low: float | None, high: float | None) -> Literal["orange", "blue", "gray"]:
    """Orange for a clear loss, blue for a clear gain, grey within chance or where no interval is known."""
    if low is None or high is None or low <= 0 <= high:
        return "gray"
    return "orange" if high < 0 else "blue"


def _value(value: float | None, metric: str) -> str:
    return "undefined" if value is None else show.metric(value, points_in(metric))


def _less(now: int, before: int) -> str:
    return f"{100 * (now / before - 1):+.1f} %".replace("-", "−").replace("+0.0", "±0")


def _table(view: RunView, names: Sequence[str]) -> None:
    several = len({s.get("seed") for s in view.steps}) > 1
    header = [*(["seed"] if several else []), "heads removed, %", *names, "change, points", "low", "high", "seconds",
              "mask"]  # fmt: skip
    rows = []
    for s in view.steps:
        d = s.get("deltas", {}).get(names[0]) or {}
        ends = [None if d.get(k) is None else points_in(names[0]) * d[k] for k in ("delta", "low", "high")]
        rows.append([*([s.get("seed")] if several else []), 100 * s["sparsity"],
                     *(s["metrics"].get(n) for n in names), *ends, s["seconds"], s["mask"]])  # fmt: skip
    show.table(
        header, rows, "run_steps", column_config=show_digits(header),
        caption=f"Every step; the change of {names[0]} against the full model with its 95 % interval.",
    )  # fmt: skip


def show_digits(header: Sequence[str]) -> dict[str, Any]:
    """How many decimals the table shows; its CSV has them all."""
    one = ("heads removed, %", "change, points", "low", "high", "seconds")
    return {h: st.column_config.NumberColumn(format="%.1f" if h in one else "%.3f") for h in header if h not in
            ("seed", "mask", "task", "algorithm", "score", "metric", "seeds", "missing")}  # fmt: skip


def _open(spec: dict[str, Any], mask: str) -> None:
    """The mask on the run's own model and data."""
    try:
        look_at(spec)
        present = loaders.shape(state.view()).present
        state.set_mask(HeadMask.from_hex(mask, present.num_layers, present.num_heads))
        st.session_state["run_go"] = True
    except UserError as wrong:
        state.notify(str(wrong))
