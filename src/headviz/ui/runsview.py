"""The Runs page's parts: start a run, watch it, stop it, and take its results along."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from ..errors import RunError, UserError
from ..heads import HeadMask
from . import jobs, loaders, scoring, show, state
from .recipes import load_options, task_options
from .view import View

if TYPE_CHECKING:
    from ..pruning.plan import PruningPlan
    from ..runs.reading import RunView

ICONS = {
    "queued": "◌",
    "running": "▶",
    "cancelling": "◼",
    "cancelled": "◼",
    "failed": "✕",
    "lost": "?",
    "done": "✓",
}


def this_user() -> str:
    """Who is looking: the name that a login in front passes on, else this machine's user."""
    from ..runs.service import this_user as local

    try:
        name = st.user.get("email") or st.user.get("name")
    except (AttributeError, RuntimeError):
        name = None
    return str(name) if name else local()


# ---- starting


def start_form(view: View) -> None:
    """The plan of a run; drawn from the table of algorithms. Nothing starts before the plan has been shown."""
    from ..pruning.table import ALGORITHMS

    name = st.selectbox(
        "Algorithm", list(ALGORITHMS), format_func=lambda n: ALGORITHMS[n].title, key="run_algorithm"
    )
    algorithm = ALGORITHMS[name]
    st.caption(show.plain(f"{algorithm.what} {algorithm.cost} ({algorithm.source})"))
    options: dict[str, Any] = {"algorithm": name}
    if algorithm.only_score:
        st.caption(f"Scored by {algorithm.only_score}, which the method fixes.")
    else:
        at = scoring.NAMES.index(view.score) if view.score in scoring.NAMES else 0
        options["score"] = st.selectbox("Score", scoring.NAMES, at, key="run_score")
    left, right = st.columns(2)
    options["step"] = left.number_input("Step, % of heads", 1, 100, 10, key="run_step") / 100
    options["until"] = right.number_input("Until, % of heads", 1, 100, 90, key="run_until") / 100
    options["samples"] = left.number_input("Examples to score on", 4, 20_000, 256, key="run_samples")
    options["keep_per_layer"] = right.number_input("Heads every layer keeps", 0, 64, 0, key="run_keep")
    seeds = st.text_input("Seeds", "0", key="run_seeds", help="One or more whole numbers, with commas")
    if algorithm.retrains:
        base = "demo-pretrained" if view.model == "demo" else view.base
        options["base"] = st.text_input("Pre-trained model θ0", base, key="run_base")
    title = st.text_input("Title (optional)", "", key="run_title", max_chars=120)
    try:
        options["seeds"] = tuple(int(s) for s in seeds.split(",") if s.strip())
        plan = make_plan(view, options)
    except ValueError:
        st.error("Seeds are whole numbers with commas, such as 0,1,2.")
        return
    except UserError as wrong:
        st.error(show.plain(str(wrong)))
        return
    _plan_and_start(plan, title)


def make_plan(view: View, options: dict[str, Any]) -> PruningPlan:
    """The plan for the view's model and data."""
    from ..pruning.plan import PruningPlan

    place = view.data
    if place:
        place = str(loaders.uploads().get(place) or loaders.confined(place))
    given = {
        "model": loaders.model_name(view.model),
        "task": view.task,
        "revision": view.revision or None,
        "data": place or None,
        "text_columns": tuple(c for c in view.columns.split(",") if c) or None,
        "label_column": view.label or None,
        "dev_limit": view.limit or None,
        "device": view.device,
        **{k: v for k, v in options.items() if v != ""},
    }
    if given.get("base"):
        given["base"] = loaders.model_name(str(given["base"]))
    return PruningPlan.from_dict({k: v for k, v in given.items() if v is not None})


def _plan_and_start(plan: PruningPlan, title: str) -> None:
    key = ("plan", plan.digest)
    left, right = st.columns(2)
    if left.button("Plan", key="run_plan", width="stretch", help="Check it and estimate the time"):
        st.session_state["planned"] = key
    if st.session_state.get("planned") != key:
        right.button("Start", key="run_start", disabled=True, width="stretch", help="Look at the plan first")
        return
    found = jobs.need(key, "Checking the plan", lambda p, c: _prepare(plan))
    if found is None:
        return
    prepared, seconds = found
    amount = prepared.amount
    st.markdown(
        f"**{amount.steps} steps × {amount.seeds} seed{'s' if amount.seeds > 1 else ''}**: {amount.scorings} scorings, "
        f"{amount.finetunings} fine-tunings, {amount.evaluations} evaluations; "
        f"about **{span(seconds)}** on this machine."
    )
    sizes = prepared.sizes
    more = " …" if len(sizes) > 14 else ""
    st.caption(f"Heads off after each step: {', '.join(map(str, sizes[:14]))}{more} of {prepared.heads}")
    for note in prepared.notes:
        st.info(show.plain(note))
    right.button(
        "Start", key="run_start", type="primary", width="stretch", on_click=_start, args=(prepared, title)
    )


