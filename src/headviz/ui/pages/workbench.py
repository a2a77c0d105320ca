"""The first page: the grid that switches heads off, a text and its answers, and what the mask costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from ... import plugins
from ...answers.class_names import match_names
from ...display import sentences
from ...display.figures.style import scale_of_losses
from ...display.numbers import fixed
from ...heads import HeadId, head_name
from ...scores.catalogue import DEFAULT, SCORES, correlates
from ..parts import abilities, measure, pair, result_bar, scoring, texts
from ..parts.abilities import Ability
from ..parts.texts import Text
from ..shell import frame, jobs, loaders, mask_edit, show, state
from ..shell.loaders import Shape
from ..shell.messages import plain, refused
from ..shell.view import IN_LOSS, View, by_grade
from ..widgets.grid import Look
from . import head, scores
from .compare import answers

if TYPE_CHECKING:
    from ...attribution.maps import Maps
    from ...models.classifier import Classifier
    from ...tasks import Dataset


def lead(shape: Shape, data: Dataset) -> None:
    """What the model does, what a cell is, and what to do, in one line."""
    count = len(shape.present.kept)
    st.markdown(f"{plain(_does(shape, data))} Each cell is one of its {count:,} attention heads. **Switch one off.**")


def _does(shape: Shape, data: Dataset) -> str:
    reads = "two texts" if data.pairs is not None else "a text"
    infers = match_names(("entailment",), shape.labels) is not None  # the model's classes, not the task's, say so
    if infers and data.task.name in ("demo", "mnli", "mnli-mm", "rte") and data.pairs is not None:
        return "This model reads two sentences and says whether the second follows."
    return f"This model {shape.answer.does.format(texts=reads, n=len(shape.labels))}."


# ---- the grids

COST, SCORE = "cost", "score"
# the scores that serve most, with a reason; all others are in a list
USEFUL = {
    DEFAULT: "does a head contribute where it looks?",
    "taylor": "close to the cost, and takes seconds",
    "magnitude": "needs no examples",
    "attattr-max": "a head's strongest single connection",
}


def boards(view: View, shape: Shape, data: Dataset) -> None:
    """Cost and agreement: side by side in a wide window, else one of them, by a switch."""
    # a link may name a score that is none: the grid's place says so
    other = SCORES[view.score].title if view.score in SCORES else view.score
    options = {COST: "Cost", SCORE: "Agreement" if correlates(view.score) else other}
    if frame.controls():
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="board_choice"):
            st.session_state["board"] = view.grid or COST
            st.segmented_control(
                "Grid",
                [*options],
                key="board",
                required=True,
                format_func=lambda name: plain(options[name]),
                label_visibility="collapsed",
                on_change=lambda: state.update(grid="" if st.session_state["board"] == COST else SCORE),
            )
            with st.popover("more", type="tertiary"):
                _more(view, shape)
    view, ability = state.view(), abilities.listed(view).get(view.ability)
    tips, turning = _clicks(view, data)
    hidden = COST if view.grid else SCORE
    around = '[data-testid="stLayoutWrapper"]'  # empty, it would leave a gap and move the other grid
    st.html(f"<style>@media (max-width: 1439px) {{{around}:has(> .st-key-board_{hidden}) {{display: none}}}}</style>")
    with st.container(key="board_cost"):
        _cost(view, shape, ability, tips, turning)
    with st.container(key="board_score"):
        with st.container(key="board_compute"):  # page.css puts it below the grid where both stand side by side
            measured = scores.table(view) if frame.controls() else scoring.scores(view)
        title = scores.title_of(measured, view.score)
        if measured is None:
            _grid("bench_score", view, shape, None, Look(view.score, title), tips)
            return
        meaning = "blue: it does, orange: the opposite" if correlates(view.score) else "darker is more"
        shown = scoring.in_points(measured)
        look = Look(f"{scoring.label(measured)}; {meaning}", title, scoring.colours(shown))
        _grid("bench_score", view, shape, shown.values, look, {**tips, **scoring.tip_tables(measured)})


def _more(view: View, shape: Shape) -> None:
    """Other scores for the second grid."""
    for name in (name for name in USEFUL if name in shape.scores):
        st.button(
            plain(f"{SCORES[name].title}: {USEFUL[name]}"),
            key=f"score_{name}",
            type="tertiary",
            on_click=state.update,
            kwargs={"score": name, "grid": SCORE},
        )
    state.choose("score", "Score", by_grade(view.source, shape.scores))


def _clicks(view: View, data: Dataset) -> tuple[dict[str, list[list[str]]], list[HeadId] | None]:
    """What a click on each head would do to the answer, as a line of the tooltips, and the heads that would turn it;
    None while the model loads or the answer is no class."""
    clf: Any = None if loaders.loaded(view) is None else measure.filled(loaders.model(view))
    shown = texts.current(view, data)
    after_click = None if clf is None else pair.what_if(clf, shown)
    if after_click is None:
        return {}, None
    return {"a click": pair.tips(clf, shown, after_click)}, pair.turning(clf, shown, after_click)


NAMED = 6  # heads that a sentence names


def _cost(
    view: View, shape: Shape, ability: Ability | None, tips: dict[str, list[list[str]]], turning: list[HeadId] | None
) -> None:
    values, name, digits, grey = None, "not measured yet", 2, None
    marks, mark_name = turning or [], "a click turns this answer"
    costs = scoring.loss_costs(view)
    if costs is not None:
        tips = {**tips, "cost": [[fixed(v, 3) for v in row] for row in costs.values]}
    if ability is not None:
        values, digits, marks, mark_name = ability.costs, 0, ability.heads, f"carries {ability.name}"
        name = f"{ability.name}: answers lost of 100 without the head"
    elif IN_LOSS not in shape.scores:  # a model whose answers have no such loss
        if (points := scoring.costs(view)) is not None:
            shown = scoring.in_points(points)
            values, grey, digits = shown.values, scoring.grey(points), 1
            name = f"{scoring.label(points)}; orange: worse without it, blue: better"
    elif costs is not None:
        values, grey = costs.values, scoring.grey(costs)
        meaning = f"{shape.answer.costs}; orange: worse without it, blue: better"
        name = f"cost: {meaning}; mean over {scoring.examples_of(costs)}"
    scale = None if values is None else scale_of_losses([float(v) for v in np.ravel(values)])
    look = Look(name, "Cost: what is lost without the head", scale, digits=digits, blank_zeros=True)
    _grid("bench_cost", view, shape, values, look, tips, marks=marks, mark_name=mark_name, undecided=grey)
    if values is None and IN_LOSS not in shape.scores and frame.controls():
        st.caption("What each head costs is not measured yet.")
        frame.link("scores", "Measure it on Scores", ":material/grid_on:")
    if turning is not None and frame.controls():
        names = ", ".join(head_name(head, shape.rows) for head in turning[:NAMED])
        more = f" and {len(turning) - NAMED} more" if turning[NAMED:] else ""
        count = f"{len(turning)} of {len(shape.present.kept)} clicks would turn this answer"
        st.caption(plain(f"{count}: {names}{more}." if turning else "No single click would turn this answer."))


def _grid(
    key: str, view: View, shape: Shape, values: Any, look: Look, tips: dict[str, list[list[str]]], **more: Any
) -> None:
    """A grid whose clicks switch heads, the last of which is the chosen one. ``more`` goes to ``show.head_grid``."""
    present = shape.present

    def edited(off: list[int], base: list[int] | None) -> None:
        size = present.num_layers, present.num_heads
        mask = mask_edit.from_indices(off, *size)
        if len(switched := {*mask.off} ^ {*state.mask(present).off}) == 1:
            state.select(switched.pop())
        state.set_mask(mask, base=None if base is None else mask_edit.from_indices(base, *size))
        frame.redraw(frame.MASK)

    def selected(chosen: HeadId) -> None:
        state.select(chosen)
        frame.redraw(frame.MASK)

    frame.clickable(
        lambda: show.head_grid(
            key,
            present,
            values,
            mask=state.mask(present),
            selected=state.head(present),
            tips={**tips, **abilities.tips(view, present)},
            group="bench",
            rows=shape.rows,
            look=replace(look, numbers=view.numbers, large=view.present, width=36, file=f"headviz-{key}"),
            on_edit=edited,
            on_select=selected,
            **more,
        )
    )


# ---- what the mask does to the text and to the data


def result(clf: Classifier, filled: Classifier | None, data: Dataset, shown: Text) -> None:
    """The answers, the cost on the data in a sentence, and the bar. ``filled`` is the model with what
    stands in the place of heads, None while that is measured."""
    mask, choice = state.mask(clf.present), measure.stand_in_choice()
    mismatch = loaders.mismatch(clf, data)
    measured = None if mismatch else measure.request(clf, data, mask, choice)
    last = None if mismatch else measure.last(clf, data, measured)
    refusal = pair.refusal(clf, shown)
    if shown.empty:
        st.info(texts.EMPTY, icon=":material/edit:")
    elif refusal is not None:
        refused(refusal, "warning")
    elif clf.answer.decides:
        for remark in texts.remarks(clf, shown):
            st.caption(plain(remark))
        if filled is not None:
            pair.section(filled, shown)
    elif (draw := clf.answer.own.get("bench")) is not None:
        if filled is not None:
            plugins.function(draw)(filled, shown)
    elif clf.answer.own.get("compare") is None:
        columns = answers.columns(clf)[:2]
        answers.show_answers(clf, data, shown, columns, answers.answers(shown, columns))
    if mismatch:
        st.caption(plain(mismatch))
    elif last is not None:
        off = [h for h in mask.off if h not in clf.present.off]
        with st.container(key="dev" if measured else "result_before"):
            every = sentences.all_heads(clf.present)
            _on_data(last, sentences.heads_named(off, loaders.rows_of(clf)), every, data)
            measure.computed_in(last)
            show.cut_off(last.cut_off)
    result_bar.section(clf.present, last, *pair.change(filled or clf, shown))


def _on_data(measured: Any, off: str, every: str, data: Dataset) -> None:
    """One sentence without symbols; interval, p and margin one click below it."""
    primary, examples = measured.comparison.primary, f"{data.split} {data.answer.unit[1]}"
    if not off:
        full, weak = result_bar.reached(measured, data, masked=False), sentences.weak_model(primary)
        sentence = f"On the {examples}: {full}, with {every}. {weak}"
        show.report("finding", sentence)
        st.html(f'<p class="dev">{escape(sentence)}</p>')
        return
    sentence = sentences.in_words(primary, off, examples, every)
    if not measured.final:
        sentence = f"{sentence.removesuffix('.')} ({measured.counted})."
    change = sentences.change_of(primary, state.view().margin)
    show.report("finding", sentence)
    st.html(
        f'<p class="dev">{escape(sentence)}</p>'
        f"<details><summary>How sure is that?</summary>{escape(change)}. A loss up to "
        f"{state.view().margin:g} points counts as none; the Mask lab has all metrics, intervals and p.</details>"
    )


# ---- the chosen head

DRAWN = 28  # tokens up to which its maps are drawn here


def panel(clf: Classifier, shown: Text) -> None:
    """The chosen head; last in its column, so that it moves nothing when it comes."""
    if (chosen := state.head(clf.present)) is not None:
        with st.container(key="panel", border=True):
            _panel(clf, shown, chosen)


def _panel(clf: Classifier, shown: Text, chosen: HeadId) -> None:
    """Where the head looks and what of it contributes, for this text; what it costs, its role, and its switch."""
    view, mask = state.view(), state.mask(clf.present)
    name, off = head_name(chosen, loaders.rows_of(clf)), chosen in mask.off
    about = "  ·  ".join(_about(view, chosen, off))
    show.report("table", (("head", "what is known"), [(name, about)]))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{plain(name)}**", width="content")
        st.markdown(plain(about))
        st.button(
            "Switch on" if off else "Switch off",
            key="panel_toggle",
            icon=":material/power_settings_new:",
            disabled=chosen in clf.present.off,
            on_click=state.set_mask,
            args=(mask.toggled([chosen]),),
        )
        if clf.answer.explains:
            st.page_link("pages/head.py", label="One head", icon=":material/search:", width="content")
    if not clf.answer.explains or chosen in clf.present.off or shown.empty or pair.refusal(clf, shown):
        return
    maps = head.maps_of(clf, shown, clf.full_mask, replace(view, target="predicted", rule="richardson", steps=0))
    if maps is not None:
        looks = _looks(maps, chosen)
        if looks and len(mask.off) > len(clf.present.off):
            looks = f"With {sentences.all_heads(clf.present)} it {looks[0].lower()}{looks[1:]}"
        show.report("table", (("head", "on this text"), [(name, looks)]))
        st.markdown(plain(looks))
        if len(maps.tokens) <= DRAWN:
            st.html(_two_maps(maps, chosen))


def _about(view: View, chosen: HeadId, off: bool) -> list[str]:
    costs, lines = scoring.loss_costs(view), ["off"] if off else []
    by_ability = {name: ability.costs[chosen] for name, ability in abilities.listed(view).items()}
    if costs is not None and costs.values[chosen] == costs.values[chosen]:
        lines.append(f"number {scoring.rank(costs, chosen)} by cost on {scoring.examples_of(costs)}")
    if by_ability and (most := max(by_ability, key=by_ability.__getitem__)) and by_ability[most] >= 1:
        lines.append(f"costs {most} {by_ability[most]:.0f} of 100 answers")
    if role := abilities.looks(view).get(chosen):
        lines.append(f"looks at: {role}")
    return lines


def _looks(maps: Maps, chosen: HeadId) -> str:
    """The strongest connection between words, and the one that contributes most."""
    words = ~np.array(maps.special)
    between_words = np.outer(words, words)
    if not between_words.any():
        return ""
    attention = np.where(between_words, maps.attention[chosen], -1.0)
    size = np.where(between_words, np.abs(maps.attribution[chosen]), -1.0)
    (i, j), (k, m) = (np.unravel_index(int(table.argmax()), table.shape) for table in (attention, size))
    value = float(maps.attribution[chosen][k, m])
    looks = f"Looks most from “{maps.tokens[i]}” to “{maps.tokens[j]}” ({attention[i, j]:.2f})."
    if not value:
        return f"{looks} Contributes nothing here."
    direction = "for" if value > 0 else "against"
    return f"{looks} What speaks most {direction} {maps.target_label} is “{maps.tokens[k]}” → “{maps.tokens[m]}”."


def _two_maps(maps: Maps, chosen: HeadId) -> str:
    """Attention, and attribution in blue and orange, as two small tables of colours: queries down, keys across."""
    figures, titles = [], numbered(maps.tokens)
    head_row = "".join(f'<th scope="col"><span>{escape(title)}</span></th>' for title in titles)
    for name, table in (("looks", maps.attention[chosen]), ("contributes", maps.attribution[chosen])):
        largest = float(np.abs(table).max()) or 1.0
        meaning = (
            f"darkest = {largest:.2g}" if name == "looks" else f"blue for, orange against, darkest = ±{largest:.2g}"
        )
        rows = "".join(
            f'<tr><th scope="row">{escape(token)}</th>'
            + "".join(
                f'<td style="background: {_colour(name, float(v) / largest)}" title="{escape(token)} → '
                f'{escape(titles[j])}: {v:.3f}"></td>'
                for j, v in enumerate(row)
            )
            + "</tr>"
            for token, row in zip(titles, table, strict=True)
        )
        figures.append(
            f'<figure><figcaption>{name}: {meaning}</figcaption><table aria-label="{name}"><tr><td></td>{head_row}</tr>'
            f"{rows}</table></figure>"
        )
    return f'<div class="small_maps">{"".join(figures)}</div>'


def numbered(tokens: Sequence[str]) -> list[str]:
    """The tokens, those that occur more than once with their number, so that each has a name of its own."""
    count, seen = Counter(tokens), Counter[str]()
    names = []
    for token in tokens:
        seen[token] += 1
        names.append(f"{token} {seen[token]}" if count[token] > 1 else token)
    return names


def _colour(name: str, share: float) -> str:
    base = "28,140,163" if name == "looks" else "47,111,179" if share > 0 else "196,101,31"
    return f"rgba({base},{abs(share) ** 0.5:.2f})"


# ---- abilities


def abilities_section(clf: Classifier, data: Dataset) -> None:
    """Chips: one lights up the heads of an ability, says what they cost and shows examples."""
    view = state.view()
    listed = abilities.listed(view)
    if not listed:
        return
    st.session_state["ability"] = view.ability if view.ability in listed else None
    st.pills(
        "Abilities: what the model can do, and which heads carry it",
        [*listed],
        key="ability",
        format_func=plain,
        on_change=lambda: state.update(ability=st.session_state["ability"] or "", grid=""),
    )
    if (ability := listed.get(view.ability)) is not None:
        _ability(clf, data, ability)


def _ability(clf: Classifier, data: Dataset, ability: Ability) -> None:
    mask = state.mask(clf.present)
    names = " and ".join(", ".join(map(str, part)) for part in (ability.heads[:-1], ability.heads[-1:]) if part)
    others = "" if ability.others is None else f", and on average {max(0.0, ability.others):.1f} of 100 others"
    alone = max(ability.heads, key=lambda head: float(ability.costs[head]))
    enough = len(ability.heads) > 1 and float(ability.costs[alone]) >= ability.lost
    note = f" Without {alone} alone it loses {ability.costs[alone]:.0f}: the rest adds nothing." if enough else ""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(
            plain(
                f"Without {names} the model loses {ability.lost:.0f} of 100 answers about {ability.name}{others}.{note}"
            ),
            width="content",
        )
        st.button(
            f"Switch {'it' if len(ability.heads) == 1 else 'them'} off",
            key="ability_off",
            icon=":material/power_settings_new:",
            disabled={*ability.heads} <= {*mask.off},
            on_click=state.set_mask,
            args=(mask.without(ability.heads),),
        )
    with st.container(horizontal=True, gap="xsmall", key="chips_ability"):
        for i, at in enumerate(_examples(clf, data, ability)):
            example = data[at]
            st.button(
                plain(" → ".join(filter(None, (example.text, example.pair)))),
                key=f"ability_example{i}",
                type="tertiary",
                on_click=state.update,
                kwargs={"example": at, "a": "", "b": ""},
            )


EXAMPLES = 3


def _examples(clf: Classifier, data: Dataset, ability: Ability) -> list[int]:
    """Examples of the ability whose answer turns without its heads."""
    if data.slices is None or data.labels is None:
        return []
    places = [i for i, name in enumerate(data.slices) if name == ability.name]
    examples = data.subset(places)
    gold = [examples.label_names[int(label)] for label in examples.gold]

    def work(progress: jobs.Progress, cancel: jobs.Cancel) -> list[int]:
        turned = abilities.turning(clf, examples.texts, examples.pairs, gold, ability.heads)
        return [places[i] for i in turned[:EXAMPLES]]

    return jobs.need(measure.key_of(clf, data, "examples", ability.name), "Looking for examples", work) or []


# ---- ahead


def work_ahead(clf: Classifier, data: Dataset) -> None:
    """What the page will be asked next: the costs of a model without recorded ones, and each click's mask."""
    view = state.view()
    if frame.controls() and not loaders.mismatch(clf, data):
        mask, choice = state.mask(clf.present), measure.stand_in_choice()
        measure.measured(clf, data, mask, choice)  # the page follows when it is there
        scoring.compute_loss_costs(view)
        measure.ahead(clf, data, mask, choice)
