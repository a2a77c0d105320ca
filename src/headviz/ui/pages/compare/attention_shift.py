"""On Compare: which of the remaining heads look elsewhere under the mask, and where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from ....display.figures import maps as charts_maps
from ....heads import HeadId, HeadMask, highest
from ...parts import abilities
from ...parts.texts import Text
from ...shell import show, state
from ...widgets.grid import Look

if TYPE_CHECKING:
    from ....models.classifier import Classifier


LEGIBLE = (
    (18, ""),
    (21, "28"),
    (24, "32"),
    (34, "48"),
    (60, "64"),
)  # up to so many tokens -> the least width in rem that names them
LEAST = 0.005  # share of the attention that moves, below which it reads 0 %


def width_for(tokens: int) -> str:
    """The width below which a map of so many tokens scrolls, because their names would touch."""
    return next((width for most, width in LEGIBLE if tokens <= most), "96")


def section(clf: Classifier, shown: Text) -> None:
    """How much of each head's attention has moved, and one head's change for every connection."""
    from ....attribution.attention_shift import attention_shift

    mask = state.mask(clf.present)
    values = attention_shift(clf, shown.text, shown.pair, mask)
    chosen = state.head(clf.present)
    if not np.nanmax(values, initial=0.0) >= LEAST:
        st.markdown(
            f"**{'No remaining head moves its attention by 0.5 % or more' if mask.kept else 'No head is left'}.**"
        )
    else:
        top = highest(values)[0]
        moved_most = f"{100 * values[top]:.0f} % of it is elsewhere under the mask"
        st.markdown(f"**Attention moves most in {show.plain(str(top))}: {moved_most}.**")
        if chosen is None or not np.isfinite(values[chosen]):
            chosen = top
    left, right = st.columns([9, 10], gap="medium")
    with left:
        show.head_grid(
            "shift",
            clf.present,
            values,
            mask=mask,
            selected=chosen,
            carries=abilities.carried(state.view()),
            on_select=state.select,
            tips={"attention moved": [["–" if v != v else f"{100 * v:.1f} %" for v in row] for row in values]},
            look=Look(
                name="share of attention that moved",
                width=36,
                numbers=state.view().numbers,
                blank_zeros=True,
                file="headviz-shift",
            ),
        )
        show.note(
            "The share of each head's attention that lies elsewhere under the mask, for this text: 0 = none, 1 = all.",
            formula=r"\tfrac1T \sum_i \tfrac12 \sum_j |A'_{ij} - A_{ij}|",
            source="Total variation distance, mean over queries. Attention cannot move before the first masked layer.",
            key="shift_note",
            saves=False,
        )
    with right:
        if chosen is None or not np.isfinite(values[chosen]):
            st.info("No head remains whose attention could move.")
        else:
            _one(clf, shown, mask, chosen)


def _one(clf: Classifier, shown: Text, mask: HeadMask, head: HeadId) -> None:
    """The change of one head's map, and its largest change in words."""
    from ....attribution.attention_shift import attention_of

    tokens, before = attention_of(clf, shown.text, shown.pair, clf.full_mask, head)
    _, after = attention_of(clf, shown.text, shown.pair, mask, head)
    st.markdown(f"**{show.plain(largest_change(head, tokens, before, after))}**")
    show.figure(
        charts_maps.matrix(after - before, tokens, tokens, "change", signed=True),
        "shift_map",
        f"How the mask changes the attention of {head}: blue = more, orange = less. Each row sums to 0.",
        formula=r"A'_{ij} - A_{ij}",
        source="Attention under the mask minus that of the full model. Rows are queries, columns keys.",
        wide=width_for(len(tokens)),
    )


def largest_change(head: HeadId, tokens: Sequence[str], before: np.ndarray, after: np.ndarray) -> str:
    """The connection that changes most, in words."""
    query, key = (int(i) for i in np.unravel_index(np.abs(after - before).argmax(), before.shape))
    was, now = float(before[query, key]), float(after[query, key])
    if abs(now - was) < 0.005:
        return f"{head} looks where it looks without the mask."
    more = "more" if now > was else "less"
    return (
        f"{head}: {_named(tokens, query)} looks {more} at {_named(tokens, key)} than without the mask, "
        f"{now:.2f} instead of {was:.2f}."
    )


def _named(tokens: Sequence[str], at: int) -> str:
    """A token's text; if it occurs several times, with its number."""
    if tokens.count(tokens[at]) == 1:
        return f"“{tokens[at]}”"
    return f"“{tokens[at]}” ({tokens[: at + 1].count(tokens[at])} of {tokens.count(tokens[at])})"