def _prepare(plan: PruningPlan) -> tuple[Any, float]:
    from ..runs.calibration import estimate
    from ..runs.prepare import prepare
    from ..runs.service import default_threads

    prepared = prepare(plan)
    return prepared, estimate(prepared, default_threads()).total


def _start(prepared: Any, title: str) -> None:
    from ..runs import service

    try:
        record = service.start(
            "prune",
            prepared.spec,
            title=title.strip() or prepared.title,
            device=prepared.device,
            owner=this_user(),
        )
    except UserError as wrong:
        state.notify(str(wrong))
        return
    st.session_state.pop("planned", None)
    state.update(run=record.id)


def span(seconds: float) -> str:
    """A length of time as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


# ---- looking


def overview() -> list[RunView]:
    from ..runs import reading

    return reading.overview()


def run_list(runs: Sequence[RunView]) -> None:
    """Every run, newest first; choosing one shows it."""
    rows = [
        [
            f"{ICONS.get(r.state, '')} {r.state}",
            r.record.title,
            f"{len(r.steps) + len(r.baseline)}" + (f" of {r.record.expected}" if r.record.expected else ""),
            time.strftime("%d %b %H:%M", time.localtime(r.record.created)),
            r.record.id,
        ]
        for r in runs
    ]
    event = show.table(
        ["state", "title", "steps", "made", "run"], rows, "runs_list",
        caption="Choose rows to look at them; several are drawn on one picture.",
        on_select="rerun", selection_mode="multi-row",
    )  # fmt: skip
    chosen = [runs[i].record.id for i in event.selection.rows] if hasattr(event, "selection") else []
    if chosen and st.session_state.get("runs_chosen") != chosen:
        st.session_state["runs_chosen"] = chosen
        state.update(run=",".join(chosen))
        st.rerun()


def watch(ids: Sequence[str]) -> None:
    """Curves of the chosen runs, and all about the first; drawn anew every second while one is at work."""
    from ..runs import reading
    from ..runs.states import ACTIVE, QUEUED

    views = [reading.show(i, log_lines=0) for i in ids]
    busy = any(v.state in ACTIVE or v.state == QUEUED for v in views)
    st.fragment(_look, run_every=1.0 if busy else None)(tuple(ids), busy)


def _look(ids: Sequence[str], busy: bool) -> None:
    from ..charts_runs import curve_of, run_curves
    from ..runs import reading
    from ..runs.states import ACTIVE, QUEUED

    views = [reading.show(i) for i in ids]
    first = views[0]
    st.subheader(show.plain(first.record.title))
    _state_line(first)
    curves = [c for v in views for r in (v.children or (v,)) if (c := curve_of(r.to_json())) is not None]
    if curves:
        show.figure(
            run_curves(curves), "run_curves",
            "The metric against the share of heads removed; dashed, the model with every head.",
        )  # fmt: skip
    _steps(first)
    with st.expander("End of the log", expanded=first.state in ("failed", "lost")):
        st.code("\n".join(first.log) or "(nothing yet)", language=None)
    if busy and not any(v.state in ACTIVE or v.state == QUEUED for v in views):
        st.rerun()


def _state_line(view: RunView) -> None:
    from ..runs.states import ACTIVE, QUEUED, RESUMABLE

    p, record = view.progress, view.record
    parts = [f"{ICONS.get(view.state, '')} **{view.state}**"]
    if view.position:
        parts.append(f"number {view.position} in the queue")
    if p.phase:
        parts.append(show.plain(p.phase) + (f" {p.done} of {p.total}" if p.total else ""))
    if p.remaining is not None:
        parts.append(f"about {span(p.remaining)} left")
    if p.cpu_percent is not None:
        parts.append(f"processor {p.cpu_percent:.0f} %")
    if p.memory:
        parts.append(f"memory {p.memory / 2**20:.0f} MB")
    if view.seconds is not None:
        parts.append(f"{span(view.seconds)} so far" if view.state in ACTIVE else f"took {span(view.seconds)}")
    st.markdown("  ·  ".join(parts))
    if record.error:
        st.error(show.plain(record.error), icon=":material/error:")
    done = len(view.steps) + len(view.baseline)
    if record.expected and view.state in ACTIVE:
        st.progress(min(1.0, done / record.expected), text=f"step {done} of {record.expected}")
    with st.container(horizontal=True, gap="small"):
        if view.state in ACTIVE or view.state == QUEUED:
            st.button(
                "Cancel", icon=":material/stop:", key="run_cancel", on_click=_act, args=("cancel", record.id)
            )
        if view.state in RESUMABLE:
            st.button(
                "Resume", icon=":material/play_arrow:", key="run_resume", type="primary",
                on_click=_act, args=("resume", record.id),
            )  # fmt: skip
        if view.state not in ACTIVE and view.state != QUEUED:
            st.button(
                "Put aside",
                key="run_archive",
                on_click=_act,
                args=("archive", record.id),
                help="Out of the list; results stay",
            )
            _downloads(view)


def _act(what: str, run_id: str) -> None:
    from ..runs import housekeeping, service

    actions: dict[str, Any] = {
        "cancel": service.cancel,
        "resume": service.resume,
        "archive": housekeeping.archive,
    }
    try:
        actions[what](run_id, this_user())
    except UserError as wrong:
        state.notify(str(wrong))
    if what == "archive":
        state.update(run="")


def _downloads(view: RunView) -> None:
    from ..report import run_csv, run_html, run_json, run_tex

    if not view.steps:
        return
    made = {
        "HTML report": (run_html, "html"),
        "CSV": (run_csv, "csv"),
        "LaTeX": (run_tex, "tex"),
        "JSON": (run_json, "json"),
    }
    for name, (write, ending) in made.items():
        file = f"headviz-run-{view.record.id}.{ending}"
        st.download_button(
            f"↓ {name}",
            partial(write, view),
            file,
            key=f"run_{ending}",
            type="tertiary",
            on_click="ignore",
        )


def _steps(view: RunView) -> None:
    """Each step's mask and metrics; a row leads to the Mask lab."""
    if not view.steps:
        return
    names = list(view.steps[-1]["metrics"])
    header = ["seed", "heads off, %", *names, "seconds", "mask"]
    rows = [
        [s.get("seed"), 100 * s["sparsity"], *(s["metrics"].get(n) for n in names), s["seconds"], s["mask"]]
        for s in view.steps
    ]
    event = show.table(
        header, rows, "run_steps", caption="Choose a row to open its mask in the Mask lab.",
        on_select="rerun", selection_mode="single-row", height=260,
    )  # fmt: skip
    chosen = event.selection.rows if hasattr(event, "selection") else []
    if chosen:
        st.button(
            "Open in the Mask lab",
            key="run_open",
            icon=":material/grid_on:",
            on_click=_open,
            args=(view.steps[chosen[0]]["mask"],),
        )
        if st.session_state.pop("run_go", False):
            st.switch_page("pages/masklab.py")


