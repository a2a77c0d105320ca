"""The right side of the Mask lab: what the mask costs, on which kinds of examples, and which answers change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np
import streamlit as st

import headviz

from ....answers.metrics import constant_name, metric_title, remark_on
from ....display import numbers, sentences
from ....display.figures import answers
from ....display.recipes import Code, call, command
from ....display.table import REPORT, Table, change_table
from ....evaluation.verdict import ENOUGH, excluded
from ....heads import HeadId, HeadMask, head_name
from ....models.stand_in import ABLATIONS, BY_PLACE, CONSTANT, MEAN, RESAMPLE, ZERO, StandIn
from ....progress import Cancel, Progress, tracked
from ....statistics.significance import LEVEL, holm
from ...parts import measure
from ...parts.measure import key_of, stand_in
from ...shell import frame, jobs, loaders, recipes, show, state
from ...shell.messages import plain
from ...shell.view import View

if TYPE_CHECKING:
    from ....analyses.ablation import Ablation
    from ....answers.answer import Changed
    from ....answers.comparison import Comparison, Delta
    from ....evaluation.evaluator import Evaluator
    from ....evaluation.mask_evaluator import Growing
    from ....models.classifier import Classifier
    from ....tasks import Dataset

# ---- parts of the sentence

DELTA = r"\Delta = m(\text{masked}) - m(\text{full})"
PAIRED = (
    "Interval: 95 %, paired on the same examples; exact for accuracy, after a few more changed answers have been "
    "counted each way for other metrics, resampled for BLEU. p: exact McNemar test for accuracy, paired bootstrap for "
    "BLEU, paired swap test for other metrics. A loss or a gain is clear where the interval excludes zero. Its "
    "lower end is the loss that is excluded, for accuracy exceeded in at most 2.5 %."
)
EARLY = (
    "A sample of the examples, the classes in proportion, looked at again each time it has doubled. The interval is "
    "wide enough for that; p and the slices come with the last example."
)


def one_class(measured: Growing, labels: Sequence[str]) -> str:
    """The remark that comes first where (nearly) all answers are of one class; of a few answers it may be chance."""
    if measured.comparison.flips is None or not (measured.final or len(measured.gold) >= ENOUGH):
        return ""
    remark = remark_on(measured.masked, measured.gold, labels)
    return f"{remark} " if remark else ""


def cheapest(table: Ablation, best: HeadId, name: str, margin: float) -> str:
    """What the head costs whose removal costs least; it was chosen among all, so its own interval is not enough."""
    tried, scale, low = int(np.isfinite(table.values).sum()), table.subject.scale, float(-table.interval_high[best])
    known = f"; {excluded(low, scale, margin)}"
    if table.significant()[best]:
        known = ""
    elif low > 0:
        known = f"; its own interval excludes a loss, but not with all {tried} tested at once"
    change = numbers.points(-float(table.values[best]), scale)
    same = int((table.values == table.values[best]).sum())
    even = f" ({same} heads cost the same)" if same > 1 else ""
    chosen = f" It is the best of {tried}: expect a little less on new examples." if tried > 1 else ""
    return f"Next cheapest: **{name}**{even}, {change} points{known}.{chosen}"


# ---- what stands in a head's place

TITLES = {
    ZERO: "nothing (zero)",
    MEAN: "its mean",
    BY_PLACE: "its mean by kind of place",
    RESAMPLE: "another example's output",
    CONSTANT: "a learned vector",
}


def choose_stand_in(classifies: bool) -> None:
    """The select box, before the model is loaded; a translation model has zero and the mean."""
    now, known = stand_in(), ABLATIONS if classifies else (ZERO, MEAN)
    options = [*known] if now.text in ABLATIONS else [*known, now.text]
    state.choose(
        "ablation",
        "What stands in a head's place",
        options,
        format_func=_title,
        width=260,
        help="A head that is off has an output all the same. Zero is not what the model saw in training; the mean, "
        "another example's output or a learned vector answer the same question against another reference",
    )


def _title(text: str) -> str:
    """A choice in words; a link may say on how many examples it is measured."""
    choice = StandIn.of(text)
    return TITLES[choice.kind] + ("" if text in ABLATIONS else f" ({choice.examples} examples)")


def stand_in_sentence() -> str:
    """One sentence; empty for zero."""
    now = stand_in()
    if now.kind == ZERO:
        return ""
    drawn = f"; shown is the first of {now.draws} draws" if now.kind == RESAMPLE else ""
    return f" In the place of a head that is off stands {now.meaning} ({now.examples} training examples{drawn})."


def stand_ins(clf: Classifier, data: Dataset, measured: Growing) -> None:
    """A switch: the change under this mask with each thing in the heads' place."""
    if measured.mask == clf.present or not frame.controls():
        return
    if not st.toggle("Does it matter what stands there?", key="compare_stand_ins"):
        return
    now = stand_in()
    kinds = [k for k in clf.ablations if k in (ZERO, MEAN, BY_PLACE, RESAMPLE, now.kind)]
    rows: dict[str, Growing] = {}
    for kind in kinds:
        choice = StandIn(kind, now.examples)
        one = measure.measured(clf, data, measured.mask, (choice, state.view()))
        if one is None or not one.final:
            return
        rows[f"{TITLES[kind]}, first of {choice.draws} draws" if kind == RESAMPLE else TITLES[kind]] = one
    key = measure.key_of(clf, data, "stand-ins", measured.mask.hex, now.examples, *kinds)
    sentence = jobs.need(key, "Comparing them", partial(dependence, rows, data))
    if sentence is None:
        return
    show.finding(sentence)
    deltas = [replace(one.comparison.primary, name=name) for name, one in rows.items()]
    caption = "The same mask with each thing in the heads' place."
    show.table(change_table("mask_stand_ins", "in the heads' place", deltas, caption))
    if CONSTANT in clf.ablations and CONSTANT not in kinds:
        st.caption("A learned vector takes longer; choose it above to see it here too.")


