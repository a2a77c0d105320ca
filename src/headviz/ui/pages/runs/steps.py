"""A pruning run: its curve, the order in which heads were removed, and one step in detail."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from .... import plugins
from ....display.figures.palette import Scale
from ....errors import UserError
from ....heads import HeadId, HeadMask
from ....runs import baselines
from ....runs.finding import can_go, finding
from ...parts import recorded
from ...shell import frame, loaders, show, state
from ...shell.tables import TABS
from ...widgets.grid import Look
from . import figures as runfigures
from . import head_table as tableview
from . import step_maps as runmaps
from . import take_away as runsave
from .checkpoint import state_of
from .source import look_at

if TYPE_CHECKING:
    from ....plugins import Tab
    from ....runs.reading import RunView

Step = dict[str, Any]
OWN = ("Steps", "One example", "Save the model")


def detail(view: RunView, others: Sequence[RunView] = ()) -> None:
    """Everything below the state line."""
    if not view.steps:
        before_first(view)
        return
    names = list(view.steps[-1]["metrics"])
    show.finding(finding(view.steps, names[0], state.view().margin))
    if frame.controls():
        state.margin()
    left, right = st.columns([3, 2], gap="large")
    with left:
        _curves([view, *others], names)
    with right:
        order(view)
    step = _choose(view)
    runfigures.boxes(view, step, names[0])
    if frame.controls():
        _ways_on(view, step)
        if st.session_state.pop("run_go", False):
            st.switch_page("pages/masklab.py")
    more = tabs_of(view)
    titles = (
        OWN[:1] if recorded.of(view.record.id) else (*OWN, *(show.plain(tab.title) for tab in more))
    )  # no files: only steps
    tabs = state.tabs(titles, "run_tabs")
    parts: list[Callable[[], Any]] = [
        lambda: runfigures.table(view),
        lambda: runmaps.example(view, step),
        lambda: runsave.form(view, step),
        *(partial(plugins.function(tab.draw), [view]) for tab in more),
    ]
    for tab, part in zip(tabs, parts, strict=False):
        if tab.open:
            with tab:
                part()


def tabs_of(view: RunView) -> list[Tab]:
    """The tabs of a run that came through the plugins' door."""
    of_kind = (tab for tab in TABS.values() if tab.of == view.record.kind)
    return [tab for tab in of_kind if tab.shown is None or plugins.function(tab.shown)(view)]


def before_first(view: RunView) -> None:
    """The message for a run that has no step yet, by its state."""
    from ....runs.states import ACTIVE, QUEUED

    known = [baselines.NAMES[baselines.role(s)] for s in baselines.distinct(view.baseline)]
    measured = f"So far measured: {', '.join(dict.fromkeys(known))}." if known else "Nothing is measured yet."
    if view.state in ACTIVE and view.state != "cancelling":
        more = "The first step is being computed." if known else "The curve appears with the first step."
        said = f"{measured} {more} You may leave this page; the run continues."
        st.info(show.plain(said), icon=":material/hourglass_top:")
    elif view.state == QUEUED:
        st.info(
            "The curve appears with the first step. You may leave this page; the run starts in its turn.",
            icon=":material/hourglass_top:",
        )
    else:
        st.info(show.plain(f"{measured} The run has no steps."), icon=":material/info:")


def _curves(views: Sequence[RunView], names: Sequence[str]) -> None:
    from ....runs.curves import curve_of, run_curves

    metric = runfigures.chosen("Metric", names, "run_metric")
    sizes = [dev_size(v) for v in views]
    differ = unlike(views, sizes)
    called = [
        f"{v.record.title} ({v.record.id}{f', n = {n:,}' if differ and n else ''})"
        for v, n in zip(views, sizes, strict=True)
    ]
    found = (curve_of(v.to_dict(), metric, name) for v, name in zip(views, called, strict=True))
    curves = [c for c in found if c is not None]
    level = " or ".join(dict.fromkeys(baselines.WORDS[c.against] for c in curves))
    show.figure(
        run_curves(curves),
        "run_curves",
        f"{metric}{_counted(sizes)} against the share of heads removed; dashed, {level}; dotted, one class for all. "
        "Hover for the share that is left above it."
        + (
            " Thin lines are seeds, the band one standard deviation."
            if len({s.get("seed") for s in views[0].steps}) > 1
            else ""
        ),
    )
    if differ:
        st.warning(show.plain(differ), icon=":material/warning:")
    if frame.controls():
        _beside(views)


