"""A sweep: one curve for each combination, a table of results, its runs, and tabs of plugins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from .... import plugins
from ....answers.metrics import going_on
from ....display import numbers
from ....display.table import PAGE, Column, Table
from ....pruning import baselines
from ....pruning.baselines import one_class
from ....runs.curves import Curve, curve_of, run_curves
from ....runs.reading import combination, full_models
from ....runs.tables import sweep_table
from ....tasks import points_in
from ...shell import show, state
from ...shell.messages import plain
from . import listing, steps
from .steps import tabs_of

if TYPE_CHECKING:
    from ....runs.reading import Row, RunView

OWN = ("Results", "Its runs")


def detail(view: RunView) -> None:
    """Everything below the state line."""
    rows = view.results()
    tasks = list(dict.fromkeys(r.task for r in rows))
    if rows:
        if said := one_class_of(view.children) + finding(rows, view.children):
            show.finding(said)
        task = steps.chosen("Task", tasks, "sweep_task")
        drawn = curves(view, task)
        level = " or ".join(dict.fromkeys(baselines.WORDS[c.against] for c in drawn))
        show.figure(
            run_curves(drawn),
            "sweep_curves",
            f"{task}: mean over the seeds against the share of heads removed; thin lines are seeds, the band one "
            f"standard deviation, dashed {level}{dotted(drawn)}.",
        )
    else:
        st.info(
            "The table fills when the runs finish their first steps. You may leave this page; they continue.",
            icon=":material/hourglass_top:",
        )
    more = tabs_of(view)
    tabs = state.tabs((*OWN, *(plain(tab.title) for tab in more)), "sweep_tabs")
    if tabs[0].open:
        with tabs[0]:
            _results(rows)
    if tabs[1].open:
        with tabs[1]:
            _members(view.children)
    for tab, entry in zip(tabs[2:], more, strict=True):
        if tab.open:
            with tab:
                plugins.function(entry.draw)(view.children)


def dotted(drawn: Sequence[Curve]) -> str:
    """What the dotted lines of the curves are, with the semicolon before it."""
    lines = {"the unpruned model": [c.given for c in drawn], "one class for all": [c.constant for c in drawn]}
    named = [name for name, values in lines.items() if any(v is not None for v in values)]
    return f"; dotted, {' and '.join(named)}" if named else ""


def one_class_of(children: Sequence[RunView]) -> str:
    """Which runs end in answers of (nearly) one class; said before which of them keeps most."""
    found = [(c.record.title, said) for c in children if (said := one_class(c.steps))]
    if not found:
        return ""
    more = f" And in {len(found) - 1} more of the runs." if len(found) > 1 else ""
    title, said = found[0]
    return f"{title}: {going_on(said.strip())}{more} "


def finding(rows: Sequence[Row], children: Sequence[RunView] = ()) -> str:
    """Which combination is best at half of the heads, or at the nearest share that all have."""
    metric = rows[0].metric
    task = rows[0].task
    here = [r for r in rows if r.metric == metric and r.task == task and r.sparsity > 0 and r.mean is not None]
    groups: dict[tuple[str, str], list[Row]] = {}
    for r in here:
        groups.setdefault((r.algorithm, r.score), []).append(r)
    if len(groups) < 2:
        return ""
    common = set.intersection(*({round(r.sparsity, 3) for r in g} for g in groups.values()))
    if not common:
        return ""
    share = min(common, key=lambda s: abs(s - 0.5))
    at = [r for r in here if round(r.sparsity, 3) == share]
    best, worst = max(at, key=lambda r: r.mean or 0), min(at, key=lambda r: r.mean or 0)
    where = f"With {100 * share:.0f} % of the heads removed"
    where = f"{task}: {where.lower()}" if len({r.task for r in rows}) > 1 else where
    if best.mean == worst.mean:
        return f"{where}, all reach the same {metric}: {_spread(best)}."
    even = [_named(r) for r in at if r.mean == best.mean]
    return (
        f"{where}, {' and '.join(even)} reach{'es' if len(even) == 1 else ''} the highest {metric}: {_spread(best)}. "
        f"Lowest is {_named(worst)}: {_spread(worst)}.{_untold(at, best, children)}"
    )


def _untold(at: Sequence[Row], best: Row, children: Sequence[RunView]) -> str:
    """Which others the best is not shown to be better than: their intervals over the examples reach into its own."""
    own = _changes(best, children)
    near = [_named(r) for r in at if r is not best and (ends := _changes(r, children)) and own and ends[1] >= own[0]]
    if not near:
        return ""
    return f" Not told apart from the highest: {', '.join(near)}."


def _changes(r: Row, children: Sequence[RunView]) -> tuple[float, float] | None:
    """The ends of a combination's paired changes, the widest over its seeds; None where a run has no intervals."""
    own = [c for c in children if combination(c) == (r.task, r.algorithm, r.score)]
    steps = [s for c in own for s in c.steps if round(s["sparsity"], 9) == r.sparsity]
    found = [(s.get("change") or {}).get(r.metric) or {} for s in steps]
    if not found or any(f.get("low") is None or f.get("high") is None for f in found):
        return None
    return min(f["low"] for f in found), max(f["high"] for f in found)


def _named(r: Row) -> str:
    return f"{r.algorithm} by {score_words(r.score)}"


def score_words(score: str) -> str:
    """A score's name in a sentence; magnitude is that of the weights."""
    return "weight magnitude" if score == "magnitude" else score


def _spread(r: Row) -> str:
    scale = points_in(r.metric)
    mean = numbers.metric(float("nan") if r.mean is None else r.mean, scale)
    return mean + (f" ± {numbers.metric(r.sd, scale)}" if r.sd is not None else "")


def curves(view: RunView, task: str) -> list[Curve]:
    """One curve for each algorithm and score of a task, over its seeds."""
    groups: dict[tuple[str, str], list[RunView]] = {}
    for child in view.children:
        spec = child.record.spec
        if str(spec.get("task")) == task:
            groups.setdefault((str(spec.get("algorithm")), str(spec.get("score"))), []).append(child)
    found = []
    for (algorithm, score), children in groups.items():
        own = [c for child in children if (c := curve_of(child.to_dict())) is not None]
        if not own:
            continue
        metric = own[0].metric
        full = [s["metrics"].get(metric) for child in children for s in full_models(child)]
        known = [v for v in full if v is not None]
        by_seed = {seed: points for c in own for seed, points in c.by_seed.items()}
        level = sum(known) / len(known) if known else None
        found.append(
            Curve(f"{algorithm} by {score}", metric, level, by_seed, own[0].against, own[0].given, own[0].constant)
        )
    return found


def _results(rows: Sequence[Row]) -> None:
    if not rows:
        st.caption("No steps yet.")
        return
    found = sweep_table(rows)
    # a value that all rows share is in the caption instead; the files have every column
    columns = zip(found.titles(PAGE), found.texts(PAGE)[0], zip(*found.rows, strict=True), strict=True)
    same = {name: text for name, text, column in list(columns)[:6] if len(set(column)) == 1}
    if not any(r.missing for r in rows):
        same["missing"] = ""
    about = ", ".join(filter(None, same.values()))
    caption = (
        f"{about + ': m' if about else 'M'}eans over the seeds that are done. 0 % is the full model that the steps are "
        "compared with."
    )
    show.table(replace(found, caption=caption), column_config=dict.fromkeys(same))


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
    chosen = st.session_state.get("sweep_open")
    if chosen:
        state.update(run=chosen, step=0)
