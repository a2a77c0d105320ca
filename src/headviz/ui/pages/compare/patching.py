"""On Compare: each head's output for another text, the donor, put into the pass of this one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from ....attribution.alignment import ALL, POSITIONS
from ....display.figures.palette import scale_for
from ....display.numbers import percent
from ....heads import highest
from ...parts.texts import EMPTY, Text
from ...shell import jobs, memo, show, state
from ...shell.view import LONGEST_TEXT
from ...widgets.grid import Look
from . import paths
from .paths import Given

if TYPE_CHECKING:
    from ....attribution.patching import Patching
    from ....models.classifier import Classifier

EFFECT = r"\frac{F(\text{text with the head's output of the donor}) - F(\text{text})}{F(\text{donor}) - F(\text{text})}"
WHERE = {ALL: "all tokens", "changed": "the words that differ", "first": "[CLS] only"}

LITTLE = 0.1  # of the way: a head of less does not move the answer


def section(clf: Classifier, shown: Text, demo: bool) -> None:
    """The donor's fields, the grid of effects, and which token stood for which."""
    if shown.empty:
        st.info(EMPTY, icon=":material/edit:")
        return
    _fields(shown, demo)
    if _donor(shown) is None:
        st.info(
            "Which head carries a difference between two texts? Write a second text, the donor, that differs from the "
            "one above in one thing. Then each head in turn works with its output for the donor.",
            icon=":material/edit:",
        )
        return
    state.switch("positions", "Tokens that take the donor's values", POSITIONS, format_func=WHERE.__getitem__)
    st.toggle("The other way: this text's outputs into the donor", key="patch_turned")
    asked = given(clf, shown)
    assert asked is not None  # there is a donor
    one, other, memory, edited = asked.one, asked.other, asked.memory, asked.edited
    mask, where = state.mask(clf.present), state.view().positions

    def work(progress: jobs.Progress, cancel: jobs.Cancel) -> Patching:
        from ....attribution.patching import patch

        return patch(clf, one, other, positions=where, alignment=edited, mask=mask, progress=progress, cancel=cancel)

    told = None if edited is None else tuple(sorted(edited.items()))
    found = jobs.need((*memory, str(clf.dtype), told), "Patching every head", work)
    if found is None:
        return
    show.finding(said(found))
    left, right = st.columns([5, 4], gap="large")
    with left:
        _grid(clf, found)
    with right:
        _aligned(found, memory)
    paths.section(clf, asked, shown)


def given(clf: Classifier, shown: Text) -> Given | None:
    """The texts of the fields as they are now; None without a donor."""
    donor, view = _donor(shown), state.view()
    if donor is None:
        return None
    one, other = (shown.text if shown.pair is None else (shown.text, shown.pair)), donor
    if st.session_state.get("patch_turned"):
        one, other = other, one
    memory = (*memo.identity(clf), "patch", one, other, state.mask(clf.present).hex, view.positions)
    return Given(one, other, memory, st.session_state.get("patch_alignment_of", {}).get(memory))


def _fields(shown: Text, demo: bool) -> None:
    """The fields of the donor."""
    if not state.view().present:
        if demo:
            st.button(
                "Draw a minimal pair", key="minimal_pair", icon=":material/casino:", on_click=_draw, args=(shown,)
            )
        boxes = st.columns(1 if shown.pair is None else 2)
        with boxes[0]:
            state.text("donor", "Donor", max_chars=LONGEST_TEXT, placeholder=shown.text)
        if shown.pair is not None:
            with boxes[1]:
                state.text("donor_pair", "Donor's pair (empty = as above)", max_chars=LONGEST_TEXT)


def _donor(shown: Text) -> Any:
    """The donor's texts; None while nothing is written."""
    view = state.view()
    if not view.donor.strip() and not view.donor_pair.strip():
        return None
    first = view.donor.strip() or shown.text
    return first if shown.pair is None else (first, view.donor_pair.strip() or shown.pair)


def _draw(shown: Text) -> None:
    """Another minimal pair of the example's phenomenon, into all fields."""
    from ....demo.example import PHENOMENA
    from ....demo.minimal_pairs import minimal_pairs

    number = st.session_state["pairs_drawn"] = st.session_state.get("pairs_drawn", 0) + 1
    names = list(PHENOMENA)
    name = shown.slice if shown.slice in names else names[number % len(names)]
    drawn = minimal_pairs(name, 1, seed=number)
    if drawn:
        one, other = drawn[0]
        state.update(a=one.premise, b=one.hypothesis, donor=other.premise, donor_pair=other.hypothesis)


def said(found: Patching) -> str:
    """Which head alone moves the answer most, and how far all of them do."""
    if not np.isfinite(found.effect).any():
        return "Both texts have the same value of what is measured, so no head can move it."
    top = highest(np.abs(found.effect))[0]
    way, what = f"from {found.from_label} to {found.to_label}", "the answer"
    if found.from_label == found.to_label:
        way, what = "to the donor's", f"the score of {found.to_label}"
    much = percent(found.effect[top])
    moves = f"{top} alone moves {what} {much} of the way {way}"
    if abs(found.effect[top]) < LITTLE:
        moves = f"No head alone moves {what} far: {top} most, {much} of the way {way}"
    takes = "takes" if len(found.positions) == 1 else "take"
    return f"{moves}; {len(found.positions)} of {len(found.tokens)} tokens {takes} the donor's values."


def _grid(clf: Classifier, found: Patching) -> None:
    scale = scale_for([*map(float, found.effect.ravel()), LITTLE, -LITTLE], signed=True)  # a tiny effect looks tiny
    tips = [["–" if v != v else percent(v) for v in row] for row in found.effect]
    show.head_grid(
        "patch_grid",
        clf.present,
        found.effect,
        mask=state.mask(clf.present),
        selected=state.head(clf.present),
        on_select=state.select,
        tips={"of the way": tips},
        look=Look(name="effect", scale=scale, numbers=state.view().numbers, digits=2, file="headviz-patching"),
    )
    show.note(
        f"0 = the answer stays the text's, 1 = it is the donor's; below 0 it moves away. Measured: {found.measured}.",
        formula=EFFECT,
        source="Activation patching, one head at a time; all later layers see the change.",
        key="patch_note",
        saves=False,
    )


def _aligned(found: Patching, memory: tuple[Any, ...]) -> None:
    """Which token of the donor stood for which; editable."""
    import pandas as pd

    st.caption("Which token of the donor stands for which. Change a number to align them otherwise.")
    rows = [
        [i, token, None if j is None else int(j), "–" if j is None else found.donor_tokens[j], i in found.positions]
        for i, (token, j) in enumerate(zip(found.tokens, found.alignment, strict=True))
    ]
    frame = pd.DataFrame(rows, columns=["token", "text", "donor's token", "donor", "patched"])
    frame["donor's token"] = frame["donor's token"].astype("Int64")
    after = st.data_editor(
        frame,
        hide_index=True,
        key="patch_alignment",
        height=360,
        disabled=["token", "text", "donor", "patched"],
        column_config={
            "donor's token": st.column_config.NumberColumn(min_value=0, max_value=len(found.donor_tokens) - 1, step=1)
        },
    )
    wanted = alignment_of(after["donor's token"].tolist())
    if wanted != {i: j for i, j in enumerate(found.alignment) if j is not None}:
        st.session_state["patch_alignment_of"] = {memory: wanted}
        st.rerun()


def alignment_of(column: Sequence[Any]) -> dict[int, int]:
    """Token of the text -> token of the donor, without the empty ones."""
    return {i: int(j) for i, j in enumerate(column) if str(j) not in ("None", "nan", "<NA>")}
