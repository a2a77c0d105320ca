"""The form for one run. Nothing starts before its plan has been shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from ....display.numbers import span
from ....errors import UserError
from ....pruning.algorithms import ALGORITHMS
from ....runs import service
from ....runs.prepare import prepare_all
from ....runs.service import default_threads
from ....runs.sweep import plan_of
from ...parts import scoring
from ...shell import jobs, loaders
from ...shell.messages import plain, refused
from ...shell.view import View, by_grade
from . import faster, plans, sweep_form

if TYPE_CHECKING:
    from ....pruning.plan import PruningPlan
    from ....runs.prepare import Amount
    from ....runs.record import RunRecord

FORMS = ("One run", "A sweep", "A faster model")


def new(view: View, first: bool) -> None:
    """The forms, folded if there are runs already."""
    box = st.expander("Start a run or a sweep", first, key="new_box", icon=":material/add:", on_change="rerun")
    if not box.open:
        return
    with box:
        st.segmented_control(
            "What to start", FORMS, default=FORMS[0], required=True, key="new_what", label_visibility="collapsed"
        )
        if st.session_state.get("new_what") == FORMS[1]:
            sweep_form.form(view)
        elif st.session_state.get("new_what") == FORMS[2]:
            faster.form(view)
        else:
            form(view)


def form(view: View) -> None:
    """The options of one pruning run."""
    known = by_grade(view.source, loaders.shape(view).scores)
    left, middle, right = st.columns([2, 2, 1])
    with left:
        name = st.selectbox("Algorithm", list(ALGORITHMS), format_func=plans.title_of, key="new_algorithm")
    algorithm = ALGORITHMS[name]
    options: dict[str, Any] = {"algorithm": name}
    with middle:
        fixed = algorithm.only_score
        at = known.index(scoring.removing(view))
        names = [fixed] if fixed else known
        score = options["score"] = st.selectbox(
            "Score",
            names,
            0 if fixed else at,
            key=f"new_score_{fixed}",
            disabled=bool(fixed),
            help="This algorithm has a score of its own" if fixed else "Decides which heads are removed first",
        )
    with right:
        seeds = plans.seeds("new_seeds", (0,))
    kappa = " θ* is the fine-tuned model, κ the share that each step removes." if "κ" in algorithm.what else ""
    st.caption(plain(f"{algorithm.what}{kappa} {algorithm.cost} ({algorithm.source})"))
    options |= plans.amounts("new", [algorithm])
    options |= plans.retraining(view, f"new_{name}", [algorithm])
    if not fixed:
        of_score = plans.fields(view, "new_option", [score])
        options["score_options"] = lambda: of_score()[score]
    options |= plans.further(view, f"new_{name}", [algorithm], [score])
    title = st.text_input("Title (optional)", "", key="new_title", max_chars=120, placeholder="its name in the list")
    try:
        options["seeds"] = seeds()
        plan = plans.make_plan(view, options)
    except UserError as wrong:
        refused(wrong)
        return
    ready = plans.checked("new", ("plan", plan.digest), lambda p, c: _prepare(plan, p, c))
    if ready is not None:
        found, place = ready
        _show(found)
        plans.start(place, "new", lambda owner: _start(found, title, owner))


@dataclass(frozen=True)
class Planned:
    """A checked plan in numbers and words, and what ``service.start`` needs. Holds no model."""

    amount: Amount
    sizes: tuple[int, ...]
    heads: int
    notes: tuple[str, ...]
    seconds: float
    spec: dict[str, Any]
    title: str
    device: str


def _show(found: Planned) -> None:
    amount, sizes = found.amount, found.sizes
    seeds = f" × {amount.seeds} seeds" if amount.seeds > 1 else ""
    parts = [
        f"{amount.steps} step{'s' if amount.steps > 1 else ''}{seeds}",
        f"{amount.scorings} scoring{'s' if amount.scorings > 1 else ''}",
        f"{amount.finetunings} fine-tunings" if amount.finetunings else "no training",
        f"{amount.evaluations} evaluations",
    ]
    st.markdown(f"About **{span(found.seconds)}** on this machine: {', '.join(parts)}.")
    more = " …" if len(sizes) > 14 else ""
    st.caption(f"Heads off after each step: {', '.join(plain(str(s)) for s in sizes[:14])}{more} of {found.heads}")
    for note in found.notes:
        st.caption(plain(f"Note: {plans.in_words(note)}"))


def _prepare(plan: PruningPlan, progress: jobs.Progress, cancel: jobs.Cancel) -> Planned:
    """Check and time the plan. The models that this loads are released."""
    with plans.form_words():
        (p,) = prepare_all([plan], lambda i, n: progress(i, 2 * n), cancel)
    counted = plan_of([p], default_threads(), progress=lambda i, n: progress(n + i, 2 * n), cancel=cancel)
    return Planned(p.amount, p.sizes, p.heads, p.notes, counted.seconds, p.spec, p.title, p.device)


def _start(found: Planned, title: str, owner: str) -> RunRecord:
    return service.start("prune", found.spec, title=title.strip() or found.title, device=found.device, owner=owner)
