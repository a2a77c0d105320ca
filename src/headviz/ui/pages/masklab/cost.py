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
    from ....answers.comparison import Delta
    from ....evaluation.mask_evaluator import Growing
    from ....models.classifier import Classifier
    from ....tasks import Dataset

Number = tuple[str, str, str, Literal["orange", "blue", "gray"]]  # title, value, line below it and its colour

# ---- parts of the sentence

DELTA = r"\Delta = m(\text{masked}) - m(\text{full})"
PAIRED = (
    "Interval: 95 %, paired on the same {units}; exact for accuracy, after a few more changed answers have been "
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
    tested, scale, low = int(np.isfinite(table.values).sum()), table.subject.scale, float(-table.interval_high[best])
    certainty = f"; {excluded(low, scale, margin)}"
    if table.significant()[best]:
        certainty = ""
    elif low > 0:
        certainty = f"; its own interval excludes a loss, but not with all {tested} tested at once"
    change = numbers.points(-float(table.values[best]), scale)
    same = int((table.values == table.values[best]).sum())
    ties = f" ({same} heads cost the same)" if same > 1 else ""
    caution = f" It is the best of {tested}: expect a little less on new examples." if tested > 1 else ""
    return f"Next cheapest: **{name}**{ties}, {change} points{certainty}.{caution}"


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
    chosen, options = stand_in().text, [*ABLATIONS] if classifies else [ZERO, MEAN]
    if chosen not in ABLATIONS:
        options.append(chosen)
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
    choice = stand_in()
    if choice.kind == ZERO:
        return ""
    draws = f"; shown is the first of {choice.draws} draws" if choice.kind == RESAMPLE else ""
    return f" In the place of a head that is off stands {choice.meaning} ({choice.examples} training examples{draws})."


def stand_ins(clf: Classifier, data: Dataset, measured: Growing) -> None:
    """A switch: the change under this mask with each thing in the heads' place."""
    if measured.mask == clf.present or not frame.controls():
        return
    if not st.toggle("Does it matter what stands there?", key="compare_stand_ins"):
        return
    chosen = stand_in()
    kinds = [kind for kind in clf.ablations if kind in (ZERO, MEAN, BY_PLACE, RESAMPLE, chosen.kind)]
    results: dict[str, Growing] = {}
    for kind in kinds:
        choice = StandIn(kind, chosen.examples)
        result = measure.measured(clf, data, measured.mask, loaders.StandInChoice(choice, state.view()))
        if result is None or not result.final:
            return
        results[f"{TITLES[kind]}, first of {choice.draws} draws" if kind == RESAMPLE else TITLES[kind]] = result
    key = key_of(clf, data, "stand-ins", measured.mask.hex, chosen.examples, *kinds)
    sentence = jobs.need(key, "Comparing them", partial(dependence, results, data))
    if sentence is None:
        return
    show.finding(sentence)
    deltas = [replace(result.comparison.primary, name=name) for name, result in results.items()]
    caption = "The same mask with each thing in the heads' place."
    show.table(change_table("mask_stand_ins", "in the heads' place", deltas, caption))
    if CONSTANT in clf.ablations and CONSTANT not in kinds:
        st.caption("A learned vector takes longer; choose it above to see it here too.")


def dependence(
    by_stand_in: Mapping[str, Growing], data: Dataset, progress: Progress | None = None, cancel: Cancel | None = None
) -> str:
    """How far the change depends on what stands in the heads' place, and whether two choices differ significantly.

    Every two are compared on the same examples; Holm's correction is for the number of pairs.
    """
    deltas = [result.comparison.primary for result in by_stand_in.values()]
    metric, scale = deltas[0].metric, deltas[0].scale
    changes = sorted(d.delta for d in deltas if d.delta == d.delta)
    if undefined := len(deltas) - len(changes):
        return f"The change of {metric_title(metric)} is not defined with {undefined} of these {len(deltas)}."
    low, high = numbers.points(changes[0], scale), numbers.points(changes[-1], scale)
    if scale * (changes[-1] - changes[0]) < 0.05:
        return f"The change is {low} points, whatever stands in the heads' place."
    pairs, p_values = list(combinations(by_stand_in.items(), 2)), []
    for (_, first), (_, second) in tracked(pairs, progress, cancel):
        first_answers = data.answer.answers(first.gold, first.masked, data.label_names)
        p_values.append(first_answers.deltas([second.masked], metric)[0].p_value)
    corrected = holm(p_values)
    sentence = f"Between {low} and {high} points with these {len(by_stand_in)} in the heads' place"
    smallest = int(np.argmin(np.nan_to_num(corrected, nan=1.0)))
    if not corrected[smallest] < 1 - LEVEL:
        return f"{sentence}; no two of them differ significantly on the same examples (Holm)."
    names = "; ".join(name for name, _ in pairs[smallest])
    return f"{sentence}: it matters which. Significant (Holm), most clearly: {names}."


# ---- the cost


def headline(clf: Classifier, data: Dataset, measured: Growing) -> None:
    """The primary metric before and after, the change in one sentence, and what removing the heads would save."""
    primary = measured.comparison.primary
    mask = state.mask(clf.present)
    off = len(clf.under(mask).off) - len(clf.present.off)
    change = f"{numbers.points(primary.delta, primary.scale)} points" if primary.delta else "unchanged"
    if off and not measured.final:
        change = f"{change} so far"
    count = measured.counted or f"n = {primary.n:,}"
    figures = [_masked(metric_title(primary.metric), primary, change)]
    if primary.metric == "matthews":  # undefined of constant answers, so accuracy stands next to it
        accuracies = [d for d in measured.comparison.deltas if d.metric == "accuracy"]
        figures += [_masked(d.metric, d, f"{numbers.points(d.delta, d.scale)} points") for d in accuracies]
    figures.append((sentences.whole(clf.present), numbers.metric(primary.full, primary.scale), count, "gray"))
    if primary.constant is not None:  # the level below which nothing has been learnt
        constant = numbers.metric(primary.constant, primary.scale)
        name = constant_name(primary.metric, data.answer)
        figures.append((name, constant, metric_title(primary.metric), "gray"))
    kept = len(clf.present.kept)
    figures.append(("heads off", f"{off} of {kept}", f"{100 * off / max(1, kept):.0f} %", "gray"))
    with st.container(horizontal=True, gap="medium"):  # in one row on a phone, too
        for name, value, below, colour in figures:
            st.metric(plain(name), plain(value), plain(below), delta_color=colour, delta_arrow="off", width="content")
    names = sentences.heads_named([h for h in measured.mask.off if h not in clf.present.off], loaders.rows_of(clf))
    finding = cost_sentence(measured, names, state.view().margin, data)
    show.finding(finding + (stand_in_sentence() if off else ""))
    if frame.controls():
        state.margin()
    if off:
        small, whole = loaders.cost(clf, mask), loaders.cost(clf)
        parameters, flops = numbers.less(small.parameters, whole.parameters), numbers.less(small.flops, whole.flops)
        smaller = f"parameters {parameters}, FLOPs {flops}"
        st.caption(plain(f"Pruned for real, the model changes by: {smaller} for a text of {whole.length} tokens."))
    measure.computed_in(measured)
    if not measured.final:
        st.caption(EARLY)
        return
    show.cut_off(measured.cut_off)
    with st.expander("All metrics, intervals and p", key="all_metrics", on_change="rerun") as box:
        deltas = measured.comparison.deltas
        table = change_table("mask_metrics", "metric", deltas, "Change of every metric on the same examples.")
        if box.open:
            show.table(table)
            source = PAIRED.format(units=data.answer.unit[1])
            show.note("How intervals and p are computed.", formula=DELTA, source=source, key="mask_paired")
        else:  # it is in the report all the same
            show.report("table", (table.titles(REPORT), table.texts(REPORT)), table.caption)


def _masked(name: str, d: Delta, change: str) -> Number:
    """A metric under the mask, with its change."""
    return name, numbers.metric(d.masked, d.scale), change, show.tone(d.interval_low, d.interval_high)


def cost_sentence(measured: Growing, off: str, margin: float, data: Dataset) -> str:
    """What the mask costs; first whether the answers are still answers. ``off`` names the heads that are off."""
    remark, compared = one_class(measured, data.label_names), measured.comparison
    if not off:
        weak = sentences.weak_model(compared.primary)
        return f"{remark}{weak}All heads are on. Switch some off: the change appears here."
    if not measured.final:
        return remark + sentences.so_far(compared.primary, off, len(measured.gold), measured.counted)
    return remark + sentences.mask_cost(compared.primary, compared.slices, off, kind_of_slice(data), margin)


def kind_of_slice(data: Dataset) -> str:
    """What one slice is: of data without slices a tag, or a label."""
    return data.slice_name or (data.answer.named[0] if data.slices is None else "slice")


def by_slice(clf: Classifier, data: Dataset, measured: Growing) -> None:
    """The primary metric of each slice before and after, with chance marked."""
    compared, kind = measured.comparison, kind_of_slice(data)
    if not compared.slices:
        return
    changes, metric = compared.slices, metric_title(compared.primary.metric)
    if measured.mask == clf.present:  # the full model next to itself: there is no change to be uncertain of
        changes = tuple(replace(d, interval_low=0.0, interval_high=0.0) for d in changes)
    show.figure(
        answers.slices(changes, compared.primary.metric, compared.primary.constant, data.answer),
        "mask_slices",
        f"Each line is one {kind}: {metric} without the mask (stroke) and under it (dot), with "
        "the 95 % interval of the change. A dot has a colour where the interval excludes zero.",
        formula=DELTA,
        source=PAIRED.format(units=data.answer.unit[1]),
    )
    if data.slices is None or state.view().present:  # the analysis reads slices of the data
        return
    if st.button(
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
    choice = measure.stand_in_choice()
    key = key_of(clf, data, "what if", measured.mask.hex, choice.stand_in)
    if jobs.find(key) is None and st.session_state.get("what_if") != key:
        st.button(
            "What if one more head goes?",
            key="ask_what_if",
            icon=":material/lightbulb:",
            on_click=st.session_state.update,
            kwargs={"what_if": key},
            help="Switches off each remaining head in turn, on top of this mask",
        )
        return
    table = jobs.need(
        key,
        "Trying every head",
        lambda p, c: headviz.ablate(
            loaders.evaluator(clf, data, choice, cancel=c), base=measured.mask, progress=p, cancel=c
        ),
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
        st.caption(plain(f"{metric} has no value for these answers, so what one more head costs has none."))
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
    names = ", ".join(head_name(h, rows) for h in hurts[:6]) + (" and others" if len(hurts) > 6 else "")
    _hint(
        f"Heads that hurt (q < 0.05): **{names}**.",
        "Switch it off" if len(hurts) == 1 else f"Switch all {len(hurts)} off",
        "take_harmful",
        clf,
        hurts,
    )


def next_costs(present: HeadMask) -> Ablation | None:
    """What each further head would cost on top of the mask, if that has been asked for and is known."""
    job = jobs.find(st.session_state.get("what_if"))
    table = None if job is None else job.result
    if table is None or table.base.off != present.without(state.mask(present).off).off:
        return None
    return table


def _hint(hint: str, label: str, key: str, clf: Classifier, heads: Sequence[HeadId]) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(hint, width="content")
        st.button(plain(label), key=key, on_click=lambda: state.set_mask(state.mask(clf.present).without(heads)))


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
            "Answers under the mask by gold label; below each, the change against no mask (orange: worse).",
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
    reference, keywords, options = recipes.stand_in(view, stand_in() if mask.off else StandIn())
    exact = {"precision": "float32"} if view.exact else {}
    evaluated = call("headviz.evaluate", Code("clf"), Code("data"), mask=Code("mask"), **keywords, **exact)
    lines = (recipes.HEADVIZ, recipes.load(view), recipes.task(view), recipes.mask_of(mask), *reference)
    options = (*recipes.model_options(view), *recipes.data_options(view), *recipes.mask_options(mask), *options)
    options = (*options, *exact.items())
    return "\n".join((*lines, f"print({evaluated}.metrics)")), command("evaluate", options)


# ---- two masks side by side

ALL_ON = "all heads on"


def two_masks(clf: Classifier, data: Dataset) -> None:
    """Two menus of masks (the current one, saved ones, all heads on) and what the answers differ in."""
    current = state.mask(clf.present)
    masks = {
        state.title_of_current(current): current,
        **{name: mask for name, (mask, _) in state.saved_masks(clf.present).items()},
        ALL_ON: HeadMask.full(clf.num_layers, clf.num_heads),
    }
    with st.expander("Two masks side by side", icon=":material/compare:", key="two_masks", on_change="rerun") as box:
        if not box.open:
            return
        if len(masks) < 3:
            st.caption("Save a mask under *Saved masks*: it can then be compared with the current one.")
        left, right = st.columns(2)
        names = list(masks)
        a = left.selectbox("A", names, 0, key="mask_a")  # a list shows texts as they stand
        b = right.selectbox("B", names, 1, key="mask_b")
        first, second = clf.under(masks[a]), clf.under(masks[b])
        if first == second:
            st.caption("A and B switch off the same heads.")
            return
        choice = measure.stand_in_choice()
        key = key_of(clf, data, "two masks", first.hex, second.hex, choice.stand_in)
        result = jobs.need(
            key,
            "Evaluating both",
            lambda p, c: loaders.evaluator(clf, data, choice, cancel=c).compare(second, first, progress=p, cancel=c),
        )
        if result is None:
            return
        show.finding(sentences.two_masks(result.primary, a, b) + stand_in_sentence())
        changes = [replace(result.primary, name="all"), *result.slices]
        caption = f"{metric_title(result.primary.metric)} under both masks on the same examples, paired."
        show.table(change_table("two_masks_table", "examples", changes, caption, ("A", "B", "B − A")))
