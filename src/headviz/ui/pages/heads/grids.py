"""The parts of the Heads page: its two linked grids, the score of each, and how exact the values are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from ....attribution.rules import KEPT, order_kept
from ....display.figures.palette import scale_for
from ....display.recipes import Code, call, command
from ....heads import HeadScores
from ....scores.catalogue import SCORES, correlates
from ....tasks.catalogue import get_task
from ...parts import abilities, cost, scoring
from ...shell import graded, jobs, part, recipes, show, state
from ...shell.loaders import Shape
from ...shell.view import COST, IN_LOSS, View
from ...widgets.grid import Look
from . import difference as tuning
from .bands import TITLES

WEIGHTS = ("fine-tuned", "pre-trained", "difference")
WEAK = 0.2  # correlations nearer to zero than this count as weak


def introduction(view: View) -> None:
    """What this page shows, for a reader who is new. A presentation leaves it out."""
    if view.present:
        return
    demo = (
        " The demo reads two sentences and says whether the second follows from the first, contradicts it, or neither."
        if abilities.known(view)
        else ""
    )
    st.caption(f"Each cell is one attention head.{demo}")


def options(view: View, shape: Shape) -> None:
    """Which weights, on how many examples, in a menu beside the first score."""
    with st.popover("Options", icon=":material/tune:"):
        if shape.labels:
            state.switch("weights", "Weights", WEIGHTS)
        else:
            state.update(weights="fine-tuned")
        state.number(
            "samples",
            "Minimum examples",
            4,
            20_000,
            step=64,
            width=150,
            help="A score is computed on this many examples. A table of more examples is shown if there is one.",
        )
        state.tick("numbers", "Values", help="Write the values into the grid")
        if state.view().weights != "fine-tuned" and view.model != "demo":
            state.text("base", "Pre-trained model", placeholder="bert-base-uncased", width=200)


def choose(view: View, shape: Shape) -> None:
    """The first score and its options, in one line."""
    if view.present:
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="first_place"):
        state.choose(
            "score", "Score", graded.sorted_names(view.source, shape.scores), width=230, label_visibility="collapsed"
        )
        options(view, shape)


def choose_beside(view: View, shape: Shape) -> None:
    """The score of the second grid; empty means what each head costs."""
    if view.present:
        return
    others = ["", *(s for s in graded.sorted_names(view.source, shape.scores) if s != COST or view.beside == COST)]
    told = {"": f"{COST}: what each head costs"}
    state.choose(
        "beside",
        "Score of the second grid",
        others,
        width=270,
        label_visibility="collapsed",
        format_func=lambda s: told.get(s, s),
        help=f"It also orders the heads in the Mask lab and in runs; {IN_LOSS} orders nothing, it shows costs",
    )


def tables(view: View) -> dict[str, HeadScores | None]:
    """The tables that this view shows; None for one that has not been computed. Progress is shown on the page."""
    both = view.weights == "difference"
    return {name: table(view, name) for name in (("pre-trained", "fine-tuned") if both else (view.weights,))}


def table(view: View, weights: str = "fine-tuned") -> HeadScores | None:
    """The table of the view's score, with a button or progress while there is none of enough examples."""
    key = scoring.key_of(view, weights=weights)
    found = scoring.scores(view, weights=weights)
    job = jobs.find(key)
    if job is not None or key in _asked():
        return scoring.compute(view, weights)
    if not state.view().present:
        enough = found is not None and (not found.samples or found.samples >= view.samples)
        label = "Compute" if found is None else "Refine"
        which = "scores" if view.weights == "fine-tuned" else f"{weights} scores"
        if not enough:
            st.button(
                show.plain(f"{label} {which}" + (f" on {view.samples} examples" if SCORES[view.score].needs else "")),
                key=f"compute_{weights}_{view.score}",
                icon=":material/play_arrow:",
                type="primary" if found is None else "secondary",
                on_click=_ask,
                args=(key,),
            )
    return found


