"""The parts of the Scores page: its two linked grids, the selected head, the ranking, the bands and the grades."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from ...analyses import grades
from ...attribution.rules import KEPT, order_kept
from ...display import numbers
from ...display.figures import bars
from ...display.figures.style import scale_for
from ...display.recipes import Code, call, command
from ...display.table import REPORT, Picture
from ...heads import HeadId, HeadScores, head_name
from ...scores.catalogue import SCORES, correlates
from ...tasks.catalogue import get_task
from ..parts import abilities, scoring
from ..shell import frame, jobs, loaders, recipes, show, state
from ..shell.loaders import Shape
from ..shell.messages import plain
from ..shell.view import COST, IN_LOSS, View, by_grade, own_grades
from ..widgets.grid import Look, rank_list
from . import analyses, orders

# ---- heads in bands of correlation

BANDS = tuple((i / 10, (i + 2) / 10) for i in range(-10, 10, 2))  # of equal width, so that bars compare
TITLES = {"fine-tuned": "Fine-tuned", "pre-trained": "Pre-trained", "difference": "Fine-tuned − pre-trained"}
PUBLISHED_BAND = (0.2, 0.4)  # its share was published
UNCUT = "Published for texts of at most 200 tokens; longer ones are not cut here."


def bands(shown: Mapping[str, np.ndarray]) -> None:
    """The share of heads in bands of correlation."""
    models = {TITLES[name]: values for name, values in shown.items() if name != "difference"}
    names = [f"{low:g} to {high:g}".replace("-", "−") for low, high in BANDS]
    rows = [(title, [in_band(values, *band) for band in BANDS]) for title, values in models.items()]
    sentences = [
        bands_sentence(values) if len(models) == 1 else f"{title}: {bands_sentence(values)}"
        for title, values in models.items()
    ]
    show.figure(
        bars.bands(rows, names),
        "bands",
        f"{' '.join(sentences)} {UNCUT}",
        source="Share of heads per band of correlation, “Integrated Gradients for Structured Pruning on BERT”, §6.5.2.",
    )
    analyses.published("correlation", state.view().task)


def bands_sentence(values: np.ndarray) -> str:
    """The band with the most heads, and the band of the published figures."""
    shares = {b: in_band(values, *b) for b in BANDS}
    if any(s != s for s in shares.values()):
        return "No head has a value yet."
    (low, high), most = max(shares.items(), key=lambda item: item[1])
    sentence = f"{100 * most:.0f} % of the heads lie between {low:g} and {high:g}".replace("-", "−")
    if (low, high) == PUBLISHED_BAND:
        return f"{sentence}, the band of the published figures."
    share = shares[PUBLISHED_BAND]
    other = f"{numbers.number(100 * share, 2)} %" if share else "none"
    return f"{sentence}, {other} between 0.2 and 0.4, the band of the published figures."


def in_band(values: np.ndarray, low: float, high: float) -> float:
    """The share of measured heads with low ≤ value < high; 1 belongs to the last band."""
    measured = values[np.isfinite(values)]
    if measured.size == 0:
        return float("nan")
    return float(((measured >= low) & ((measured < high) | ((high >= 1.0) & (measured <= high)))).mean())


# ---- which score is right

ASKED = "grades_asked"


def board(view: View) -> None:
    """The board of graded scores if there is one, and a button to grade them here. Progress stands above the board."""
    if not view.present and st.session_state.get(ASKED) == view.source:
        clf, data = loaders.classifier(view), loaders.dataset(view)
        loaders.check(clf, data)
        analyses.computed(analyses.GRADE, clf, data)
    graded = own_grades(view.source)
    if graded is not None:
        _board(graded, f"Measured here on {graded.data}, {graded.n:,} examples.")
        return
    recorded = grades.recorded() if view.on_demo else None
    if recorded is not None:
        _board(recorded.grades, recorded.about)
    else:
        st.caption(
            "Which score finds the heads that matter? It has not been measured on this model and these data. To grade "
            "a score is to remove heads in its order and see what is left, and to compare it with what each head costs."
        )
    if not view.present and st.session_state.get(ASKED) != view.source:
        st.button(
            "Grade the scores here",
            key="grade_here",
            icon=":material/leaderboard:",
            help="All scores that this model has, but for the slow ones. It goes on while you look at other pages. "
            "What was measured before is not measured again.",
            on_click=_ask_grades,
        )


def _ask_grades() -> None:
    st.session_state[ASKED] = state.view().source


def _board(graded: grades.Grades, about: str) -> None:
    shown = grades.view(graded)
    show.finding(shown.finding)
    for part in shown.parts:
        if isinstance(part, Picture):
            show.figure(part.draw(), part.key, part.caption, source=part.source)
        else:
            show.table(part)
    st.caption(plain(about))


# ---- the grids

WEIGHTS = ("fine-tuned", "pre-trained", "difference")
WEAK = 0.2  # correlations nearer to zero than this count as weak


def options(view: View, shape: Shape) -> None:
    """Which weights, on how many examples, in a menu next to the first score."""
    with st.popover("Options", icon=":material/tune:"):
        if shape.labels:
            state.switch("weights", "Weights", WEIGHTS)
        else:
            state.update(weights="fine-tuned")
        state.number(
            "samples",
            "Minimum examples",
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
        state.choose("score", "Score", by_grade(view.source, shape.scores), width=230, label_visibility="collapsed")
        options(view, shape)


def choose_second(view: View, shape: Shape) -> None:
    """The score of the second grid; empty means what each head costs."""
    if view.present:
        return
    others = ["", *(s for s in by_grade(view.source, shape.scores) if s != COST or view.beside == COST)]
    names = {"": f"{COST}: what each head costs"}
    state.choose(
        "beside",
        "Score of the second grid",
        others,
        width=270,
        label_visibility="collapsed",
        format_func=lambda s: names.get(s, s),
        help=f"It also orders the heads in the Mask lab and in runs; {IN_LOSS} orders nothing, it shows costs",
    )


def tables(view: View) -> dict[str, HeadScores | None]:
    """The tables that this view shows; None for one that has not been computed. Progress is shown on the page."""
    names = ("pre-trained", "fine-tuned") if view.weights == "difference" else (view.weights,)
    return {name: table(view, name) for name in names}


def table(view: View, weights: str = "fine-tuned") -> HeadScores | None:
    """The table of the view's score, with a button or progress while there is none of enough examples."""
    key = scoring.key_of(view, weights=weights)
    scores = scoring.scores(view, weights=weights)
    if jobs.find(key) is not None or key in _asked():
        return scoring.compute(view, weights)
    enough = scores is not None and (not scores.samples or scores.samples >= view.samples)
    if not enough and not state.view().present:
        verb = "Compute" if scores is None else "Refine"
        noun = "scores" if view.weights == "fine-tuned" else f"{weights} scores"
        st.button(
            plain(f"{verb} {noun}" + (f" on {view.samples} examples" if SCORES[view.score].needs else "")),
            key=f"compute_{weights}_{view.score}",
            icon=":material/play_arrow:",
            type="primary" if scores is None else "secondary",
            on_click=_ask,
            args=(key,),
        )
    return scores


