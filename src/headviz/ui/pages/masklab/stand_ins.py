"""What stands in the place of heads that are off: the choice, the sentence that says it, and how much hangs on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from ....models.stand_in import ABLATIONS, BY_PLACE, CONSTANT, MEAN, RESAMPLE, ZERO, StandIn
from ...parts import measure
from ...parts.reference import chosen
from ...shell import frame, show, state

if TYPE_CHECKING:
    from ....evaluation.comparison import Delta
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
        format_func=lambda text: TITLES.get(text, text),
        width=260,
        help="A head that is off has an output all the same. Zero is not what the model saw in training; the mean, "
        "another example's output or a learned vector answer the same question against another reference",
    )


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
    rows: list[tuple[str, Delta]] = []
    for kind in kinds:
        one = measure.measured(clf, data, found.mask, (StandIn(kind, now.examples), state.view()))
        if one is None:
            return
        rows.append((kind, one.comparison.primary))
    show.finding(dependence([delta for _, delta in rows]))
    show.table(
        ["in the heads' place", "masked", "change", "95 % low", "95 % high"],
        [
            [TITLES[kind], d.masked, *(d.scale * v for v in (d.delta, d.interval_low, d.interval_high))]
            for kind, d in rows
        ],
        "mask_stand_ins",
        caption="The same mask with each thing in the heads' place; change in points.",
        formats={"masked": "%.3f", **dict.fromkeys(("change", "95 % low", "95 % high"), "%+.1f")},
    )
    if CONSTANT in clf.ablations and CONSTANT not in kinds:
        st.caption("A learned vector takes longer; choose it above to see it here too.")


def dependence(found: list[Delta]) -> str:
    """How far the change of the metric moves with what stands in the heads' place."""
    changes = sorted(d.scale * d.delta for d in found)
    scale = found[0].scale
    low, high = (show.points(v / scale, scale) for v in (changes[0], changes[-1]))
    if changes[-1] - changes[0] < 0.05:
        return f"The change is {low} points, whatever stands in the heads' place."
    said = f"Between {low} and {high} points with these {len(found)} in the heads' place"
    least, most = min(d.delta for d in found), max(d.delta for d in found)
    if all(d.interval_low <= least and most <= d.interval_high for d in found):
        return f"{said}; each interval holds all of them, so it is not shown to matter which."
    return f"{said}: it matters which."
