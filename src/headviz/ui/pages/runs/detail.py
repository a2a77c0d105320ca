"""One run on the Runs page, and the runs whose result is one table of heads: a score, or an ablation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from .... import plugins
from ....analyses import ablation
from ....analyses.common import cut_off_of
from ....answers.metrics import constant_name, continued, metric_title
from ....display import numbers
from ....display.figures.style import Scale, scale_of_losses
from ....display.table import PAGE, Column, Table
from ....errors import RunError, UserError
from ....heads import HeadMask, HeadScores, head_name
from ....pruning import baselines
from ....pruning.baselines import one_class
from ....runs.kinds import RUNS, kind_title
from ....runs.reading import combination
from ....runs.record import PRUNE, SWEEP
from ....runs.tables import Curve, run_curves, sweep_curves, sweep_table
from ....scores.catalogue import DEFAULT, SCORES
from ....tasks import DEFAULT_SAMPLES, get_task, points_in
from ...parts import scoring
from ...parts.measure import key_of
from ...shell import frame, jobs, kept, loaders, show, state
from ...shell.messages import plain
from ...shell.view import TABS, View
from ...widgets.grid import Look
from .. import analyses
from . import listing, models, steps
from .models import look_at, warn_of_other_model

if TYPE_CHECKING:
    from ....analyses.ablation import Ablation
    from ....runs.reading import Row, RunView


# -----------------------------------------------------------------------------------------------
# A sweep: one curve for each combination, a table of results, its runs, and tabs of plugins.


def detail(view: RunView) -> None:
    """Everything below the state line."""
    rows = view.results()
    tasks = list(dict.fromkeys(r.task for r in rows))
    if rows:
        if sentence := one_class_remark(view.children) + finding(rows, view.children):
            show.finding(sentence)
        task = steps.choose_name("Task", tasks, "sweep_task")
        drawn = sweep_curves([c for c in view.children if c.record.spec.get("task") == task])
        level = " or ".join(dict.fromkeys(baselines.WORDS[c.against] for c in drawn))
        show.figure(
            run_curves(drawn),
            "sweep_curves",
            f"{task}: mean over the seeds against the share of heads removed; thin lines are seeds, the band one "
            f"standard deviation, dashed {level}{dotted_lines(drawn)}.",
        )
    else:
        st.info(
            "The table fills when the runs finish their first steps. You may leave this page; they continue.",
            icon=":material/hourglass_top:",
        )
    own = {"Results": partial(_results, rows), "Its runs": partial(_members, view.children)}
    steps.draw_tabs(own, steps.tabs_of(view), view.children, "sweep_tabs")


def dotted_lines(drawn: Sequence[Curve]) -> str:
    """What the dotted lines of the curves are, with the semicolon before it."""
    lines = {
        "the unpruned model": [c.unpruned for c in drawn],
        constant_name(drawn[0].metric): [c.constant for c in drawn],
    }
    names = [name for name, values in lines.items() if any(v is not None for v in values)]
    return f"; dotted, {' and '.join(names)}" if names else ""


def one_class_remark(children: Sequence[RunView]) -> str:
    """Which runs end in answers of (nearly) one class; stands before which of them keeps most."""
    remarked = [(c.record.title, remark) for c in children if (remark := one_class(c.steps))]
    if not remarked:
        return ""
    others = f" And in {len(remarked) - 1} more of the runs." if len(remarked) > 1 else ""
    title, remark = remarked[0]
    return f"{title}: {continued(remark.strip())}{others} "


def finding(rows: Sequence[Row], children: Sequence[RunView] = ()) -> str:
    """Which combination is best at half of the heads, or at the nearest share that all have."""
    metric, task = rows[0].metric, rows[0].task
    measured = [r for r in rows if r.metric == metric and r.task == task and r.sparsity > 0 and r.mean is not None]
    shares: dict[tuple[str, str], set[float]] = {}
    for r in measured:
        shares.setdefault((r.algorithm, r.score), set()).add(round(r.sparsity, 3))
    if len(shares) < 2:
        return ""
    common = set.intersection(*shares.values())
    if not common:
        return ""
    share = min(common, key=lambda s: abs(s - 0.5))
    compared = [r for r in measured if round(r.sparsity, 3) == share]
    best, worst = max(compared, key=lambda r: r.mean or 0), min(compared, key=lambda r: r.mean or 0)
    where = f"With {100 * share:.0f} % of the heads removed"
    where = f"{task}: {where.lower()}" if len({r.task for r in rows}) > 1 else where
    if best.mean == worst.mean:
        return f"{where}, all reach the same {metric_title(metric)}: {_spread(best)}."
    highest_rows = [_named(r) for r in compared if r.mean == best.mean]
    reach, highest = "reaches" if len(highest_rows) == 1 else "reach", metric_title(metric)
    return (
        f"{where}, {' and '.join(highest_rows)} {reach} the highest {highest}: {_spread(best)}. "
        f"Lowest is {_named(worst)}: {_spread(worst)}.{_not_below(compared, best, children)}"
    )


def _not_below(rows: Sequence[Row], best: Row, children: Sequence[RunView]) -> str:
    """The combinations that are not significantly below the best: their intervals over the examples reach into its."""
    highest = _changes(best, children)
    if highest is None:
        return ""
    near = [_named(r) for r in rows if r is not best and (ends := _changes(r, children)) and ends[1] >= highest[0]]
    return f" Not significantly below the highest: {', '.join(near)}." if near else ""


def _changes(r: Row, children: Sequence[RunView]) -> tuple[float, float] | None:
    """The ends of a combination's paired changes, the widest over its seeds; None where a run has no intervals."""
    runs = [c for c in children if combination(c) == (r.task, r.algorithm, r.score)]
    steps = [s for c in runs for s in c.steps if round(s["sparsity"], 9) == r.sparsity]
    changes = [(s.get("change") or {}).get(r.metric) or {} for s in steps]
    if not changes or any(f.get("low") is None or f.get("high") is None for f in changes):
        return None
    return min(f["low"] for f in changes), max(f["high"] for f in changes)


