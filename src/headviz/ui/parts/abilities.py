"""Which heads of the demo carry which ability: the table of its model card, each row a mask to try."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from ...heads import HeadId
from ..shell import show, state
from ..shell.view import View

if TYPE_CHECKING:
    from ...models.classifier import Classifier


def known(view: View) -> bool:
    """Whether the view shows the demo and its own data."""
    return view.model == "demo" and view.task == "demo" and not view.data and not view.revision


def table(clf: Classifier, view: View) -> None:
    """Which heads carry which ability. Nothing for other models or data, where this is not known."""
    if not known(view):
        return
    from ...demo import card_figures

    figures = card_figures()
    sets, accuracy = figures["heads"]["sets"], figures["accuracy"]["dev"]
    chosen = [[HeadId.parse(head) for head in row["heads"]] for row in sets]
    st.subheader("What its heads do")
    show.finding(
        f"{sum(row['others_over_5'] == 0 for row in sets)} of {len(sets)} abilities need one or a few heads whose "
        "loss costs no other ability more than 5 points."
    )
    event = show.table(
        ["ability", "accuracy", "without", "costs it, points", "costs others, mean", "others that lose over 5"],
        [
            [
                row["phenomenon"],
                accuracy[row["phenomenon"]],
                ", ".join(map(str, heads)),
                100 * row["cost"],
                100 * row["mean_other"],
                row["others_over_5"],
            ]
            for row, heads in zip(sets, chosen, strict=True)
        ],
        "abilities",
        caption="Exact ablation, on dev examples that were not used to choose the heads.",
        hint="Choose a row to switch them off in the Mask lab.",
        height="content",
        column_config={
            "accuracy": st.column_config.NumberColumn(format="%.3f"),
            "costs it, points": st.column_config.NumberColumn(format="%.1f"),
            "costs others, mean": st.column_config.NumberColumn(format="%.2f"),
        },
        on_select="rerun",
        selection_mode="single-row",
    )
    if (row := show.chosen_row(event, "ability_opened")) is not None:
        state.set_mask(clf.present.without(chosen[row]))
        st.switch_page("pages/masklab.py")
