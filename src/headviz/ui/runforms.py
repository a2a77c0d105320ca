"""Starting one run: a form drawn from the table of algorithms. Nothing starts before its plan has been shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from ..errors import UserError
from . import jobs, plans, runactions, runsview, scoring, show, state, sweepform
from .view import View

if TYPE_CHECKING:
    from ..pruning.plan import PruningPlan

FORMS = ("One run", "A sweep")


def new(view: View, first: bool) -> None:
    """The forms, folded away once there is something to look at."""
    box = st.expander(
        "Start a run or a sweep", first, key="new_box", icon=":material/add:", on_change="rerun"
    )
    if not box.open:
        return
    with box:
        st.segmented_control(
            "What to start",
            FORMS,
            default=FORMS[0],
            required=True,
            key="new_what",
            label_visibility="collapsed",
        )
        if st.session_state.get("new_what") == FORMS[1]:
            sweepform.form(view)
        else:
            form(view)


def form(view: View) -> None:
    """The options of one pruning run."""
    from ..pruning.table import ALGORITHMS

    left, middle, right = st.columns([2, 2, 1])
    with left:
        name = st.selectbox("Algorithm", list(ALGORITHMS), format_func=plans.title_of, key="new_algorithm")
    algorithm = ALGORITHMS[name]
    options: dict[str, Any] = {"algorithm": name}
    with middle:
        fixed = algorithm.only_score
        at = scoring.NAMES.index(view.score) if view.score in scoring.NAMES else 0
        names = [fixed] if fixed else list(scoring.NAMES)
        options["score"] = st.selectbox(
            "Score", names, 0 if fixed else at, key=f"new_score_{fixed}", disabled=bool(fixed),
            help="The method fixes its own score" if fixed else "What decides which heads go first",
        )  # fmt: skip
    with right:
        given = plans.seeds("new_seeds", "0")
    kappa = " κ is the share that each step removes." if "κ" in algorithm.what else ""
    st.caption(show.plain(f"{algorithm.what}{kappa} {algorithm.cost} ({algorithm.source})"))
    options |= plans.amounts("new", [algorithm])
    options |= plans.further(view, f"new_{name}", [algorithm])
    title = st.text_input(
        "Title (optional)", "", key="new_title", max_chars=120, placeholder="what the list calls it"
    )
    try:
        options["seeds"] = plans.read_seeds(given)
        plan = plans.make_plan(view, options)
    except UserError as wrong:
        st.error(show.plain(str(wrong)), icon=":material/error:")
        return
    _plan_and_start(plan, title)


def _plan_and_start(plan: PruningPlan, title: str) -> None:
    key = ("plan", plan.digest)
    buttons = st.container(horizontal=True)
    buttons.button(
        "Plan", key="new_plan", icon=":material/checklist:", help="Check it and estimate its time",
        on_click=plans.wanted, args=(key,),
    )  # fmt: skip
    if st.session_state.get("planned") != key:
        buttons.button("Start", key="new_start", disabled=True, help="Look at the plan first")
        return
    found = jobs.need(key, "Checking the plan and timing a few examples", lambda p, c: _prepare(plan, p, c))
    if found is None:
        return
    amount, sizes, heads, notes, seconds, ready = found
    seeds = f" × {amount.seeds} seeds" if amount.seeds > 1 else ""
    parts = [
        f"{amount.steps} steps{seeds}",
        f"{amount.scorings} scoring{'s' if amount.scorings > 1 else ''}",
        f"{amount.finetunings} fine-tunings" if amount.finetunings else "no training",
        f"{amount.evaluations} evaluations",
    ]
    st.markdown(f"About **{runsview.span(seconds)}** on this machine: {', '.join(parts)}.")
    more = " …" if len(sizes) > 14 else ""
    st.caption(f"Heads off after each step: {', '.join(map(str, sizes[:14]))}{more} of {heads}")
    for note in notes:
        st.caption(show.plain(f"Note: {note}"))
    buttons.button(
        "Start",
        key="new_start",
        type="primary",
        icon=":material/play_arrow:",
        on_click=_start,
        args=(ready, title),
    )


Ready = dict[str, Any]  # spec, title, device: what ``service.start`` needs


def _prepare(
    plan: PruningPlan, progress: jobs.Progress, cancel: jobs.Cancel
) -> tuple[Any, tuple[int, ...], int, tuple[str, ...], float, Ready]:
    """Numbers only: the models that were loaded for them are let go."""
    from ..runs.prepare import prepare_all
    from ..runs.service import default_threads
    from ..runs.sweep import plan_of

    (p,) = prepare_all([plan], lambda i, n: progress(i, 2 * n), cancel)
    counted = plan_of([p], default_threads(), progress=lambda i, n: progress(n + i, 2 * n), cancel=cancel)
    assert counted.seconds is not None
    ready = {"spec": p.spec, "title": p.title, "device": p.device}
    return p.amount, p.sizes, p.heads, p.notes, counted.seconds, ready


def _start(ready: Ready, title: str) -> None:
    from ..runs import service

    try:
        record = service.start(
            "prune", ready["spec"], title=title.strip() or ready["title"], device=ready["device"],
            owner=runactions.this_user(),
        )  # fmt: skip
    except UserError as wrong:
        state.notify(str(wrong))
        return
    runsview.started(record.id)