def _named(r: Row) -> str:
    return f"{r.algorithm} by {'weight magnitude' if r.score == 'magnitude' else r.score}"


def _spread(r: Row) -> str:
    scale = points_in(r.metric)
    mean = numbers.metric(float("nan") if r.mean is None else r.mean, scale)
    if r.sd is None:
        return mean
    return f"{mean} ± {numbers.metric(r.sd, scale)}" if r.sd else f"{mean} for every seed"


def _results(rows: Sequence[Row]) -> None:
    if not rows:
        st.caption("No steps yet.")
        return
    table = sweep_table(rows)
    # a value that all rows share is in the caption instead; the files have every column
    columns = zip(table.titles(PAGE), table.texts(PAGE)[0], zip(*table.rows, strict=True), strict=True)
    shared = {name: text for name, text, column in list(columns)[:6] if len(set(column)) == 1}
    if not any(r.missing for r in rows):
        shared["missing"] = ""
    about = ", ".join(filter(None, shared.values()))
    caption = (
        f"{about + ': m' if about else 'M'}eans over the seeds that are done. 0 % is the full model that the steps are "
        "compared with."
    )
    show.table(replace(table, caption=caption), column_config=dict.fromkeys(shared))


def _members(children: Sequence[RunView]) -> None:
    """The sweep's runs with their states, and a field to open one."""
    columns = (
        Column("state", value=lambda run: f"{listing.ICONS.get(run.state, '')} {run.state}"),
        Column("run", value=lambda run: run.record.title),
        Column("steps", value=lambda run: len(run.steps)),
        Column("error", value=lambda run: run.record.error),
    )
    show.table(Table.of("sweep_members", columns, children, caption="Every run of the sweep."))
    titles = listing.labels(children)
    st.selectbox(
        "Open a run",
        list(titles),
        None,
        key="sweep_open",
        format_func=lambda i: titles.get(i, i),
        placeholder="its curve, masks and maps",
        on_change=_open,
    )


def _open() -> None:
    if run_id := st.session_state.get("sweep_open"):
        state.update(run=run_id, step=0)


# -----------------------------------------------------------------------------------------------


