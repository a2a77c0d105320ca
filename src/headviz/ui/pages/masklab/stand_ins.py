"""What stands in the place of heads that are off: the choice, the sentence that says it, and how much hangs on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from ....display.comparison import change_table
from ....models.stand_in import ABLATIONS, BY_PLACE, CONSTANT, MEAN, RESAMPLE, ZERO, StandIn
from ....progress import Cancel, Progress, tracked
from ....statistics.significance import LEVEL, holm
from ...parts import measure
from ...parts.reference import chosen
from ...shell import frame, jobs, show, state

if TYPE_CHECKING:
    from ....models.classifier import Classifier
    from ....tasks import Dataset
    from ...parts.measure import Measured

TITLES = {
    ZERO: "nothing (zero)",
    MEAN: "its mean",
    BY_PLACE: "its mean by kind of place",
    RESAMPLE: "another example's output",
    CONSTANT: "a learned vector",
}


def choose(classifies: bool) -> None:
    """The select box, before the model is loaded; a translation model has zero and the mean."""
    now, known = chosen(), ABLATIONS if classifies else (ZERO, MEAN)
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


def said() -> str:
    """One sentence; empty for zero."""
    now = chosen()
    if now.kind == ZERO:
        return ""
    drawn = f"; shown is the first of {now.draws} draws" if now.kind == RESAMPLE else ""
    return f" In the place of a head that is off stands {now.meaning} ({now.examples} training examples{drawn})."


def how_much(clf: Classifier, data: Dataset, found: Measured) -> None:
    """A switch: the change under this mask with each thing in the heads' place."""
    if found.mask == clf.present or not frame.controls():
        return
    if not st.toggle("Does it matter what stands there?", key="compare_stand_ins"):
        return
    now = chosen()
    kinds = [k for k in clf.ablations if k in (ZERO, MEAN, BY_PLACE, RESAMPLE, now.kind)]
    rows: dict[str, Measured] = {}
    for kind in kinds:
        choice = StandIn(kind, now.examples)
        one = measure.measured(clf, data, found.mask, (choice, state.view()))
        if one is None or not one.whole:
            return
        rows[f"{TITLES[kind]}, first of {choice.draws} draws" if kind == RESAMPLE else TITLES[kind]] = one
    key = measure.key_of(clf, data, "stand-ins", found.mask.hex, now.examples, *kinds)
    said = jobs.need(key, "Comparing them", partial(dependence, rows, data))
    if said is None:
        return
    show.finding(said)
    deltas = [replace(one.comparison.primary, name=name) for name, one in rows.items()]
    caption = "The same mask with each thing in the heads' place."
    show.result_table(change_table("mask_stand_ins", "in the heads' place", deltas, caption))
    if CONSTANT in clf.ablations and CONSTANT not in kinds:
        st.caption("A learned vector takes longer; choose it above to see it here too.")


def dependence(
    found: Mapping[str, Measured], data: Dataset, progress: Progress | None = None, cancel: Cancel | None = None
) -> str:
    """How far the change moves with what stands in the heads' place, and whether two of them differ for certain.

    Every two are compared on the same examples; Holm's correction is for the number of pairs.
    """
    of = [one.comparison.primary for one in found.values()]
    scale, changes = of[0].scale, sorted(d.delta for d in of if d.delta == d.delta)
    if len(changes) < len(of):
        return f"The change of {of[0].metric} is not defined with {len(of) - len(changes)} of these {len(of)}."
    low, high = (show.points(v, scale) for v in (changes[0], changes[-1]))
    if scale * (changes[-1] - changes[0]) < 0.05:
        return f"The change is {low} points, whatever stands in the heads' place."
    pairs, p = list(combinations(found.items(), 2)), []
    for (_, one), (_, other) in tracked(pairs, progress, cancel):
        answers = data.answer.answers(one.gold, one.masked, data.label_names)
        p.append(answers.deltas([other.masked], of[0].metric)[0].p_value)
    likely = holm(p)
    said = f"Between {low} and {high} points with these {len(found)} in the heads' place"
    surest = int(np.argmin(np.nan_to_num(likely, nan=1.0)))
    if not likely[surest] < 1 - LEVEL:
        return f"{said}; no two of them are told apart on the same examples (Holm), so it is not shown to matter which."
    (first, _), (second, _) = pairs[surest]
    return f"{said}: it matters which. Told apart (Holm), most clearly: {first}; {second}."