def _counted(sizes: Sequence[int | None]) -> str:
    """On how many examples, where that is one number."""
    (known, *more) = dict.fromkeys(sizes)
    return "" if more or known is None else f" on {known:,} dev examples"


def dev_size(view: RunView) -> int | None:
    """The number of examples that the run's models were evaluated on."""
    known = state_of(view)
    if known is not None:
        return len(known.logits[known.reference.logits])
    return sum((view.steps[-1].get("predicted") or {}).values()) or None if view.steps else None


def unlike(views: Sequence[RunView], sizes: Sequence[int | None]) -> str:
    """Why the curves in one figure cannot be compared point by point; empty if they can."""
    specs = [v.record.spec for v in views]
    tasks = list(dict.fromkeys(str(s.get("task")) for s in specs))
    if len(tasks) > 1:
        return f"These runs are of different tasks ({', '.join(tasks)}): their heights cannot be compared."
    named = ("data", "dev_split", "dev_limit", "text_columns", "label_column")
    if len({tuple(str(s.get(name)) for name in named) for s in specs}) == 1 and len(set(sizes)) == 1:
        return ""
    counts = ", ".join("not known" if n is None else f"{n:,}" for n in sizes)
    return (
        f"These runs were measured on different dev examples (n = {counts}), which explains a part of the distance "
        "between their curves."
    )


def _beside(views: Sequence[RunView]) -> None:
    """A field to add other runs to the figure."""
    from . import listing as runsview

    first = views[0].record
    others = [r for r in runsview.overview() if r.record.kind == "prune" and r.steps and r.record.id != first.id]
    able = runsview.labels(others)
    if not able:
        return
    now = [v.record.id for v in views[1:] if v.record.id in able]
    st.session_state["run_beside"] = now
    st.multiselect(
        "Compare with",
        list(able),
        key="run_beside",
        format_func=lambda i: able.get(i, i),
        placeholder="other runs in the same figure",
        on_change=_compare,
        args=(first.id,),
    )


def _compare(run_id: str) -> None:
    state.update(run=",".join([run_id, *st.session_state["run_beside"]]))


# ---- the order in which heads were removed


def survival(steps: Sequence[Step], layers: int, heads: int) -> np.ndarray:
    """The largest share of heads removed at which each head is still kept; 0 = removed at the first step. One seed."""
    values = np.zeros((layers, heads))
    for s in steps:
        for h in HeadMask.from_hex(s["mask"], layers, heads).kept:
            values[h] = max(values[h], s["sparsity"])
    return values


def order(view: RunView) -> None:
    """A grid of how long each head was kept. A click chooses the head whose maps are shown below."""
    known = state_of(view)
    if known is None and not recorded.of(view.record.id):
        return
    size = recorded.SHAPE if known is None else (known.num_layers, known.num_heads)
    seed = view.steps[0].get("seed")
    own = [s for s in view.steps if s.get("seed") == seed]
    values = survival(own, *size)
    shares = sorted({s["sparsity"] for s in own})
    top = shares[-1]
    gone = {h: _gone(own, h, size) for h in (HeadId(i, j) for i in range(size[0]) for j in range(size[1]))}
    full = HeadMask.full(*size)
    show.head_grid(
        "run_order",
        full,
        values,
        selected=state.head(full),
        carries=tableview.carried(view.record.spec),
        tips={"": [[gone[HeadId(i, j)] for j in range(size[1])] for i in range(size[0])]},
        look=Look(
            name="kept up to this share of heads removed", scale=Scale(0.0, top, False), width=26, file="headviz-order"
        ),
        on_select=state.select,
    )
    first = f", seed {seed}" if len({s.get("seed") for s in view.steps}) > 1 else ""
    st.caption(
        f"Large heads were kept longest, small ones were removed first{show.plain(first)}. Choose one to follow its "
        "maps."
    )


