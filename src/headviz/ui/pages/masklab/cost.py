"""The right side of the Mask lab: what the mask costs, on which kinds of examples, and which answers change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import streamlit as st

from ....display.comparison import change_table, points_changed
from ....display.figures import answers
from ....display.recipes import Code, call, command
from ....display.table import REPORT
from ....evaluation.verdict import TOO_FEW, excluded, verdict
from ....heads import HeadId, HeadMask
from ....models.stand_in import StandIn
from ...parts import reference
from ...parts.measure import key_of
from ...shell import frame, jobs, loaders, recipes, show, state
from ...shell import view_report as viewreport
from ...shell.view import View
from . import stand_ins
from .wording import DELTA, EARLY, PAIRED, alike, cheapest, clear_slices, early, heads_said, slices_said

if TYPE_CHECKING:
    from ....analyses.ablation import Ablation
    from ....answers.answer import Changed
    from ....answers.comparison import Delta
    from ....evaluation.evaluator import Evaluator
    from ....models.classifier import Classifier
    from ....tasks import Dataset
    from ...parts.measure import Measured


def headline(clf: Classifier, data: Dataset, found: Measured) -> None:
    """The primary metric before and after, the change in one sentence, and what removing the heads would save."""
    best = found.comparison.primary
    mask = state.mask(clf.present)
    off = len(clf.under(mask).off) - len(clf.present.off)
    change = f"{show.points(best.delta, best.scale)} points" if best.delta else "unchanged"
    if off and not found.whole:
        change = f"{change} so far"
    share = 100 * off / max(1, len(clf.present.kept))
    figures: list[tuple[str, str, str, Literal["orange", "blue", "gray"]]] = [
        (best.metric, show.metric(best.masked, best.scale), change, show.tone(best.interval_low, best.interval_high)),
        *(_second(found) if best.metric == "matthews" else ()),
        ("full model", show.metric(best.full, best.scale), found.counted or f"n = {best.n:,}", "gray"),
        *_constant(best),
        ("heads off", f"{off} of {len(clf.present.kept)}", f"{share:.0f} %", "gray"),
    ]
    with st.container(horizontal=True, gap="medium"):  # in one row on a phone, too
        for name, value, below, colour in figures:
            st.metric(
                show.plain(name),
                show.plain(value),
                show.plain(below),
                delta_color=colour,
                delta_arrow="off",
                width="content",
            )
    names = heads_said([h for h in found.mask.off if h not in clf.present.off], loaders.rows_of(clf))
    said = sentence(found, names, state.view().margin, data.label_names)
    if off and (first := clear_slices(data, found)):
        remark, _, rest = said.partition(f"Without {names}: ")
        all_together = f"All examples together: {rest}" if rest else said
        said = f"{remark if rest else ''}Without {names}: {first}. {all_together}"
    elif off and found.whole:
        said += slices_said(data, found)
    show.finding(said + (stand_ins.said() if off else ""))
    if frame.controls():
        state.margin()
    if off:
        small, whole = loaders.cost(clf, mask), loaders.cost(clf)
        parameters, flops = show.less(small.parameters, whole.parameters), show.less(small.flops, whole.flops)
        smaller = f"parameters {parameters}, FLOPs {flops}"
        st.caption(show.plain(f"Pruned for real, the model changes by: {smaller} for a text of {whole.length} tokens."))
    if not found.whole:
        st.caption(EARLY)
        return
    with st.expander("All metrics, intervals and p", key="all_metrics", on_change="rerun") as box:
        _metrics(found, bool(box.open))
        if box.open:
            show.note("How intervals and p are computed.", formula=DELTA, source=PAIRED, key="mask_paired", saves=False)


def _metrics(found: Measured, drawn: bool) -> None:
    """Every metric before and after, with the interval and the p value of its change; else for the report alone."""
    changes = found.comparison.deltas
    made = change_table("mask_metrics", "metric", changes, "Change of every metric on the same examples.")
    if drawn:
        show.result_table(made)
    else:
        viewreport.note("table", (made.titles(REPORT), made.texts(REPORT)), made.caption)


def _second(found: Measured) -> list[tuple[str, str, str, Literal["orange", "blue", "gray"]]]:
    """Accuracy beside a metric that is undefined of constant answers."""
    return [
        (d.metric, show.metric(d.masked, d.scale), f"{show.points(d.delta, d.scale)} points", show.tone(*_ends(d)))
        for d in found.comparison.deltas
        if d.metric == "accuracy"
    ]


def _constant(d: Delta) -> list[tuple[str, str, str, Literal["orange", "blue", "gray"]]]:
    """What answers of one class reach: the level below which nothing has been learnt."""
    return [] if d.constant is None else [("one class for all", show.metric(d.constant, d.scale), d.metric, "gray")]


def _ends(d: Delta) -> tuple[float, float]:
    return d.interval_low, d.interval_high


def sentence(found: Measured, off: str, margin: float, labels: Sequence[str]) -> str:
    """What the mask costs: first whether the answers are still answers, then the change and what it excludes.

    ``off`` names the heads that are off; empty if all are on.
    """
    d = found.comparison.primary
    first = alike(found, labels)
    if off and not found.whole:
        return first + early(found, off)
    if not off:
        return f"{first}All heads are on. Switch some off: the change appears here."
    if d.undefined:
        return f"{first}Without {off}, the change of {d.metric} is not defined: {d.undefined}."
    known = verdict(*_ends(d))
    if known == "unknown":
        return f"{first}Without {off}: {points_changed(d.delta, None, None, d.scale)}; {TOO_FEW}."
    firm = {"loss": "a clear loss", "gain": "a clear gain"}.get(known, excluded(d.interval_low, d.scale, margin))
    return f"{first}Without {off}: {points_changed(d.delta, *_ends(d), d.scale)}, {show.p_text(d.p_value)}: {firm}."


def by_slice(clf: Classifier, data: Dataset, found: Measured) -> None:
    """The primary metric of each slice before and after, with chance marked."""
    compared, kind = found.comparison, data.slice_name or "slice"
    if not compared.slices:
        return
    changes = compared.slices
    if found.mask == clf.present:  # the full model beside itself: there is no change to be uncertain of
        changes = tuple(replace(d, interval_low=0.0, interval_high=0.0) for d in changes)
    show.figure(
        answers.slices(changes, compared.primary.metric, compared.primary.constant),
        "mask_slices",
        f"Each line is one {kind}: {compared.primary.metric} of the full model (stroke) and under the mask (dot), with "
        "the 95 % interval of the change. A dot has a colour where the interval excludes zero.",
        formula=DELTA,
        source=PAIRED,
    )
    if not state.view().present and st.button(
        show.plain(f"Which heads does each {kind} need?"),
        key="to_by_slice",
        icon=":material/arrow_forward:",
        type="tertiary",
    ):
        state.update(analysis="by-slice")
        st.switch_page("pages/analyses.py")


def what_if(clf: Classifier, data: Dataset, found: Measured) -> None:
    """The head that costs least on top of this mask, and heads that hurt. Computed when the user asks."""
    if not found.mask.kept:
        return
    place = reference.place()
    key = key_of(clf, data, "what if", found.mask.hex, place[0])
    if jobs.find(key) is None and st.session_state.get("what_if") != key:
        st.button(
            "What if one more head goes?",
            key="ask_what_if",
            icon=":material/lightbulb:",
            on_click=_ask,
            args=(key,),
            help="Switches off each remaining head in turn, on top of this mask",
        )
        return
    table = jobs.need(
        key, "Trying every head", lambda p, c: _ablate(loaders.evaluator(clf, data, place), found.mask, p, c), rank=1
    )
    if table is None:
        return
    if st.session_state.get("what_if_shown") != key:  # the board was drawn before the answer was there
        st.session_state["what_if_shown"] = key
        st.rerun()
    ranked = [(float(table.values[h]), h) for h in table.base.kept if table.values[h] == table.values[h]]
    if not ranked:
        undefined = f"{table.subject.metric} has no value for these answers, so what one more head costs has none."
        st.caption(show.plain(undefined))
        return
    best, rows = min(ranked)[1], loaders.rows_of(clf)
    name = show.head_name(best, rows)
    _hint(cheapest(table, best, name, state.view().margin), f"Switch {name} off", "take_hint", clf, [best])
    hurts = table.harmful()
    if not hurts:
        st.caption(
            f"No head is shown to hurt: of {len(ranked)} switched off one by one, none is a clear gain (q < 0.05)."
        )
        return
    named = ", ".join(show.head_name(h, rows) for h in hurts[:6]) + (" and others" if len(hurts) > 6 else "")
    _hint(
        f"Heads that hurt (q < 0.05): **{named}**.",
        "Switch it off" if len(hurts) == 1 else f"Switch all {len(hurts)} off",
        "take_harmful",
        clf,
        hurts,
    )


def following(present: HeadMask) -> Ablation | None:
    """What each further head would cost on top of the mask, if that has been asked for and is known."""
    job = jobs.find(st.session_state.get("what_if"))
    table = None if job is None else job.result
    if table is None or table.base.off != present.without(state.mask(present).off).off:
        return None
    return table


def _hint(said: str, label: str, key: str, clf: Classifier, heads: Sequence[HeadId]) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(said, width="content")
        st.button(show.plain(label), key=key, on_click=_take, args=(clf, heads))


def _ask(key: tuple[object, ...]) -> None:
    st.session_state["what_if"] = key


def _take(clf: Classifier, heads: Sequence[HeadId]) -> None:
    state.set_mask(state.mask(clf.present).without(heads))


def _ablate(evaluator: Evaluator, mask: HeadMask, progress: jobs.Progress, cancel: jobs.Cancel) -> Ablation:
    from ....analyses.ablation import ablate

    return ablate(evaluator, base=mask, progress=progress, cancel=cancel)


def details(clf: Classifier, data: Dataset, found: Measured) -> None:
    """Changed answers, and the confusion matrix of classes; nothing where every answer moves a little."""
    changed = data.answer.changed(data, found.full, found.masked)
    if changed is not None and found.mask != clf.present:  # else no head is off, so no answer can have changed
        _changed(changed, found.mask)
    compared = found.comparison
    if compared.confusion_full is None or compared.confusion_masked is None:
        return
    with st.columns([5, 4])[0]:
        st.subheader("Confusion")
        show.figure(
            answers.confusion(compared.confusion_full, compared.confusion_masked, data.label_names),
            "mask_confusion",
            "Answers under the mask by gold label; below each, the change against the full model (orange: worse).",
            formula=r"n_{gp} = |\{x : \text{gold}(x) = g,\ \text{predicted}(x) = p\}|",
        )


def _changed(changed: Changed, mask: HeadMask) -> None:
    """A table of examples, whose numbers stand last. A chosen row opens its example in Compare."""
    st.subheader(show.plain(changed.title))
    if not changed.rows:
        st.caption(show.plain(changed.none))
        return
    event = show.table(
        *show.filled(changed.header, changed.rows),
        "mask_flips",
        caption=changed.caption,
        hint="Choose a row to open it in Compare.",
        on_select="rerun",
        selection_mode="single-row",
        column_config={name: st.column_config.TextColumn(width=w) for name, w in changed.widths.items()},
    )
    if (row := show.chosen_row(event, "flip_opened", mask.hex)) is not None:
        state.update(example=changed.rows[row][-1], a="", b="")
        st.switch_page("pages/compare.py")


def recipe(view: View, clf: Classifier) -> tuple[str, str]:
    """The evaluation of this mask as a library call and as a command."""
    mask = state.mask(clf.present)
    stand_in = reference.chosen() if mask.off else StandIn()
    drawn, given, asked = recipes.stand_in(view, stand_in)
    evaluated = call("headviz.evaluate", Code("clf"), Code("data"), mask=Code("mask"), **given)
    lines = (recipes.HEADVIZ, recipes.load(view), recipes.task(view), recipes.mask_of(mask), *drawn)
    options = (*recipes.model_options(view), *recipes.data_options(view), *recipes.mask_options(mask), *asked)
    return "\n".join((*lines, f"print({evaluated}.metrics)")), command("evaluate", options)
