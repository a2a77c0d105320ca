"""The form for one run. Nothing starts before its plan has been shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from .... import plugins
from ....analyses.catalogue import ANALYSES
from ....display.numbers import span
from ....display.table import Table
from ....errors import OptionError, UserError
from ....pruning.algorithms import ALGORITHMS, WITHOUT_TRAINING
from ....runs import service, sweep
from ....runs.kinds import RUNS
from ....runs.prepare import prepare_all
from ....runs.process import BUSY, used_by_others
from ....runs.service import default_threads
from ....runs.sweep import Member, plan_of, title_for
from ....tasks import TASKS
from ...parts import scoring
from ...shell import jobs, loaders, show, state
from ...shell.messages import plain, refused
from ...shell.view import View, by_grade
from .. import analyses
from . import faster, plans

if TYPE_CHECKING:
    from ....pruning.plan import PruningPlan
    from ....runs.prepare import Amount
    from ....runs.record import RunRecord
    from ....runs.sweep import SweepPlan


# -----------------------------------------------------------------------------------------------
# The form for a sweep: tasks × algorithms × scores × seeds. Its plan and its time are shown before it starts.


LOOK = 0.2  # seconds in which the use of the processor is measured
WORDS = plans.Words(doing="Checking every run and timing a few examples")


def sweep_form(view: View) -> None:
    """The fields, the plan and *Start*."""
    st.caption("Every combination is one run. One table shows all results, with means over the seeds.")
    a, b = st.columns(2)
    names = a.multiselect(
        "Algorithms", list(ALGORITHMS), list(WITHOUT_TRAINING), format_func=plans.title_of, key="sweep_algorithms"
    )
    known = by_grade(view.source, loaders.shape(view).scores)
    at = scoring.removing(view)
    scores = b.multiselect("Scores", known, list(dict.fromkeys([at, "random"])), key="sweep_scores")
    algorithms = [ALGORITHMS[n] for n in names]
    if fixed := [x for x in algorithms if x.only_score]:
        st.caption(plain(f"{', '.join(f'{x.title} always scores by {x.only_score}' for x in fixed)}."))
    a, b = st.columns(2)
    tasks = a.multiselect("Tasks", list(TASKS), [view.task] if view.task in TASKS else [], key="sweep_tasks")
    with b:
        read_seeds = plans.seeds("sweep_seeds", (0, 1, 2))
    places: dict[str, str] = {}
    if len(tasks) > 1:
        a, b = st.columns(2)
        places["model"] = a.text_input(
            "Models", view.model, key="sweep_model", help="{task} stands for the task's name, as in my-models/{task}"
        )
        places["data"] = b.text_input(
            "Folders with data (empty: the hub)", "", key="sweep_data", help="{task} stands for the task's name"
        )
    options = plans.amounts("sweep", algorithms)
    options |= plans.retraining(view, "sweep", algorithms)
    of_scores = plans.fields(view, "sweep_option", scores)
    options |= plans.further(view, "sweep", algorithms, scores)
    title = st.text_input("Title (optional)", "", key="sweep_title", max_chars=120)
    try:
        base = plans.options_of(view, options)
        seeds = read_seeds()
        members = expand(base, tasks, names, scores, seeds, places, of_scores())
    except UserError as wrong:
        refused(wrong)
        return
    axes = {"task": tasks, "algorithm": names, "score": scores, "seed": seeds}
    suggested = title_for(tasks, names, scores, seeds)
    about = {"model": view.model, **{f"{k}s": list(v) for k, v in axes.items()}}
    key = ("sweep", tuple(p.digest for p in members))
    count = f"{len(members)} run{'s' if len(members) > 1 else ''}"
    ready = plans.checked("sweep", key, lambda p, c: _prepare_sweep(members, p, c), WORDS, count)
    if ready is not None:
        planned, place = ready
        _show_sweep(planned)
        plans.start(
            place,
            "sweep",
            lambda owner: _start_sweep(planned, title.strip() or suggested, about, owner),
            f"Start {count}",
        )


def expand(
    base: dict[str, Any],
    tasks: Sequence[str],
    algorithms: Sequence[str],
    scores: Sequence[str],
    seeds: Sequence[int],
    places: dict[str, str],
    of_scores: Mapping[str, dict[str, Any]] | None = None,
) -> list[PruningPlan]:
    """The plans of a sweep, each with its score's options. Folders are checked once the task's name is in them."""
    if places:
        mapped = ("text_columns", "label_column")
        base = {k: v for k, v in base.items() if k not in mapped} | {k: v for k, v in places.items() if v}
        if not places["data"]:
            base.pop("data", None)
        if not places["model"]:
            raise OptionError("Name the models: one for all tasks, or a folder such as my-models/{task}.")
    made = [
        replace(p, score_options=tuple(sorted((of_scores or {}).get(p.score, {}).items())))
        for p in sweep.expand(base, tasks, algorithms, scores, seeds)
    ]
    if not places:
        return made
    return [replace(p, model=loaders.model_name(p.model), data=p.data and str(loaders.confined(p.data))) for p in made]


@dataclass(frozen=True)
class PlannedSweep:
    """A checked sweep: its runs, their amount, and notes for the user."""

    members: tuple[Member, ...]
    plan: SweepPlan
    rows: tuple[tuple[Any, ...], ...]
    notes: tuple[str, ...]
    busy: str


def _show_sweep(planned: PlannedSweep) -> None:
    plan = planned.plan
    once = f", {plan.at_once} at a time" if plan.at_once > 1 else ", one after the other"
    training = f"{plan.amount.finetunings:,} fine-tunings" if plan.amount.finetunings else "no training"
    st.markdown(
        f"About **{span(plan.seconds)}** on this machine{plain(planned.busy)}{once}: {plan.runs} runs, "
        f"{plan.amount.scorings:,} scorings, {training}, {plan.amount.evaluations:,} evaluations."
    )
    columns = ("task", "algorithm", "score", "runs", "steps", "scorings", "fine-tunings")
    show.table(
        Table("sweep_plan_table", columns, planned.rows, "The runs of the sweep; one line stands for all seeds.")
    )
    for note in planned.notes[:3]:
        st.caption(plain(f"Note: {plans.in_words(note)}"))


def _prepare_sweep(made: Sequence[PruningPlan], progress: jobs.Progress, cancel: jobs.Cancel) -> PlannedSweep:
    """Check and time every run. The models that this loads are released."""
    whole, busy = 2 * len(made), _busy()
    with plans.form_words():
        prepared = prepare_all(made, lambda i, n: progress(i, whole), cancel)
    plan = plan_of(prepared, default_threads(), progress=lambda i, n: progress(n + i, whole), cancel=cancel)
    rows: dict[tuple[str, ...], list[int]] = {}
    for p in prepared:
        line = rows.setdefault(tuple(str(p.spec[n]) for n in ("task", "algorithm", "score")), [0, 0, 0, 0])
        for i, n in enumerate((1, p.amount.steps, p.amount.scorings, p.amount.finetunings)):
            line[i] += n
    members = tuple(Member("prune", p.spec, f"{p.title} · seed {p.spec['seeds'][0]}"[:200], p.device) for p in prepared)
    notes = tuple(dict.fromkeys(n for p in prepared for n in p.notes))
    return PlannedSweep(members, plan, tuple((*k, *v) for k, v in rows.items()), notes, busy)


def _busy() -> str:
    """Where other programs use the machine while a plan is timed: the sentence goes on with how much."""
    used_by_others()
    time.sleep(LOOK)
    others = used_by_others()
    return f", which other programs use to {others:.0f} % now" if others >= BUSY else ""


def _start_sweep(planned: PlannedSweep, title: str, about: dict[str, Any], owner: str) -> RunRecord:
    return sweep.start_sweep(planned.members, title=title[:120], spec=about, owner=owner)


# -----------------------------------------------------------------------------------------------


Form = Callable[[View], Any]  # draws it; one of a plugin may give Python and a command


def forms() -> dict[str, tuple[str, Form]]:
    """What the page can start or measure, by the name that a link has: its title, and what draws its form."""
    out: dict[str, tuple[str, Form]] = {
        "faster": ("Make it faster", faster.form),
        "run": ("One run", form),
        "sweep": ("A sweep", sweep_form),
    }
    for kind in RUNS.values():
        if kind.form is not None:
            out[kind.name] = kind.title, plugins.function(kind.form)
    for one in ANALYSES.values():
        if one.page == "runs":
            out[one.name] = one.title, partial(_measure, one.name)
    return out


def new(view: View, first: bool) -> tuple[str, str] | None:
    """The forms, folded if there are runs already and the link asks for none. Gives what a plugin's form gives."""
    box = st.expander(
        "Start a run, or measure how fast a model is",
        first or bool(view.new),
        key="new_box",
        icon=":material/add:",
        on_change="rerun",
    )
    if not box.open:
        return None
    known = forms()
    with box:
        name = state.switch(
            "new",
            "What to start",
            ["" if n == "run" else n for n in known],
            notice=True,
            format_func=lambda n: known[n or "run"][0],
            label_visibility="collapsed",
        )
        made: tuple[str, str] | None = known[name or "run"][1](state.view())
    return made