def growing(view: View) -> bool:
    """Whether the table of the view's score is of a part of the examples, and more come."""
    job = jobs.find(scoring.key_of(view))
    return job is not None and job.running


def second_table(view: View) -> HeadScores | None:
    """The table of the second score. Costs in loss need no click where those in points were measured: they are read
    from the same answers."""
    second, costs = replace(view, score=view.beside), scoring.scores(view, COST)
    measured = costs is not None and costs.samples >= view.samples and not scoring.is_shipped(costs, view)
    if measured and view.beside == IN_LOSS and not view.present:
        return scoring.compute(second)
    return table(second)


def _ask(key: tuple[Any, ...]) -> None:
    jobs.forget(key)
    st.session_state["score_asked"] = (*_asked(), key)[-8:]


def _asked() -> tuple[Any, ...]:
    """The tables that this session has asked for."""
    return st.session_state.get("score_asked", ())


def status(scores: HeadScores, view: View, name: str) -> None:
    """On how many examples the table is measured; folded, how precise it is. ``name``: which of two tables."""
    sentence = measured_on(scores, view)
    details = []
    if scores.stability == scores.stability:
        share = f"{100 * scores.stability:.0f} %"
        details.append(
            f"Another sample of this size would agree on {share} of the fifth of heads with the lowest scores."
        )
    error = scores.settings.get("integration_error")
    if error is not None:
        hint = "; in Python more steps make it smaller: score_heads(…, steps=64)" if error > KEPT[-1][0] else ""
        details.append(f"Mean integration error {100 * error:.1f} %: {order_kept(error)}{hint}.")
    if faster := {"tf32": "TF32 on a GPU", "bfloat16": "bfloat16, a preview"}.get(scores.settings.get("precision", "")):
        details.append(f"Computed in {faster}.")
    score = SCORES[scores.score]
    measured = f"{name}: {sentence}" if name else sentence[0].upper() + sentence[1:]
    about = "  ·  ".join([f"{scores.score}: {score.meaning} {measured}", *scores.notes])
    show.note(about, formula=score.tex, source=score.source, more=details, key=f"heads_{name.lower()}")