def dependence(
    by_stand_in: Mapping[str, Growing], data: Dataset, progress: Progress | None = None, cancel: Cancel | None = None
) -> str:
    """How far the change moves with what stands in the heads' place, and whether two of them differ for certain.

    Every two are compared on the same examples; Holm's correction is for the number of pairs.
    """
    of = [one.comparison.primary for one in by_stand_in.values()]
    scale, changes = of[0].scale, sorted(d.delta for d in of if d.delta == d.delta)
    if len(changes) < len(of):
        metric, without = metric_title(of[0].metric), len(of) - len(changes)
        return f"The change of {metric} is not defined with {without} of these {len(of)}."
    low, high = (numbers.points(v, scale) for v in (changes[0], changes[-1]))
    if scale * (changes[-1] - changes[0]) < 0.05:
        return f"The change is {low} points, whatever stands in the heads' place."
    pairs, p = list(combinations(by_stand_in.items(), 2)), []
    for (_, one), (_, other) in tracked(pairs, progress, cancel):
        answers = data.answer.answers(one.gold, one.masked, data.label_names)
        p.append(answers.deltas([other.masked], of[0].metric)[0].p_value)
    likely = holm(p)
    sentence = f"Between {low} and {high} points with these {len(by_stand_in)} in the heads' place"
    surest = int(np.argmin(np.nan_to_num(likely, nan=1.0)))
    if not likely[surest] < 1 - LEVEL:
        return f"{sentence}; no two of them differ significantly on the same examples (Holm)."
    (first, _), (second, _) = pairs[surest]
    return f"{sentence}: it matters which. Significant (Holm), most clearly: {first}; {second}."


# ---- the cost


def headline(clf: Classifier, data: Dataset, measured: Growing) -> None:
    """The primary metric before and after, the change in one sentence, and what removing the heads would save."""
    best = measured.comparison.primary
    mask = state.mask(clf.present)
    off = len(clf.under(mask).off) - len(clf.present.off)
    change = f"{numbers.points(best.delta, best.scale)} points" if best.delta else "unchanged"
    if off and not measured.final:
        change = f"{change} so far"
    share = 100 * off / max(1, len(clf.present.kept))
    figures: list[tuple[str, str, str, Literal["orange", "blue", "gray"]]] = [
        (
            metric_title(best.metric),
            numbers.metric(best.masked, best.scale),
            change,
            show.tone(best.interval_low, best.interval_high),
        ),
        *(_second(measured) if best.metric == "matthews" else ()),
        ("full model", numbers.metric(best.full, best.scale), measured.counted or f"n = {best.n:,}", "gray"),
        *_constant(best, data),
        ("heads off", f"{off} of {len(clf.present.kept)}", f"{share:.0f} %", "gray"),
    ]
    with st.container(horizontal=True, gap="medium"):  # in one row on a phone, too
        for name, value, below, colour in figures:
            st.metric(plain(name), plain(value), plain(below), delta_color=colour, delta_arrow="off", width="content")
    names = sentences.heads_named([h for h in measured.mask.off if h not in clf.present.off], loaders.rows_of(clf))
    finding = sentence(measured, names, state.view().margin, data)
    show.finding(finding + (stand_in_sentence() if off else ""))
    if frame.controls():
        state.margin()
    if off:
        small, whole = loaders.cost(clf, mask), loaders.cost(clf)
        parameters, flops = numbers.less(small.parameters, whole.parameters), numbers.less(small.flops, whole.flops)
        smaller = f"parameters {parameters}, FLOPs {flops}"
        st.caption(plain(f"Pruned for real, the model changes by: {smaller} for a text of {whole.length} tokens."))
    if not measured.final:
        st.caption(EARLY)
        return
    if measured.cut_off:
        st.caption(plain(f"{measured.cut_off[0].upper()}{measured.cut_off[1:]}."))
    with st.expander("All metrics, intervals and p", key="all_metrics", on_change="rerun") as box:
        _metrics(measured, bool(box.open))
        if box.open:
            show.note("How intervals and p are computed.", formula=DELTA, source=PAIRED, key="mask_paired")


