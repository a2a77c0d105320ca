"""The parts of the Heads page: the grids, the selected head, the ranking and the bands."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from ....charts.palette import scale_for
from ....heads import HeadScores
from ....recipes.structure import Call, Command, Each, Get, Lambda, Let, Name, Recipe
from ....scores.catalogue import correlates
from ...parts import abilities, scoring
from ...shell import jobs, recipes, show, state
from ...shell import view_report as viewreport
from ...shell.loaders import Shape
from ...shell.view import View
from ...widgets.grid import Look, head_grid
from ...widgets.ranking import rank_list
from . import bands
from . import difference as tuning
from .bands import TITLES

SIDES = ("ranking", "bands")
WEIGHTS = ("fine-tuned", "pre-trained", "difference")
WEAK = 0.2  # correlations nearer to zero than this count as weak


def introduction(view: View) -> None:
    """What this page shows, for a reader who is new. A presentation leaves it out."""
    if view.present:
        return
    demo = (
        " The demo model reads two sentences and says whether the second follows from the first, contradicts it, or "
        "neither."
        if abilities.known(view)
        else ""
    )
    meaning = "how well where it looks agrees with what it contributes" if correlates(view.score) else "its score"
    st.caption(
        f"Each cell is one attention head; its colour shows {meaning}.{demo} Choose a cell to look into that "
        "head, switch heads off in the Mask lab, and try your own sentences in Compare."
    )


def controls(view: View, shape: Shape) -> None:
    """Which score, of which weights, on how many examples."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        state.choose("score", "Score", shape.scores, width=220)
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


def tables(view: View) -> dict[str, HeadScores | None]:
    """The tables that this view shows; None for one that has not been computed. Progress is shown on the page."""
    both = view.weights == "difference"
    return {name: _table(view, name) for name in (("pre-trained", "fine-tuned") if both else (view.weights,))}


def _table(view: View, weights: str) -> HeadScores | None:
    key = scoring.key_of(view, weights=weights)
    found = scoring.scores(view, weights=weights)
    job = jobs.find(key)
    if job is not None or st.session_state.get("score_asked") == key:
        return scoring.compute(view, weights)
    if not state.view().present:
        enough = found is not None and (not found.samples or found.samples >= view.samples)
        label = "Compute" if found is None else "Refine"
        if not enough:
            st.button(
                show.plain(f"{label} {weights} on {view.samples} examples"),
                key=f"compute_{weights}",
                icon=":material/play_arrow:",
                type="primary" if found is None else "secondary",
                on_click=_ask,
                args=(key,),
            )
    return found


def _ask(key: tuple[Any, ...]) -> None:
    jobs.forget(key)
    st.session_state["score_asked"] = key


def status(found: HeadScores, view: View, name: str = "") -> None:
    """How precise the table is: examples, stability of the ranking, notes. ``name`` says which of two tables."""
    said = measured_on(found, view)
    parts = [f"{name}: {said}" if name else said[0].upper() + said[1:]]
    if found.stability == found.stability:
        parts.append(f"another sample would share {100 * found.stability:.0f} % of the lowest fifth of heads")
    error = found.settings.get("integration_error")
    if error is not None:
        parts.append(f"mean integration error {100 * error:.1f} %")
    st.caption(show.plain("  ·  ".join([*parts, *found.notes])))


def measured_on(found: HeadScores, view: View) -> str:
    """On how many examples, and why not on as many as are asked for."""
    if not found.samples:
        return "no examples needed"
    said = f"measured on {found.samples:,} examples"
    if found.samples <= view.samples:
        return said
    why = "a table that comes with headviz" if scoring.is_shipped(found, view) else "a table computed before"
    return f"{said}, {why}: more precise than the {view.samples:,} asked for"


def grids(ready: dict[str, HeadScores], shape: Shape, view: View) -> None:
    """One grid, or several side by side on one scale."""
    present = shape.present
    shown = {name: table.values for name, table in ready.items()}
    tips = {name: tuning.tips_of(table, name) for name, table in ready.items()}
    if len(ready) == 1:
        tips = {name: scoring.tip_tables(table) for name, table in ready.items()}
    elif "difference" in ready:
        tips["difference"] = tuning.tips(ready["pre-trained"], ready["fine-tuned"])
    everything = [float(v) for values in shown.values() for v in values.ravel()]
    signed = correlates(view.score) or None
    scale = scale_for(everything, signed=signed)
    boxes = st.columns(len(shown), gap="small") if len(shown) > 1 else [st.container()]
    for box, (name, values) in zip(boxes, shown.items(), strict=True):
        with box:
            head_grid(
                f"heads_{name}",
                present,
                values,
                mask=state.mask(present),
                selected=state.head(present),
                tips=tips[name],
                look=Look(
                    name=view.score,
                    title=TITLES[name] if len(shown) > 1 else "",
                    scale=scale,
                    numbers=view.numbers,
                    width=36 if len(shown) == 1 else 24,
                    file=f"headviz-{view.score}",
                ),
                rows=shape.rows,
                on_select=state.select,
            )


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
    if not correlates(view.score):
        return f"Highest {view.score}: {best}; lowest: {last}."
    weak = 100 * float((np.abs(known) < WEAK).mean())
    how = "rarely" if weak >= 80 else "often does not" if weak >= 50 else "often"
    tells = "tell" if how == "often does not" else "tells"
    return (
        f"Where a head looks {how} {tells} what it contributes ({weak:.0f} % of the heads between −{WEAK} and {WEAK}). "
        f"Highest is {best}, lowest {last}."
    )


