"""On One head: what every part of the model adds to the score, and what the chosen head reads and writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from ....display.figures import maps as charts_maps
from ....display.figures import parts as charts_parts
from ....heads import HeadId, HeadMask
from ....ties import ordered
from ...parts.texts import Text
from ...shell import jobs, memo, show, state

if TYPE_CHECKING:
    from ....attribution.contributions import Contributions
    from ....models.classifier import Classifier

DIRECT = r"s_c = \sum_h W_c\,W_O^h\,o_h + \sum_l W_c\,\mathrm{FF}_l + W_c\,x_0 + b_c"
FROZEN = (
    "Direct logit attribution: the scale of every layer norm and the slope of the read-out stay those of this text, so "
    "the parts sum to the score."
)
SHOWN = 12  # heads in the table


def section(clf: Classifier, shown: Text, chosen: HeadId) -> None:
    """The switch and, where it is on, both figures, the sentence and the table."""
    if not state.tick("writes", "What it reads and writes", help="Takes one pass of the model for each layer"):
        return
    from ....attribution.contributions import contributions

    mask = state.mask(clf.present)
    key = (*memo.identity(clf), "contributions", shown.text, shown.pair, mask.hex)
    found = jobs.need(
        key,
        "Taking the score apart",
        lambda p, c: contributions(clf, shown.text, shown.pair, mask=mask, progress=p, cancel=c),
    )
    if found is None:
        return
    show.finding(said(found, chosen))
    left, right = st.columns([3, 2], gap="large")
    with left:
        _whole(found)
    with right:
        _heads(found)
    if chosen in found.mask.kept:
        _reading(clf, shown, chosen, mask, found.predicted)


def said(found: Contributions, chosen: HeadId) -> str:
    """What this head adds itself, and what is lost without it."""
    c, name = found.predicted, found.labels[found.predicted]
    direct, lost = float(found.heads[(*chosen, c)]), float(found.ablation[(*chosen, c)])
    if lost != lost:
        if direct and direct == direct:
            return f"{chosen} is off: what stands in its place adds {show.signed(direct)} to the score of {name}."
        return f"{chosen} is off: it adds nothing to the score of {name}."
    rank = 1 + int((np.abs(found.heads[:, :, c]) > abs(direct)).sum())
    of = int(np.isfinite(found.heads[:, :, c]).sum())
    change = f"{'falls' if lost > 0 else 'rises'} by {show.number(abs(lost))}" if lost else "stays as it is"
    return (
        f"{chosen} itself adds {show.signed(direct)} to the score of {name} (number {rank} of {of} by size); without "
        f"it the score {change}. The difference, "
        f"{show.signed(lost - direct)}, goes through what comes after it. Attribution, above, adds up the way from "
        "padding to this text and may have another sign: what a head did on the way is not what is lost without it at "
        "the end."
    )


def _whole(found: Contributions) -> None:
    from ....attribution.contributions import waterfall

    name = found.labels[found.predicted]
    show.figure(
        charts_parts.waterfall(waterfall(found), f"score of {name}"),
        "score_waterfall",
        f"Every part of the score of {name}, heads summed over each layer. They sum to the score.",
        formula=DIRECT,
        source=FROZEN,
    )


def _heads(found: Contributions) -> None:
    c = found.predicted
    order = ordered(-np.abs(found.heads[:, :, c]), found.mask.kept, seed=0)[:SHOWN]
    show.table(
        ["head", "adds itself", "lost without it"],
        [[str(h), float(found.heads[(*h, c)]), float(found.ablation[(*h, c)])] for h in order],
        "head_contributions",
        caption=f"The {len(order)} heads that add most to the score of {found.labels[c]}, for or against it.",
    )


def _reading(clf: Classifier, shown: Text, chosen: HeadId, mask: HeadMask, target: int) -> None:
    from ....attribution.reading import head_reading

    one = head_reading(clf, shown.text, shown.pair, chosen, mask=mask)
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader("What it matches (QK)")
        show.figure(
            charts_maps.matrix(one.match, one.tokens, one.tokens, "match", signed=True),
            "head_match",
            f"How well each query of {chosen} fits each key, before the softmax; words and positions together.",
            formula=r"q_i \cdot k_j / \sqrt{d}",
        )
    with right:
        st.subheader("What it writes (OV)")
        show.figure(
            charts_parts.token_bars(one.scores[:, target].tolist(), one.tokens, f"adds to {one.labels[target]}"),
            "head_writes",
            f"What {chosen} adds directly to the score of {one.labels[target]}, by the word that [CLS] reads.",
            formula=r"p_{0j}\,W_c\,W_O\,v_j",
            source=FROZEN,
        )