def _metrics(measured: Growing, drawn: bool) -> None:
    """Every metric before and after, with the interval and the p value of its change; else for the report alone."""
    changes = measured.comparison.deltas
    made = change_table("mask_metrics", "metric", changes, "Change of every metric on the same examples.")
    if drawn:
        show.table(made)
    else:
        show.report("table", (made.titles(REPORT), made.texts(REPORT)), made.caption)


def _second(measured: Growing) -> list[tuple[str, str, str, Literal["orange", "blue", "gray"]]]:
    """Accuracy next to a metric that is undefined of constant answers."""
    return [
        (
            d.metric,
            numbers.metric(d.masked, d.scale),
            f"{numbers.points(d.delta, d.scale)} points",
            show.tone(*_ends(d)),
        )
        for d in measured.comparison.deltas
        if d.metric == "accuracy"
    ]


def _constant(d: Delta, data: Dataset) -> list[tuple[str, str, str, Literal["orange", "blue", "gray"]]]:
    """What the best constant answer reaches: the level below which nothing has been learnt."""
    if d.constant is None:
        return []
    return [(constant_name(d.metric, data.answer), numbers.metric(d.constant, d.scale), metric_title(d.metric), "gray")]


def _ends(d: Delta) -> tuple[float, float]:
    return d.interval_low, d.interval_high


def sentence(measured: Growing, off: str, margin: float, data: Dataset) -> str:
    """What the mask costs; first whether the answers are still answers. ``off`` names the heads that are off."""
    first, compared = one_class(measured, data.label_names), measured.comparison
    if not off:
        return f"{first}All heads are on. Switch some off: the change appears here."
    if not measured.final:
        return first + sentences.so_far(compared.primary, off, len(measured.gold), measured.counted)
    return first + sentences.mask_cost(compared.primary, compared.slices, off, data.slice_name or "slice", margin)


def by_slice(clf: Classifier, data: Dataset, measured: Growing) -> None:
    """The primary metric of each slice before and after, with chance marked."""
    compared, kind = measured.comparison, data.slice_name or "slice"
    if not compared.slices:
        return
    changes, metric = compared.slices, metric_title(compared.primary.metric)
    if measured.mask == clf.present:  # the full model next to itself: there is no change to be uncertain of
        changes = tuple(replace(d, interval_low=0.0, interval_high=0.0) for d in changes)
    show.figure(
        answers.slices(changes, compared.primary.metric, compared.primary.constant, data.answer),
        "mask_slices",
        f"Each line is one {kind}: {metric} of the full model (stroke) and under the mask (dot), with "
        "the 95 % interval of the change. A dot has a colour where the interval excludes zero.",
        formula=DELTA,
        source=PAIRED,
    )
    if not state.view().present and st.button(
        plain(f"Which heads does each {kind} need?"),
        key="to_by_slice",
        icon=":material/arrow_forward:",
        type="tertiary",
    ):
        state.update(analysis="by-slice")
        st.switch_page("pages/analyses.py")


def what_if(clf: Classifier, data: Dataset, measured: Growing) -> None:
    """The head that costs least on top of this mask, and heads that hurt. Computed when the user asks."""
    if not measured.mask.kept:
        return
    place = measure.place()
    key = key_of(clf, data, "what if", measured.mask.hex, place[0])
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
        key,
        "Trying every head",
        lambda p, c: _ablate(loaders.evaluator(clf, data, place, cancel=c), measured.mask, p, c),
        rank=1,
    )
    if table is None:
        return
    if st.session_state.get("what_if_shown") != key:  # the board was drawn before the answer was there
        st.session_state["what_if_shown"] = key
        st.rerun()
    ranked = [(float(table.values[h]), h) for h in table.base.kept if table.values[h] == table.values[h]]
    if not ranked:
        metric = metric_title(table.subject.metric)
        undefined = f"{metric} has no value for these answers, so what one more head costs has none."
        st.caption(plain(undefined))
        return
    best, rows = min(ranked)[1], loaders.rows_of(clf)
    name = head_name(best, rows)
    _hint(cheapest(table, best, name, state.view().margin), f"Switch {name} off", "take_hint", clf, [best])
    hurts = table.harmful()
    if not hurts:
        st.caption(
            f"No head is shown to hurt: of {len(ranked)} switched off one by one, none is a clear gain (q < 0.05)."
        )
        return
    named = ", ".join(head_name(h, rows) for h in hurts[:6]) + (" and others" if len(hurts) > 6 else "")
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