def show_heads(view: RunView) -> None:
    """The table of a score or an ablation so far, and the button that opens it on its page."""
    if view.outcome:
        (_score if view.record.kind == "score" else _ablation)(view)
    elif view.record.kind == "ablation" and view.steps:
        _so_far(view)
    elif view.state in ("running", "queued"):
        st.info(
            ("The grid appears at the end." if view.record.kind == "score" else "The grid fills layer by layer.")
            + " You may leave this page; the run continues.",
            icon=":material/hourglass_top:",
        )


def _rows(spec: dict[str, Any]) -> tuple[str, ...] | None:
    """Names of the grid's rows; None if the model no longer exists."""
    try:
        return loaders.shape(View(**models.model_fields(spec))).rows
    except UserError:
        return None


def _grid(
    values: np.ndarray, present: HeadMask, rows: tuple[str, ...] | None, name: str, colours: Scale, tips: Any = None
) -> None:
    show.head_grid(
        "run_grid",
        present,
        values,
        selected=state.head(present),
        rows=rows,
        on_select=state.select,
        look=Look(name=name, scale=colours, numbers=state.view().numbers, width=36, file="headviz-run"),
        tips=tips,
    )


# ---- a score


def _score(view: RunView) -> None:
    spec, scores = view.record.spec, scoring.from_plain(view.outcome)
    rows = _rows(spec)
    ranked = scores.ranked()
    if ranked:
        first, last = (head_name(h, rows) for h in (ranked[0], ranked[-1]))
        show.finding(
            f"{first} is highest with {numbers.signed(float(scores.values[ranked[0]]))}, {last} lowest with "
            f"{numbers.signed(float(scores.values[ranked[-1]]))}."
        )
    left, right = st.columns([5, 4], gap="large")
    with left:
        shown = scoring.in_points(scores)
        _grid(
            shown.values,
            scores.mask,
            rows,
            scoring.label(scores),
            scoring.colours(shown),
            tips=scoring.tip_tables(shown),
        )
        show.note(f"{scores.score} of every head: layers down, heads across.")
        examples = f"measured on {scores.samples:,} examples" if scores.samples else "no examples needed"
        st.caption(plain("  ·  ".join([examples, *scores.notes])))
        if frame.controls():
            _offer_scores_page(spec, scores)
    with right:
        ranking = scoring.ranking_table("run_ranking", scores, scoring.ranked_by(scores))
        show.table(ranking, rows or (), record=scores.to_dict(), height=430)


# options that the Scores page always has
DEFAULTS = {"split": "train", "limit": None, "length_filter": "none", "off": "", "label_order": None}


def is_on_scores_page(spec: dict[str, Any]) -> bool:
    """Whether the Scores page would compute the same table: the whole model, with the score's defaults."""
    score = spec.get("score") or DEFAULT
    if score not in SCORES or spec.get("options"):
        return False
    if any(spec.get(name, value) != value for name, value in DEFAULTS.items()):
        return False
    return not SCORES[score].seeded or spec.get("seed", 0) == 0


def _offer_scores_page(spec: dict[str, Any], scores: HeadScores) -> None:
    if is_on_scores_page(spec):
        st.button(
            "Open it on Scores",
            key="run_heads",
            icon=":material/grid_view:",
            on_click=_open_scores,
            args=(spec, scores),
        )
    else:
        st.caption("The Scores page shows scores with their default options only, so it cannot show this table.")


def _open_scores(spec: dict[str, Any], scores: HeadScores) -> None:
    try:
        look_at(
            spec,
            score=scores.score,
            weights="fine-tuned",
            samples=max(4, int(spec.get("samples", DEFAULT_SAMPLES))),
            seed=int(spec.get("seed", 0)),
        )
    except UserError as error:
        state.notify(error)
        return
    jobs.put(scoring.key_of(state.view()), scores)
    kept.open_page("scores")


# ---- an ablation


