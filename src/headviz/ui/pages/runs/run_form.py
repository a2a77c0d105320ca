"""The form for one run. Nothing starts before its plan has been shown."""

from __future__ import annotations

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
from ....pruning.plan import PruningPlan
from ....runs import service, sweep
from ....runs.kinds import RUNS
from ....runs.prepare import prepare_all
from ....runs.record import PRUNE
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
    from ....runs.prepare import Amount
    from ....runs.sweep import SweepPlan


@dataclass(frozen=True)
class Planned:
    """Checked plans: their runs, the work and the time that they take, and notes for the user. Holds no model."""

    members: tuple[Member, ...]
    amounts: tuple[Amount, ...]  # one for each run
    whole: SweepPlan
    sizes: tuple[int, ...]  # heads off after each step of the first run
    heads: int
    notes: tuple[str, ...]
    busy: str


def _prepare(pruning_plans: Sequence[PruningPlan], progress: jobs.Progress, cancel: jobs.Cancel) -> Planned:
    """Check and time every run. The models that this loads are released."""
    total, busy = 2 * len(pruning_plans), plans.busy()
    try:
        prepared = prepare_all(pruning_plans, lambda i, n: progress(i, total), cancel)
    except UserError as error:
        raise error.reworded(plans.in_words(error)) from error
    whole = plan_of(prepared, default_threads(), progress=lambda i, n: progress(n + i, total), cancel=cancel)
    return Planned(
        members=tuple(Member(PRUNE, p.spec, p.title, p.device) for p in prepared),
        amounts=tuple(p.amount for p in prepared),
        whole=whole,
        sizes=prepared[0].sizes,
        heads=prepared[0].heads,
        notes=tuple(dict.fromkeys(note for p in prepared for note in p.notes)),
        busy=busy,
    )


# -----------------------------------------------------------------------------------------------
# The form for a sweep: tasks × algorithms × scores × seeds. Its plan and its time are shown before it starts.


WORDS = plans.Words(doing="Checking every run and timing a few examples")


