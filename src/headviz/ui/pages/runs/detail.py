"""One run on the Runs page, and the runs whose result is one table of heads: a score, or an ablation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from .... import plugins
from ....analyses import ablation
from ....display import numbers
from ....display.figures.style import Scale, scale_of_losses
from ....display.table import Table
from ....errors import RunError, UserError
from ....heads import HeadMask, HeadScores, head_name
from ....runs.kinds import RUNS, kind_title
from ....scores.catalogue import DEFAULT, SCORES
from ....tasks import DEFAULT_SAMPLES, get_task, points_in
from ...parts import abilities, scoring
from ...parts.measure import key_of
from ...shell import frame, jobs, loaders, show, state
from ...shell.messages import plain
from ...shell.tables import TABS
from ...shell.view import View
from ...widgets.grid import Look
from .. import analyses
from . import faster, listing, models, steps, sweep
from .models import look_at, of_another_model

if TYPE_CHECKING:
    from ....analyses.ablation import Ablation
    from ....runs.reading import RunView

GO = "run_table_go"


def heads_of(view: RunView) -> None:
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
    if page := st.session_state.pop(GO, ""):
        st.switch_page(page)


def _rows(spec: dict[str, Any]) -> tuple[str, ...] | None:
    """Names of the grid's rows; None if the model no longer exists."""
    try:
        return loaders.shape(_view_of(spec)).rows
    except UserError:
        return None


def _view_of(spec: dict[str, Any]) -> View:
    return View(
        model=str(spec["model"]),
        revision=str(spec.get("revision") or ""),
        job=str(spec.get("job") or ""),
        classes=",".join(spec.get("label_order") or ()),
    )


def _grid(
    values: np.ndarray, present: HeadMask, rows: tuple[str, ...] | None, name: str, colours: Scale, **more: Any
) -> None:
    show.head_grid(
        "run_grid",
        present,
        values,
        selected=state.head(present),
        rows=rows,
        on_select=state.select,
        look=Look(name=name, scale=colours, numbers=state.view().numbers, width=36, file="headviz-run"),
        **more,
    )


# ---- a score


def _score(view: RunView) -> None:
    spec, found = view.record.spec, scoring.from_plain(view.outcome)
    rows = _rows(spec)
    ranked = found.ranked()
    if ranked:
        first, last = (head_name(h, rows) for h in (ranked[0], ranked[-1]))
        show.finding(
            f"{first} is highest with {numbers.signed(float(found.values[ranked[0]]))}, {last} lowest with "
            f"{numbers.signed(float(found.values[ranked[-1]]))}."
        )
    left, right = st.columns([5, 4], gap="large")
    with left:
        shown = scoring.in_points(found)
        _grid(
            shown.values,
            found.mask,
            rows,
            scoring.label(found),
            scoring.colours(shown),
            tips=scoring.tip_tables(shown),
            carries=abilities.carried_in(spec),
        )
        show.note(f"{found.score} of every head: layers down, heads across.", saves=False)
        examples = f"measured on {found.samples:,} examples" if found.samples else "no examples needed"
        st.caption(plain("  ·  ".join([examples, *found.notes])))
        if frame.controls():
            _to_heads(spec, found)
    with right:
        ranking = scoring.ranking_table("run_ranking", found, scoring.ranked_by(found))
        show.table(ranking, rows or (), record=found.to_dict(), height=430)


# options that the Heads page always has
DEFAULTS = {"split": "train", "limit": None, "length_filter": "quantile", "off": "", "label_order": None}


def asked_on_heads(spec: dict[str, Any]) -> bool:
    """Whether the Heads page would compute the same table: the whole model, with the score's defaults."""
    score = spec.get("score") or DEFAULT
    plain = all(spec.get(name, value) == value for name, value in DEFAULTS.items())
    if score not in SCORES or spec.get("options"):
        return False
    return plain and not (SCORES[score].seeded and spec.get("seed", 0) != 0)


def _to_heads(spec: dict[str, Any], found: HeadScores) -> None:
    if asked_on_heads(spec):
        st.button(
            "Open it on Heads", key="run_heads", icon=":material/grid_view:", on_click=_open_heads, args=(spec, found)
        )
    else:
        st.caption("The Heads page shows scores with their default options only, so it cannot show this table.")


def _open_heads(spec: dict[str, Any], found: HeadScores) -> None:
    try:
        look_at(
            spec,
            score=found.score,
            weights="fine-tuned",
            samples=max(4, int(spec.get("samples", DEFAULT_SAMPLES))),
            seed=int(spec.get("seed", 0)),
        )
    except UserError as wrong:
        state.notify(wrong)
        return
    jobs.put(scoring.key_of(state.view()), found)
    st.session_state[GO] = "pages/heads.py"