def _hint(hint: str, label: str, key: str, clf: Classifier, heads: Sequence[HeadId]) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(hint, width="content")
        st.button(plain(label), key=key, on_click=_take, args=(clf, heads))


def _ask(key: tuple[object, ...]) -> None:
    st.session_state["what_if"] = key


def _take(clf: Classifier, heads: Sequence[HeadId]) -> None:
    state.set_mask(state.mask(clf.present).without(heads))


def _ablate(evaluator: Evaluator, mask: HeadMask, progress: jobs.Progress, cancel: jobs.Cancel) -> Ablation:
    return headviz.ablate(evaluator, base=mask, progress=progress, cancel=cancel)


def details(clf: Classifier, data: Dataset, measured: Growing) -> None:
    """Changed answers, and the confusion matrix of classes; nothing where every answer moves a little."""
    changed = data.answer.changed(data, measured.full, measured.masked)
    if changed is not None and measured.mask != clf.present:  # else no head is off, so no answer can have changed
        _changed(changed, measured.mask)
    compared = measured.comparison
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
    st.subheader(plain(changed.title))
    if not changed.rows:
        st.caption(plain(changed.none))
        return
    event = show.table(
        Table("mask_flips", changed.header, changed.rows, changed.caption, hint="Choose a row to open it in Compare."),
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
    stand_in = measure.stand_in() if mask.off else StandIn()
    drawn, stand_in_keywords, asked = recipes.stand_in(view, stand_in)
    evaluated = call("headviz.evaluate", Code("clf"), Code("data"), mask=Code("mask"), **stand_in_keywords)
    lines = (recipes.HEADVIZ, recipes.load(view), recipes.task(view), recipes.mask_of(mask), *drawn)
    options = (*recipes.model_options(view), *recipes.data_options(view), *recipes.mask_options(mask), *asked)
    return "\n".join((*lines, f"print({evaluated}.metrics)")), command("evaluate", options)


# ---- two masks side by side

ALL_ON = "all heads on"


def two_masks(clf: Classifier, data: Dataset) -> None:
    """Two menus of masks (the current one, saved ones, all heads on) and what the answers differ in."""
    size = clf.num_layers, clf.num_heads
    named = {
        f"current mask ({len(state.mask(clf.present).off)} off)": state.mask(clf.present),
        **{name: one for name, (one, _) in state.saved_masks(clf.present).items()},
        ALL_ON: HeadMask.full(*size),
    }
    with st.expander("Two masks side by side", icon=":material/compare:", key="two_masks", on_change="rerun") as box:
        if not box.open:
            return
        if len(named) < 3:
            st.caption("Save a mask under *Saved masks*: it can then be compared with the current one.")
        left, right = st.columns(2)
        names = list(named)
        a = left.selectbox("A", names, 0, key="mask_a")  # a list shows texts as they stand
        b = right.selectbox("B", names, 1, key="mask_b")
        first, second = (clf.under(named[n]) for n in (a, b))
        if first == second:
            st.caption("A and B switch off the same heads.")
            return
        place = measure.place()
        key = key_of(clf, data, "two masks", first.hex, second.hex, place[0])
        result = jobs.need(key, "Evaluating both", partial(_compare, clf, data, first, second, place))
        if result is not None:
            _show_two(result, a, b)


def _compare(
    clf: Classifier,
    data: Dataset,
    first: HeadMask,
    second: HeadMask,
    place: tuple[StandIn, View],
    progress: jobs.Progress,
    cancel: jobs.Cancel,
) -> Comparison:
    return loaders.evaluator(clf, data, place, cancel=cancel).compare(second, first, progress=progress, cancel=cancel)


def _show_two(comparison: Comparison, a: str, b: str) -> None:
    show.finding(sentences.two_masks(comparison.primary, a, b) + stand_in_sentence())
    changes = [replace(comparison.primary, name="all"), *comparison.slices]
    caption = f"{metric_title(comparison.primary.metric)} under both masks on the same examples, paired."
    show.table(change_table("two_masks_table", "examples", changes, caption, ("A", "B", "B − A")))