def growing(view: View) -> bool:
    """Whether the table of the view's score is of a part of the examples, and more come."""
    job = jobs.find(scoring.key_of(view))
    return job is not None and job.running


def table_beside(view: View) -> HeadScores | None:
    """The table of the second score. Costs in loss need no click where those in points were measured: they are read
    from the same answers."""
    second, points = replace(view, score=view.beside), scoring.scores(view, COST)
    known = points is not None and points.samples >= view.samples and not scoring.is_shipped(points, view)
    if known and view.beside == IN_LOSS and not view.present:
        return scoring.compute(second)
    return table(second)


def _ask(key: tuple[Any, ...]) -> None:
    jobs.forget(key)
    st.session_state["score_asked"] = (*_asked(), key)[-8:]


def _asked() -> tuple[Any, ...]:
    """The tables that this session has asked for."""
    return st.session_state.get("score_asked", ())


def status(found: HeadScores, view: View, name: str = "") -> None:
    """How precise the table is: examples, stability of the ranking, notes. ``name`` says which of two tables."""
    said = measured_on(found, view)
    parts = [f"{name}: {said}" if name else said[0].upper() + said[1:]]
    if found.stability == found.stability:
        parts.append(f"another sample would share {100 * found.stability:.0f} % of the lowest fifth of heads")
    error = found.settings.get("integration_error")
    if error is not None:
        more = "; in Python more steps make it smaller: score_heads(…, steps=64)" if error > KEPT[-1][0] else ""
        parts.append(f"mean integration error {100 * error:.1f} %: {order_kept(error)}{more}")
    st.caption(show.plain("  ·  ".join([*parts, *found.notes])))


def measured_on(found: HeadScores, view: View) -> str:
    """On how many examples, and why not on as many as are asked for."""
    if not found.samples:
        return "no examples needed"
    # a cost there need not be that on the data's own mix
    balanced = "sample" if get_task(view.task).answer.gold_is_pair else "balanced sample"
    said = f"measured on {scoring.examples_of(found)}, a {balanced} of usual length"
    if found.samples <= view.samples:
        return said
    why = "a table that comes with headviz" if scoring.is_shipped(found, view) else "a table computed before"
    return f"{said}; {why}, more precise than the {view.samples:,} asked for"


def grids(ready: dict[str, HeadScores], shape: Shape, view: View) -> None:
    """Several grids of the first score side by side, on one scale."""
    tips = {name: tuning.tips_of(table, name) for name, table in ready.items()}
    if "difference" in ready:
        tips["difference"] = tuning.tips(ready["pre-trained"], ready["fine-tuned"])
    everything = [float(v) for table in ready.values() for v in table.values.ravel()]
    scale = scale_for(everything, signed=correlates(view.score) or None)
    for box, (name, table) in zip(st.columns(len(ready), gap="small"), ready.items(), strict=True):
        with box:
            grid(f"heads_{name}", table, tips[name], Look(title=TITLES[name], scale=scale, width=24), shape, view)


def one(key: str, found: HeadScores | None, other: HeadScores | None, title: str, shape: Shape, view: View) -> None:
    """One of the two grids. Its tooltips name the other's value too. Without a table heads can still be chosen."""
    costs = found is not None and found.score == COST
    tips = {} if found is None else scoring.tip_tables(found)
    if found is not None and other is not None and other.score != found.score:
        tips |= scoring.value_tips(other)
    look = Look(
        title=title,
        scale=None if found is None else cost.colours(found),
        width=36 if view.present else 29,
        blank_zeros=costs,  # most heads cost nothing, and zeros would hide the others
        digits=1 if costs else None,
    )
    grid(key, found, tips, look, shape, view)