# ---- an ablation


def _so_far(view: RunView) -> None:
    """The layers that are done."""
    shape = loaders.shape(_view_of(view.record.spec))
    values = np.full((shape.present.num_layers, shape.present.num_heads), np.nan)
    spec = view.record.spec
    scale = points_in(str(spec.get("metric") or get_task(str(spec["task"])).primary_metric))
    for step in view.steps:
        for head, lost in step["costs"]:
            if lost is not None:
                values[int(step["layer"]), int(head)] = scale * lost
    colours = scale_of_losses([float(v) for v in values.ravel() if v == v])
    _grid(values, shape.present, shape.rows, "cost, points", colours)
    show.note("What the model loses without each head, for the heads measured so far.", saves=False)


def _ablation(view: RunView) -> None:
    found = ablation.Ablation.from_dict(view.outcome)
    analyses.draw(ablation.view(found))
    if frame.controls():
        st.button(
            "Open it on Analyses",
            key="run_analyses",
            icon=":material/query_stats:",
            on_click=_open_analyses,
            args=(view.record.spec, found),
        )
    analyses.published("ablation", found.subject.task)


def _open_analyses(spec: dict[str, Any], found: Ablation) -> None:
    """Open Analyses: with this result if it is about the same model, data and metric, else with its *Run* button."""
    try:
        look_at(spec, analysis="ablation", limit=int(spec.get("limit") or 0), groups="")
        clf, data = loaders.model(state.view()), loaders.dataset(state.view())
    except UserError as wrong:
        state.notify(wrong)
        return
    same = (clf.digest, data.digest) == (found.subject.digest, found.subject.data_digest)
    if same and found.base == clf.present and found.subject.metric == data.task.primary_metric:
        jobs.put(key_of(clf, data, "analysis", "ablation", "", "", ""), found)
    st.session_state[GO] = "pages/analyses.py"


# ---- any run


def watch(ids: Sequence[str]) -> RunView:
    """The first run with all its details, the others as further curves on its figure. Gives the first."""
    views = [listing.look(i, log_lines=0) for i in ids]
    first = views[0]
    record = first.record
    st.subheader(plain(record.title))
    st.caption(f"{plain(kind_title(record.kind))}  ·  {plain(listing.about(first))}")
    of_another_model(first)
    busy = any(map(listing.busy, views))
    st.fragment(_live, run_every=listing.POLL if busy else None)(_seen(views), [v.record.id for v in views])
    if record.parent and frame.controls():
        st.button(
            "Back to its sweep",
            key="run_parent",
            icon=":material/arrow_upward:",
            type="tertiary",
            on_click=_go,
            args=(record.parent,),
        )
    if record.kind == "prune":
        steps.detail(first, views[1:])
    elif record.kind == "sweep":
        sweep.detail(first)
    elif record.kind == "finetune":
        models.finetuned(first)
    elif record.kind == "faster":
        faster.detail(first)
    elif record.kind in ("score", "ablation"):
        heads_of(first)
    elif record.kind in RUNS and (draw := RUNS[record.kind].draw) is not None:
        plugins.function(draw)(first)
    else:
        _outcome(first)
    listing.log(first)
    return first


def of_a_tab() -> tuple[str, str] | None:
    """The recipe of what a plugin's tab has just drawn; None where there is none."""
    made = [plugins.function(tab.recipe)() for tab in TABS.values() if tab.recipe is not None]
    return next((recipe for recipe in made if recipe is not None), None)


def _go(run_id: str) -> None:
    state.update(run=run_id, step=0)


def _seen(views: Sequence[RunView]) -> tuple[Any, ...]:
    """What the page below depends on. When it changes, the page is drawn again."""
    return tuple(
        (v.record.id, v.state, len(v.steps), len(v.baseline), *((c.state, len(c.steps)) for c in v.children))
        for v in views
    )


def _live(seen: tuple[Any, ...], ids: Sequence[str]) -> None:
    listing.look_again()
    try:
        views = [listing.look(i, log_lines=0) for i in ids]
    except RunError:  # somebody has deleted it
        st.rerun()
    listing.state_line(views[0])
    if _seen(views) != seen:
        st.rerun()


def _outcome(view: RunView) -> None:
    """A kind of run without its own figure: its numbers, and where to find the rest."""
    numbers = {k: v for k, v in view.outcome.items() if isinstance(v, int | float | str) and not isinstance(v, bool)}
    if numbers:
        show.table(Table("run_outcome", ("", "value"), list(numbers.items()), "The results that are single numbers."))
    if view.steps:
        st.caption("All results are in the report as JSON.")