def _measure(name: str, view: View) -> None:
    """An analysis of the model as it is, which is about its speed."""
    clf: Any = loaders.model(view)
    data = loaders.dataset(view)
    loaders.check(clf, data)
    analyses.section(name, clf, data)


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
        planned, place = ready
        _show(planned)
        plans.start(place, "new", lambda owner: _start(planned, title, owner))


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
    busy: str


def _show(planned: Planned) -> None:
    amount, sizes = planned.amount, planned.sizes
    seeds = f" × {amount.seeds} seeds" if amount.seeds > 1 else ""
    parts = [
        f"{amount.steps} step{'s' if amount.steps > 1 else ''}{seeds}",
        f"{amount.scorings} scoring{'s' if amount.scorings > 1 else ''}",
        f"{amount.finetunings} fine-tunings" if amount.finetunings else "no training",
        f"{amount.evaluations} evaluations",
    ]
    st.markdown(f"About **{span(planned.seconds)}** on this machine{plain(planned.busy)}: {', '.join(parts)}.")
    more = " …" if len(sizes) > 14 else ""
    st.caption(f"Heads off after each step: {', '.join(plain(str(s)) for s in sizes[:14])}{more} of {planned.heads}")
    for note in planned.notes:
        st.caption(plain(f"Note: {plans.in_words(note)}"))


def _prepare(plan: PruningPlan, progress: jobs.Progress, cancel: jobs.Cancel) -> Planned:
    """Check and time the plan. The models that this loads are released."""
    busy = _busy()
    with plans.form_words():
        (p,) = prepare_all([plan], lambda i, n: progress(i, 2 * n), cancel)
    counted = plan_of([p], default_threads(), progress=lambda i, n: progress(n + i, 2 * n), cancel=cancel)
    return Planned(p.amount, p.sizes, p.heads, p.notes, counted.seconds, p.spec, p.title, p.device, busy)


def _start(planned: Planned, title: str, owner: str) -> RunRecord:
    return service.start(
        "prune", planned.spec, title=title.strip() or planned.title, device=planned.device, owner=owner
    )
