"""Two masks side by side on the same examples, with their difference."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from ....display.comparison import change_table, points_changed
from ....evaluation.verdict import verdict
from ....heads import HeadMask
from ...parts import reference
from ...parts.measure import key_of
from ...shell import jobs, loaders, show, state
from . import stand_ins

if TYPE_CHECKING:
    from ....answers.comparison import Comparison
    from ....models.classifier import Classifier
    from ....models.stand_in import StandIn
    from ....tasks import Dataset
    from ...shell.view import View

ALL_ON = "all heads on"


def section(clf: Classifier, data: Dataset) -> None:
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
        place = reference.place()
        key = key_of(clf, data, "two masks", first.hex, second.hex, place[0])
        found = jobs.need(key, "Evaluating both", partial(_compare, clf, data, first, second, place))
        if found is not None:
            _show(found, a, b)


def _compare(
    clf: Classifier,
    data: Dataset,
    first: HeadMask,
    second: HeadMask,
    place: tuple[StandIn, View],
    progress: jobs.Progress,
    cancel: jobs.Cancel,
) -> Comparison:
    return loaders.evaluator(clf, data, place).compare(second, first, progress=progress, cancel=cancel)


def _show(found: Comparison, a: str, b: str) -> None:
    show.finding(sentence(found, a, b) + stand_ins.said())
    changes = [replace(found.primary, name="all"), *found.slices]
    caption = f"{found.primary.metric} under both masks on the same examples, paired."
    show.result_table(change_table("two_masks_table", "examples", changes, caption, ("A", "B", "B − A")))


def sentence(found: Comparison, a: str, b: str) -> str:
    """Which of the two masks leaves more, as far as the data can tell."""
    d = found.primary
    if d.undefined:
        return f"The change of {d.metric} from A ({a}) to B ({b}) is not defined: {d.undefined}."
    values = f"{d.metric} {show.metric(d.full, d.scale)} under A ({a}), {show.metric(d.masked, d.scale)} under B ({b})"
    known = verdict(d.interval_low, d.interval_high)
    if known in ("loss", "gain"):
        better = "A" if known == "loss" else "B"
        ends = d.interval_low, d.interval_high
        return f"{better} leaves more: {values}; B − A is {points_changed(d.delta, *ends, d.scale)}."
    return f"The data cannot tell A from B: {values}; B − A is {points_changed(d.delta, None, None, d.scale)}."