def grid(key: str, found: HeadScores | None, tips: Any, look: Look, shape: Shape, view: View) -> None:
    """A grid of the page; all of them show the same chosen head."""
    name, score = ("heads", "heads") if found is None else (cost.called(found), found.score)
    part.clickable(
        lambda: show.head_grid(
            key,
            shape.present,
            None if found is None else found.values,
            mask=state.mask(shape.present),
            selected=state.head(shape.present),
            tips={**(tips or {}), **abilities.look_tips(view, shape.present)},
            grey=None if found is None else cost.grey(found),
            carries=abilities.carried(view),
            group="heads",
            look=replace(look, name=name, numbers=view.numbers, large=view.present, file=f"headviz-{score}"),
            rows=shape.rows,
            on_select=part.select,
        )
    )


def title_of(found: HeadScores | None, wanted: str) -> str:
    """What a grid's colours mean, above it."""
    if wanted == COST and found is not None and found.score != COST:
        return f"Cost, estimated by {found.score} until it is measured"
    if wanted == COST:
        return "Cost: what is lost without the head"
    if correlates(wanted):
        return "Agreement: does it contribute where it looks?"
    return SCORES[wanted].title


def hint(view: View, shape: Shape) -> str:
    """Where a cost may show that no answer shows; empty where it is shown already or nothing can be chosen."""
    if view.present or view.beside not in ("", COST) or view.score == IN_LOSS or IN_LOSS not in shape.scores:
        return ""
    return f"The loss may move before an answer does: choose {IN_LOSS} for the second grid."


def finding(found: HeadScores, values: np.ndarray, view: View, shape: Shape) -> str:
    """The page's first sentence: what the grid shows."""
    known = values[np.isfinite(values)]
    if known.size == 0:
        return "No head has a value yet."
    ranked = found.ranked()
    if not ranked:
        return "No head has a value yet."
    best, last = (
        f"{show.head_name(h, shape.rows)} ({show.signed(float(found.values[h]))})" for h in (ranked[0], ranked[-1])
    )
    if known.min() == known.max():
        return f"Every head has the same {view.score}: {show.signed(float(known[0]))}."
    if not correlates(view.score):
        return f"Highest {view.score}: {best}; lowest: {last}."
    if known.max() < 0:
        return f"Every head contributes least where it looks most. Highest is {best}, lowest {last}."
    weak = 100 * float((np.abs(known) < WEAK).mean())
    how = "rarely" if weak >= 80 else "often does not" if weak >= 50 else "often"
    tells = "tell" if how == "often does not" else "tells"
    return (
        f"Where a head looks {how} {tells} what it contributes ({weak:.0f} % of the heads between −{WEAK} and {WEAK}). "
        f"Highest is {best}, lowest {last}."
    )


def recipe(view: View, shown: HeadScores | None = None) -> tuple[str, str]:
    """The table on the page from the library and from the command line."""
    if shown is not None and shown.samples:
        view = replace(view, samples=shown.samples)
    train = replace(view, limit=0)
    drawn = call("headviz.sample", Code("train"), view.samples, seed=view.seed, lengths=Code("clf.tokenizer"))
    lines = [recipes.HEADVIZ, recipes.load(view), recipes.task(train, "train", "train"), f"some = {drawn}"]
    sample = (("score", view.score), ("samples", view.samples), ("seed", view.seed))
    options = (*recipes.model_options(view), *recipes.data_options(train), *sample)
    if view.weights == "fine-tuned":
        lines.append(f"scores = headviz.score_heads(clf, some, score={view.score!r})")
        return "\n".join(lines), command("score", options)
    base = view.base or f"{view.model}-pretrained"
    about = f"score={view.score!r}, data={view.task!r}, n=len(some)"
    lines += [
        f"before = [headviz.load({base!r}, fresh_labels=clf.labels, seed=s) for s in range({scoring.FRESH_HEADS})]",
        f"table = lambda model: headviz.score_heads(model, some, score={view.score!r}).values",
        f"grids = headviz.correlation_grids(clf, before, table, {about})",
        "print(grids.pretrained, grids.fine_tuned, grids.difference)",
    ]
    options += (("base", base), ("heads", scoring.FRESH_HEADS))
    return "\n".join(lines), command("analyse correlation", options)