def sweep_form(view: View) -> None:
    """The fields, the plan and *Start*."""
    st.caption("Every combination is one run. One table shows all results, with means over the seeds.")
    left, right = st.columns(2)
    names = left.multiselect(
        "Algorithms", list(ALGORITHMS), list(WITHOUT_TRAINING), format_func=plans.title_of, key="sweep_algorithms"
    )
    offered = by_grade(view.source, loaders.shape(view).scores)
    usual = list(dict.fromkeys([scoring.removing(view), "random"]))
    scores = right.multiselect("Scores", offered, usual, key="sweep_scores")
    algorithms = [ALGORITHMS[n] for n in names]
    if fixed := [a for a in algorithms if a.only_score]:
        st.caption(plain(f"{', '.join(f'{a.title} always scores by {a.only_score}' for a in fixed)}."))
    left, right = st.columns(2)
    tasks = left.multiselect("Tasks", list(TASKS), [view.task] if view.task in TASKS else [], key="sweep_tasks")
    with right:
        read_seeds = plans.seeds("sweep_seeds", (0, 1, 2))
    places: dict[str, str] = {}
    if len(tasks) > 1:
        left, right = st.columns(2)
        places["model"] = left.text_input(
            "Models", view.model, key="sweep_model", help="{task} stands for the task's name, as in my-models/{task}"
        )
        places["data"] = right.text_input(
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
    except UserError as error:
        refused(error)
        return
    axes = {"task": tasks, "algorithm": names, "score": scores, "seed": seeds}
    suggested = title_for(tasks, names, scores, seeds)
    spec = {"model": view.model, **{f"{k}s": list(v) for k, v in axes.items()}}
    key = ("sweep", tuple(p.digest for p in members))
    count = f"{len(members)} run{'s' if len(members) > 1 else ''}"
    ready = plans.checked("sweep", key, lambda p, c: _prepare(members, p, c), WORDS, count)
    if ready is not None:
        planned, place = ready
        _show_sweep(planned)
        runs = [replace(m, title=f"{m.title} · seed {m.spec['seeds'][0]}"[:200]) for m in planned.members]
        name = (title.strip() or suggested)[:120]
        plans.start(
            place, "sweep", lambda owner: sweep.start_sweep(runs, title=name, spec=spec, owner=owner), f"Start {count}"
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
    expanded = [
        replace(p, score_options=tuple(sorted((of_scores or {}).get(p.score, {}).items())))
        for p in sweep.expand(base, tasks, algorithms, scores, seeds)
    ]
    if not places:
        return expanded
    return [
        replace(p, model=loaders.model_name(p.model), data=p.data and str(loaders.confined(p.data))) for p in expanded
    ]


def _show_sweep(planned: Planned) -> None:
    whole, amount = planned.whole, planned.whole.amount
    once = f", {whole.at_once} at a time" if whole.at_once > 1 else ", one after the other"
    training = f"{amount.finetunings:,} fine-tunings" if amount.finetunings else "no training"
    st.markdown(
        f"About **{span(whole.seconds)}** on this machine{plain(planned.busy)}{once}: {whole.runs} runs, "
        f"{amount.scorings:,} scorings, {training}, {amount.evaluations:,} evaluations."
    )
    counts: dict[tuple[str, ...], list[int]] = {}
    for member, each in zip(planned.members, planned.amounts, strict=True):
        row = counts.setdefault(tuple(str(member.spec[n]) for n in ("task", "algorithm", "score")), [0, 0, 0, 0])
        for i, n in enumerate((1, each.steps, each.scorings, each.finetunings)):
            row[i] += n
    rows = [(*combination, *numbers) for combination, numbers in counts.items()]
    columns = ("task", "algorithm", "score", "runs", "steps", "scorings", "fine-tunings")
    show.table(Table("sweep_plan_table", columns, rows, "The runs of the sweep; one line stands for all seeds."))
    for note in planned.notes[:3]:
        st.caption(plain(f"Note: {plans.in_words(note)}"))


# -----------------------------------------------------------------------------------------------


Form = Callable[[View], Any]  # draws it; one of a plugin may give Python and a command


def forms() -> dict[str, tuple[str, Form]]:
    """What the page can start or measure, by the name that a link has: its title, and what draws its form."""
    entries: dict[str, tuple[str, Form]] = {
        "faster": ("Make it faster", faster.form),
        "run": ("One run", form),
        "sweep": ("A sweep", sweep_form),
    }
    for kind in RUNS.values():
        if kind.form is not None:
            entries[kind.name] = kind.title, plugins.function(kind.form)
    for analysis in ANALYSES.values():
        if analysis.page == "runs":
            entries[analysis.name] = analysis.title, partial(_measure, analysis.name)
    return entries


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
    entries = forms()
    with box:
        name = state.switch(
            "new",
            "What to start",
            ["" if n == "run" else n for n in entries],
            notice=True,
            format_func=lambda n: entries[n or "run"][0],
            label_visibility="collapsed",
        )
        recipe: tuple[str, str] | None = entries[name or "run"][1](state.view())
    return recipe


def _measure(name: str, view: View) -> None:
    """An analysis of the model as it is, which is about its speed."""
    clf: Any = loaders.model(view)
    data = loaders.dataset(view)
    loaders.check(clf, data)
    analyses.section(name, clf, data)


def form(view: View) -> None:
    """The options of one pruning run."""
    offered = by_grade(view.source, loaders.shape(view).scores)
    left, middle, right = st.columns([2, 2, 1])
    with left:
        name = st.selectbox("Algorithm", list(ALGORITHMS), format_func=plans.title_of, key="new_algorithm")
    algorithm = ALGORITHMS[name]
    options: dict[str, Any] = {"algorithm": name}
    with middle:
        fixed = algorithm.only_score
        usual = offered.index(scoring.removing(view))
        score = options["score"] = st.selectbox(
            "Score",
            [fixed] if fixed else offered,
            0 if fixed else usual,
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
        plan = PruningPlan.from_options(plans.options_of(view, options))
    except UserError as error:
        refused(error)
        return
    ready = plans.checked("new", ("plan", plan.digest), lambda p, c: _prepare([plan], p, c))
    if ready is not None:
        planned, place = ready
        _show(planned)
        (run,) = planned.members
        name = title.strip() or run.title
        plans.start(
            place, "new", lambda owner: service.start(run.kind, run.spec, title=name, device=run.device, owner=owner)
        )


def _show(planned: Planned) -> None:
    amount, sizes = planned.whole.amount, planned.sizes
    seeds = f" × {amount.seeds} seeds" if amount.seeds > 1 else ""
    parts = [
        f"{amount.steps} step{'s' if amount.steps > 1 else ''}{seeds}",
        f"{amount.scorings} scoring{'s' if amount.scorings > 1 else ''}",
        f"{amount.finetunings} fine-tunings" if amount.finetunings else "no training",
        f"{amount.evaluations} evaluations",
    ]
    st.markdown(f"About **{span(planned.whole.seconds)}** on this machine{plain(planned.busy)}: {', '.join(parts)}.")
    dots = " …" if len(sizes) > 14 else ""
    st.caption(f"Heads off after each step: {', '.join(plain(str(s)) for s in sizes[:14])}{dots} of {planned.heads}")
    for note in planned.notes:
        st.caption(plain(f"Note: {plans.in_words(note)}"))