def _so_far(view: RunView) -> None:
    """The layers that are done."""
    spec = view.record.spec
    shape = loaders.shape(View(**models.model_fields(spec)))
    values = np.full((shape.present.num_layers, shape.present.num_heads), np.nan)
    scale = points_in(str(spec.get("metric") or get_task(str(spec["task"])).primary_metric))
    for step in view.steps:
        for head, cost in step["costs"]:
            if cost is not None:
                values[int(step["layer"]), int(head)] = scale * cost
    colours = scale_of_losses([float(v) for v in values.ravel() if v == v])
    _grid(values, shape.present, shape.rows, "cost, points", colours)
    show.note("What the model loses without each head, for the heads measured so far.")


def _ablation(view: RunView) -> None:
    result = ablation.Ablation.from_dict(view.outcome)
    analyses.draw(ablation.view(result))
    show.cut_off(cut_off_of(result))
    if frame.controls():
        st.button(
            "Open it on Analyses",
            key="run_analyses",
            icon=":material/query_stats:",
            on_click=_open_analyses,
            args=(view.record.spec, result),
        )
    analyses.published("ablation", result.subject.task)


def _open_analyses(spec: dict[str, Any], result: Ablation) -> None:
    """Open Analyses: with this result if it is about the same model, data and metric, else with its *Run* button."""
    try:
        look_at(spec, analysis="ablation", limit=int(spec.get("limit") or 0), groups="")
        clf, data = loaders.model(state.view()), loaders.dataset(state.view())
    except UserError as error:
        state.notify(error)
        return
    same = (clf.digest, data.digest) == (result.subject.digest, result.subject.data_digest)
    if same and result.base == clf.present and result.subject.metric == clf.answer.judged(data).task.primary_metric:
        jobs.put(key_of(clf, data, "analysis", "ablation", "", "", ""), result)
    kept.open_page("analyses")


# ---- any run


def watch(ids: Sequence[str]) -> RunView:
    """The first run with all its details, the others as further curves on its figure. Gives the first."""
    views = [listing.look(i) for i in ids]
    first = views[0]
    record = first.record
    st.subheader(plain(record.title))
    st.caption(f"{plain(kind_title(record.kind))}  ·  {plain(listing.about(first))}")
    warn_of_other_model(first)
    for note in first.outcome.get("notes") or ():
        st.caption(plain(note))
    busy = any(map(listing.busy, views))
    st.fragment(_live, run_every=listing.POLL if busy else None)(_seen(views), ids)
    if record.parent and frame.controls():
        st.button(
            "Back to its sweep",
            key="run_parent",
            icon=":material/arrow_upward:",
            type="tertiary",
            on_click=state.update,
            kwargs={"run": record.parent, "step": 0},
        )
    if record.kind == PRUNE:  # its page compares several runs
        steps.detail(first, views[1:])
    elif record.kind == SWEEP:
        detail(first)
    elif record.kind in RUNS and (draw := RUNS[record.kind].draw) is not None:
        plugins.function(draw)(first)
    else:
        _outcome(first)
    listing.log(first)
    return first


def recipe_of_tab() -> tuple[str, str] | None:
    """The recipe of what a plugin's tab has just drawn; None where there is none."""
    drawn = [plugins.function(tab.recipe)() for tab in TABS.values() if tab.recipe is not None]
    return next((recipe for recipe in drawn if recipe is not None), None)


def _seen(views: Sequence[RunView]) -> tuple[Any, ...]:
    """What the page below depends on. When it changes, the page is drawn again."""
    return tuple(
        (v.record.id, v.state, len(v.steps), len(v.baseline), *((c.state, len(c.steps)) for c in v.children))
        for v in views
    )


def _live(seen: tuple[Any, ...], ids: Sequence[str]) -> None:
    listing.look_again()
    try:
        views = [listing.look(i) for i in ids]
    except RunError:  # somebody has deleted it
        st.rerun()
    listing.state_line(views[0])
    if _seen(views) != seen:
        st.rerun()


def _outcome(view: RunView) -> None:
    """A kind of run without its own figure: its numbers, and where to find the rest."""
    values = {k: v for k, v in view.outcome.items() if isinstance(v, int | float | str) and not isinstance(v, bool)}
    if values:
        show.table(Table("run_outcome", ("", "value"), list(values.items()), "The results that are single numbers."))
    if view.steps:
        st.caption("All results are in the report as JSON.")
