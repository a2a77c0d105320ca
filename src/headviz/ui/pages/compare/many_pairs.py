"""On Compare, Patching: every head patched over many pairs, from an uploaded table or those that the demo brings."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from ....errors import TaskError, UserError
from ....evaluation.verdict import undecided
from ....heads import HeadId
from ...shell import jobs, memo, show, state
from ...shell.uploads import FORMATS
from ...widgets.grid import Look
from .patching import EFFECT, percent

if TYPE_CHECKING:
    from ....attribution.patching import Text as Given
    from ....attribution.patching_set import PatchingSet
    from ....models.classifier import Classifier

MOST = 200  # pairs
DRAWN = 12  # of those that the demo brings
FORMAT = (
    "Columns text and donor, and text_pair and donor_pair for models that compare two texts; or two columns whose "
    "cells are a text, or two texts with | between them."
)


def section(clf: Classifier, demo: bool) -> None:
    """What to patch, the grid of mean effects, and the heads that carry the difference."""
    if state.view().present:
        return
    with st.expander("Many pairs at once"):
        try:
            texts = _texts(demo)
        except UserError as wrong:
            show.refused(wrong)
            return
        if texts is None:
            return
        mask, where = state.mask(clf.present), state.view().positions

        def work(progress: jobs.Progress, cancel: jobs.Cancel) -> PatchingSet:
            from ....attribution.patching_set import patch_pairs

            return patch_pairs(clf, texts, positions=where, mask=mask, progress=progress, cancel=cancel)

        key = (*memo.identity(clf), "patch pairs", tuple(texts), mask.hex, where)
        found = jobs.need(key, f"Patching every head over {len(texts)} pairs", work)
        if found is not None:
            _draw(clf, found)


def _texts(demo: bool) -> list[tuple[Given, Given]] | None:
    """The pairs that are asked for; None while nothing is."""
    sent = st.file_uploader("A table of pairs", type=list(FORMATS), key="pairs_file", help=FORMAT)
    if sent is not None:
        found = read_pairs(sent.getvalue(), sent.name.rsplit(".", 1)[-1].lower())
        if len(found) > MOST:
            st.caption(f"The first {MOST} of {len(found):,} pairs are used; the command has no such limit.")
        return found[:MOST]
    if not demo:
        return None
    from ....demo.example import PHENOMENA
    from ....demo.minimal_pairs import minimal_pairs

    name = st.selectbox(
        f"or {DRAWN} minimal pairs of a phenomenon", list(PHENOMENA), index=None, key="pairs_kind", width=320
    )
    if name is None:
        return None
    return [((a.premise, a.hypothesis), (b.premise, b.hypothesis)) for a, b in minimal_pairs(name, DRAWN)]


def read_pairs(content: bytes, kind: str) -> list[tuple[Given, Given]]:
    """The pairs of an uploaded table, by the reader that reads tasks."""
    from ....attribution.patching_set import pairs_of
    from ....storage.writing import replace_file
    from ....tasks.readers import read_table

    if kind not in FORMATS:
        raise TaskError(f"'{kind[:20]}' files cannot be read. Upload {', '.join(FORMATS)}.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"pairs.{kind}"
        replace_file(path, content)
        return pairs_of(read_table(path))


def said(found: PatchingSet) -> str:
    """How many heads carry the difference, and which carries most."""
    sure, top = int((found.q_value < 0.05).sum()), found.ranked()[0]
    ends = f"[{percent(found.interval_low[top])}, {percent(found.interval_high[top])}]"
    left = found.same_answer + found.small
    out = f"; {left} left out, whose answers hardly differ" if left else ""
    of, most = int(np.isfinite(found.mean).sum()), f"{percent(found.mean[top])} of the way {ends}, over {found.n} pairs"
    if not sure:
        return (
            f"No head is shown to move the answer with all {of} tested at once (q < .05). {top} has the largest "
            f"effect: {most}{out}."
        )
    verb = "moves" if sure == 1 else "move"
    return f"{sure} of {of} heads {verb} the answer (q < .05). {top} has the largest effect: {most}{out}."


def _draw(clf: Classifier, found: PatchingSet) -> None:
    show.finding(said(found))
    tips = [
        ["–" if m != m else f"{percent(m)} [{percent(a)}, {percent(b)}]" for m, a, b in zip(*row, strict=True)]
        for row in zip(found.mean, found.interval_low, found.interval_high, strict=True)
    ]
    left, right = st.columns([5, 4], gap="large")
    with left:
        show.head_grid(
            "pairs_grid",
            clf.present,
            found.mean,
            mask=state.mask(clf.present),
            selected=state.head(clf.present),
            on_select=state.select,
            tips={"of the way": tips},
            marks=[HeadId(int(i), int(j)) for i, j in np.argwhere(found.q_value < 0.05)],
            mark_name="q < .05",
            grey=undecided(found.interval_low, found.interval_high),
            look=Look(name="mean effect", numbers=state.view().numbers, digits=2, file="headviz-patching-pairs"),
        )
        show.note(
            "Mean over the pairs: 0 = the answer stays the text's, 1 = it is the donor's.",
            formula=EFFECT,
            source="Student's t over pairs; q by Benjamini and Hochberg over all heads.",
            key="pairs_note",
            saves=False,
        )
    with right:
        show.table(
            ["head", "mean effect", "95 % low", "95 % high", "q"],
            [
                [str(h), *(float(t[h]) for t in (found.mean, found.interval_low, found.interval_high, found.q_value))]
                for h in found.ranked()
            ],
            "pairs_table",
            caption="All heads, the largest mean effect first.",
            record=found.to_dict(),
            height=360,
        )