def _gone(steps: Sequence[Step], head: HeadId, size: tuple[int, int]) -> str:
    off = [s["sparsity"] for s in steps if head in HeadMask.from_hex(s["mask"], *size).off]
    return f"removed at {100 * min(off):.0f} %" if off else "never removed"


# ---- one step


def _choose(view: RunView) -> Step:
    """The step to show: by its share of heads, and its seed if there are several."""
    seeds = list(dict.fromkeys(s.get("seed") for s in view.steps))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        seed = seeds[0]
        if len(seeds) > 1:
            seed = st.selectbox("Seed", seeds, key="run_seed", width=90)
        own = {int(s["step"]): s for s in view.steps if s.get("seed") == seed} or {
            int(s["step"]): s for s in view.steps
        }
        now = state.view().step
        st.session_state["run_step"] = now if now in own else praised(view, own)
        choose: Any = st.selectbox if len(own) > 12 else st.segmented_control
        more: dict[str, Any] = {} if len(own) > 12 else {"required": True, "wrap": True}
        choose(
            "After removing",
            list(own),
            key="run_step",
            on_change=_step,
            format_func=lambda k: f"{100 * own[k]['sparsity']:.0f} %" if k in own else str(k),
            **more,
        )
    return own[st.session_state["run_step"] if st.session_state["run_step"] in own else max(own)]


def praised(view: RunView, own: Mapping[int, Step]) -> int:
    """The step that the run's sentence praises; the last one where it praises none."""
    share = can_go(view.steps, next(iter(view.steps[-1]["metrics"])), state.view().margin)
    return next((k for k, s in own.items() if round(s["sparsity"], 9) == share), max(own))


def _step() -> None:
    state.update(step=int(st.session_state["run_step"] or 0))


def kept_model(view: RunView, step: Step) -> str:
    """The folder of the model that a step trained; empty if the run did not keep it."""
    from ....runs.files import RunFiles

    if not step.get("model"):
        return ""
    folder = RunFiles(view.record.id).results / str(step["model"])
    return str(folder) if folder.is_dir() else ""


def _ways_on(view: RunView, step: Step) -> None:
    """Buttons to the Mask lab: with the step's own model if it was kept, and with the step's mask on θ*."""
    mended = baselines.retrains(view.record.spec) or step.get("repair_error") is not None
    folder = kept_model(view, step)
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        if folder:
            st.button(
                "Open this step's model in the Mask lab",
                key="run_open_model",
                icon=":material/grid_on:",
                on_click=_open,
                args=(view.record.spec, "", folder),
            )
        st.button(
            "Try its mask on θ* in the Mask lab" if mended else "Open its mask in the Mask lab",
            key="run_open",
            icon=":material/grid_on:",
            on_click=_open,
            args=(view.record.spec, step["mask"]),
        )
        if mended:
            why = "retrained" if baselines.retrains(view.record.spec) else "repaired"
            lost = "" if folder or why == "repaired" else " This step's own model was not kept."
            st.caption(f"θ* under this mask is not the {why} model, so the Mask lab shows other numbers.{lost}")


def _open(spec: dict[str, Any], mask: str, folder: str = "") -> None:
    """Open the run's model and data with this mask, or the step's own model in ``folder``."""
    try:
        if folder:
            look_at({**spec, "model": folder, "revision": None})
            state.forget_mask()
        else:
            look_at(spec)
            present = loaders.shape(state.view()).present
            state.set_mask(HeadMask.from_hex(mask, present.num_layers, present.num_heads))
        st.session_state["run_go"] = True
    except UserError as wrong:
        state.notify(wrong)