def _open(mask: str) -> None:
    present = loaders.shape(state.view()).present
    try:
        state.set_mask(HeadMask.from_hex(mask, present.num_layers, present.num_heads))
        st.session_state["run_go"] = True
    except UserError as wrong:
        state.notify(f"{wrong} Load the run's own model on Data & model first.")


def known_ids(text: str, runs: Sequence[RunView]) -> list[str]:
    """The runs that an address names and that are still there."""
    there = {r.record.id for r in runs}
    return [i for i in text.split(",") if i in there]


def require_none(ids: Sequence[str], text: str) -> None:
    if text and not ids:
        raise RunError(f"There is no run {text[:40]}. It may have been deleted or put aside.")


def recipe(view: View) -> tuple[str, str]:
    name = st.session_state.get("run_algorithm", "one-importance")
    python = (
        "from headviz.pruning.plan import PruningPlan\nfrom headviz.runs import service\n"
        "from headviz.runs.prepare import prepare\n"
        f"plan = PruningPlan(model={view.model!r}, task={view.task!r}, algorithm={name!r}, score={view.score!r})\n"
        "prepared = prepare(plan)\nservice.start('prune', prepared.spec, title=prepared.title, device=prepared.device)"
    )
    options = task_options(view).replace("--limit", "--dev-limit")
    return python, f"headviz run start {load_options(view)} {options} --algorithm {name} --score {view.score}"