def card(ready: dict[str, HeadScores], shape: Shape) -> None:
    """The selected head: value, interval, rank, and where to go from here."""
    found = list(ready.values())[-1]
    present = shape.present
    head = state.head(present)
    if head is None:
        st.info("Choose a head in the grid to see its value and its rank.", icon=":material/touch_app:")
        if abilities.known(state.view()) and not state.view().present:
            st.page_link(
                "pages/data.py",
                label="Which heads carry negation, number, word order …?",
                icon=":material/school:",
                help="For the demo this has been measured. The table is on Data & model",
            )
        return
    ranked = found.ranked()
    rank = f"rank {ranked.index(head) + 1} of {len(ranked)}" if head in ranked else "not measured"
    name = show.head_name(head, shape.rows)
    if "difference" in ready:
        st.markdown(f"### {show.plain(str(name))}  {show.signed(float(found.values[head]))}")
        parts = [tuning.line(head, ready["pre-trained"], ready["fine-tuned"])]
    else:
        said = f"{show.signed(float(found.values[head]))} {scoring.interval(found, head)}"
        st.markdown(f"### {show.plain(str(name))}  {show.plain(said)}")
        parts = [f"{found.score}, {rank}"]
    if head in state.mask(present).off:
        parts.append("switched off in the Mask lab")
    st.caption(show.plain("  ·  ".join(parts)))
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        if shape.labels:
            st.page_link("pages/head.py", label="Look into it", icon=":material/search:")
        off = head in state.mask(present).off
        st.button(
            "Switch on" if off else "Switch off",
            key="card_toggle",
            type="tertiary",
            icon=":material/power_settings_new:",
            on_click=state.set_mask,
            args=(state.mask(present).toggled([head]),),
        )
        st.page_link("pages/masklab.py", label="Mask lab", icon=":material/grid_on:")


def detail(ready: dict[str, HeadScores], shape: Shape, view: View) -> None:
    """The ranking, or the bands of correlation. Only one of them, so that the first page loads fast."""
    sides = SIDES if correlates(view.score) else SIDES[:1]
    if len(sides) == 1 or state.view().present:
        chosen = view.side if view.side in sides else sides[0]
    else:
        chosen = state.switch("side", "Below", sides, format_func=str.capitalize, label_visibility="collapsed")
    if chosen == "bands":
        bands.section({name: table.values for name, table in ready.items()})
    else:
        ranking(list(ready.values())[-1], shape)


def ranking(found: HeadScores, shape: Shape) -> None:
    """All heads, the highest first, with their intervals if they have any."""
    header, rows = scoring.ranking_table(found, shape.rows)
    names = {h: show.head_name(h, shape.rows) for h in found.ranked()}
    caption = scoring.RANKED
    viewreport.note("table", (header, rows), caption)
    rank_list(
        "ranking",
        found,
        names,
        mask=state.mask(shape.present),
        selected=state.head(shape.present),
        on_select=state.select,
        interval=scoring.interval,
    )
    show.downloads(header, rows, "ranking", caption, found.to_dict())


def recipe(view: View, shown: HeadScores | None = None) -> tuple[str, str]:
    """The table on the page from the library and from the command line."""
    clf, some = Name("clf"), Name("some")
    if shown is not None and shown.samples:
        view = replace(view, samples=shown.samples)
    train = replace(view, limit=0)
    counted = {"lengths": Name("clf.tokenizer")} if scoring.counts_tokens(view) else {}
    words = {"seed": view.seed, **counted}
    lines = [
        recipes.HEADVIZ,
        recipes.load(view),
        recipes.task(train, "train", "train"),
        Let("some", Call("headviz.sample", (Name("train"), view.samples), words)),
    ]
    score = {"score": view.score}
    sample = (("score", view.score), ("samples", view.samples), ("seed", view.seed))
    options = (*recipes.model_given(view), *recipes.data_given(train), *sample)
    if view.weights == "fine-tuned":
        lines.append(Let("scores", Call("headviz.score_heads", (clf, some), score)))
        return Recipe(tuple(lines), Command(("score",), options)).written()
    base = view.base or f"{view.model}-pretrained"
    fresh = Call("headviz.load", (base,), {"fresh_labels": Name("clf.labels"), "seed": Name("s")})
    table = Get(Call("headviz.score_heads", (Name("model"), some), score), "values")
    about = {"score": view.score, "data": view.task, "n": Call("len", (some,))}
    grids = (Name("grids.pretrained"), Name("grids.fine_tuned"), Name("grids.difference"))
    lines += [
        Let("before", Each(fresh, "s", Call("range", (scoring.FRESH_HEADS,)))),
        Let("table", Lambda("model", table)),
        Let("grids", Call("headviz.correlation_grids", (clf, Name("before"), Name("table")), about)),
        Call("print", grids),
    ]
    options += (("base", base), ("heads", scoring.FRESH_HEADS))
    return Recipe(tuple(lines), Command(("analyse", "correlation"), options)).written()


def grids_empty(shape: Shape) -> None:
    """The grid before there is a score: heads without colours, to choose one."""
    present = shape.present
    head_grid(
        "heads_empty",
        present,
        rows=shape.rows,
        mask=state.mask(present),
        selected=state.head(present),
        look=Look(name="heads", width=36),
        on_select=state.select,
    )