def measured_on(scores: HeadScores, view: View) -> str:
    """On how many examples, and why not on as many as are asked for."""
    if not scores.samples:
        return "no examples needed"
    # a cost there need not be that on the data's own mix
    balanced = "sample" if get_task(view.task).answer.gold_is_pair else "balanced sample"
    sentence = f"measured on {scoring.examples_of(scores)}, a {balanced} of usual length"
    if scores.samples <= view.samples:
        return sentence
    why = "a table that comes with headviz" if scoring.is_shipped(scores, view) else "a table computed before"
    return f"{sentence}; {why}, more precise than the {view.samples:,} asked for"


def grids(ready: dict[str, HeadScores], shape: Shape, view: View) -> None:
    """Several grids of the first score side by side, on one scale."""
    tips = {name: orders.tips_of_one(table, name) for name, table in ready.items()}
    if "difference" in ready:
        tips["difference"] = orders.change_tips(ready["pre-trained"], ready["fine-tuned"])
    values = [float(v) for table in ready.values() for v in table.values.ravel()]
    scale = scale_for(values, signed=correlates(view.score) or None)
    for box, (name, table) in zip(st.columns(len(ready), gap="small"), ready.items(), strict=True):
        with box:
            grid(f"heads_{name}", table, tips[name], Look(title=TITLES[name], scale=scale, width=24), shape, view)


def score_grid(
    key: str, scores: HeadScores | None, other: HeadScores | None, title: str, shape: Shape, view: View
) -> None:
    """One of the two grids. Its tooltips name the other's value too. Without a table heads can still be chosen."""
    costs = scores is not None and scores.score == COST
    tips = {} if scores is None else scoring.tip_tables(scores)
    if scores is not None and other is not None and other.score != scores.score:
        tips |= scoring.value_tips(other)
    look = Look(
        title=title,
        scale=None if scores is None else scoring.colours(scores),
        width=36 if view.present else 29,
        blank_zeros=costs,  # most heads cost nothing, and zeros would hide the others
        digits=1 if costs else None,
    )
    grid(key, scores, tips, look, shape, view)


def grid(key: str, scores: HeadScores | None, tips: Any, look: Look, shape: Shape, view: View) -> None:
    """A grid of the page; all of them show the same chosen head."""
    name, score = ("heads", "heads") if scores is None else (scoring.label(scores), scores.score)
    frame.clickable(
        lambda: show.head_grid(
            key,
            shape.present,
            None if scores is None else scores.values,
            mask=state.mask(shape.present),
            selected=state.head(shape.present),
            tips={**(tips or {}), **abilities.tips(view, shape.present)},
            undecided=None if scores is None else scoring.grey(scores),
            group="heads",
            look=replace(look, name=name, numbers=view.numbers, large=view.present, file=f"headviz-{score}"),
            rows=shape.rows,
            on_select=frame.select,
        )
    )


def title_of(scores: HeadScores | None, score: str) -> str:
    """What a grid's colours mean, above it."""
    if score == COST and scores is not None and scores.score != COST:
        return f"Cost, estimated by {scores.score} until it is measured"
    if score == COST:
        return "Cost: what is lost without the head"
    if correlates(score):
        return "Agreement: does it contribute where it looks?"
    return SCORES[score].title


def hint(view: View, shape: Shape) -> str:
    """A hint that the loss may show a cost before an answer changes; empty if the loss is shown already or no score
    can be chosen."""
    if view.present or view.beside not in ("", COST) or view.score == IN_LOSS or IN_LOSS not in shape.scores:
        return ""
    return f"The loss may move before an answer does: choose {IN_LOSS} for the second grid."


def finding(scores: HeadScores, view: View, shape: Shape) -> str:
    """The page's first sentence: what the grid shows."""
    values, ranked = scores.values[np.isfinite(scores.values)], scores.ranked()
    if values.size == 0 or not ranked:
        return "No head has a value yet."
    best, last = (
        f"{head_name(h, shape.rows)} ({numbers.signed(float(scores.values[h]))})" for h in (ranked[0], ranked[-1])
    )
    if values.min() == values.max():
        return f"Every head has the same {view.score}: {numbers.signed(float(values[0]))}."
    if not correlates(view.score):
        return f"Highest {view.score}: {best}; lowest: {last}."
    if values.max() < 0:
        return f"Every head contributes least where it looks most. Highest is {best}, lowest {last}."
    weak = 100 * float((np.abs(values) < WEAK).mean())
    tells = "rarely tells" if weak >= 80 else "often does not tell" if weak >= 50 else "often tells"
    return (
        f"Where a head looks {tells} what it contributes ({weak:.0f} % of the heads between −{WEAK} and {WEAK}). "
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
        chosen = scoring.settings(view, view.score)
        lines.append(f"scores = {call('headviz.score_heads', Code('clf'), Code('some'), score=view.score, **chosen)}")
        return "\n".join(lines), command("score", (*options, *(("set", f"{n}={v}") for n, v in chosen.items())))
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


# ---- the selected head

SIDES = {"ranking": "Ranking", "bands": "Bands", "board": "Which score"}  # below the grids


def card(ready: dict[str, HeadScores], second: HeadScores | None, shape: Shape, view: View) -> None:
    """The selected head: what it carries, its values, intervals and ranks, and where to go from here."""
    scores = list(ready.values())[-1] if ready else None
    present = shape.present
    head = state.head(present)
    if head is None:
        with st.container(key="head_card"):
            st.caption("Choose a head in a grid: its values, ranks and what it carries appear here.")
        return
    name, carries = head_name(head, shape.rows), abilities.carried(view).get(head)
    off = head in state.mask(present).off
    lines = [f"carries {carries}"] if carries else []
    if role := abilities.looks(view).get(head):
        lines.append(f"looks more than by chance at: {role}")
    if scores is not None and "difference" in ready:
        lines.append(orders.change_line(head, ready["pre-trained"], ready["fine-tuned"]))
    else:
        tables = {t.score: t for t in (scores, second) if t is not None}
        lines += [_value(head, table) for table in tables.values()]
    if off:
        lines.append("switched off in the Mask lab")
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="head_card"):
        st.markdown(f"### {plain(name)}", width="content")
        st.markdown(plain("  ·  ".join(lines)), width="content")
        if shape.labels:
            st.page_link("pages/head.py", label="Look into it", icon=":material/search:", width="content")
        st.button(
            "Switch on" if off else "Switch off",
            key="card_toggle",
            type="tertiary",
            icon=":material/power_settings_new:",
            on_click=state.set_mask,
            args=(state.mask(present).toggled([head]),),
        )
        st.page_link("pages/masklab.py", label="Mask lab", icon=":material/grid_on:", width="content")


def _value(head: HeadId, scores: HeadScores) -> str:
    word = orders.word(scores.score)
    if scores.values[head] != scores.values[head]:
        return f"{word} not measured"
    unit = " points" if scores.score == COST else ""
    value = f"{numbers.signed(float(scores.values[head]))}{unit} {scoring.interval(scores, head)}"
    return f"{word} {value}, rank {scoring.rank(scores, head)}"


def detail(ready: dict[str, HeadScores], shape: Shape, view: View) -> None:
    """The ranking, the bands of correlation, or the board. Only one of them, so that the first page loads fast."""
    sides = [s for s in SIDES if (s != "bands" or correlates(view.score)) and (s != "board" or shape.labels)]
    if len(sides) == 1 or state.view().present:
        chosen = view.side if view.side in sides else sides[0]
    else:
        chosen = state.switch("side", "Below", sides, format_func=SIDES.__getitem__, label_visibility="collapsed")
    if chosen == "bands":
        bands({name: table.values for name, table in ready.items()})
    elif chosen == "board":
        board(view)
    else:
        scores = list(ready.values())[-1]
        _ranking(scores, shape, orders.CHANGES_RANKED if "difference" in ready else scoring.ranked_by(scores))


def _ranking(scores: HeadScores, shape: Shape, caption: str) -> None:
    """All heads, the highest first, with their intervals if they have any."""
    ranking = scoring.ranking_table("ranking", scores, caption)
    names = {h: head_name(h, shape.rows) for h in scores.ranked()}
    rows = [[names.get(cell, cell) if isinstance(cell, HeadId) else cell for cell in row] for row in ranking.rows]
    ranking = replace(ranking, rows=rows)
    show.report("table", (ranking.titles(REPORT), ranking.texts(REPORT)), caption)
    frame.clickable(
        lambda: rank_list(
            "ranking",
            scores,
            names,
            mask=state.mask(shape.present),
            selected=state.head(shape.present),
            on_select=frame.select,
            group="heads",
            interval=scoring.interval,
        )
    )
    show.downloads(ranking, scores.to_dict())
