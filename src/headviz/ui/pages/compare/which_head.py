"""On Compare: which of the masked heads changed the answer, or changed its probability most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from ....heads import HeadId, HeadMask
from ...parts.texts import Text
from ...shell import jobs, memo, show, state

if TYPE_CHECKING:
    from ....attribution.which_head import Moved, Restored
    from ....models.classifier import Classifier

MOVED = 0.05  # change of a probability from which the page asks which head makes it


def section(clf: Classifier, shown: Text, found: Sequence[np.ndarray]) -> None:
    """'Which head did it?' for the current mask."""
    from ....attribution.which_head import which_heads, which_moves

    mask = state.mask(clf.present)
    if not clf.answer.decides or not mask.off:
        return
    best = int(found[0].argmax())
    flipped = best != int(found[1].argmax())
    if not flipped and abs(float(found[0][best] - found[1][best])) <= MOVED:
        st.caption("The mask does not change this answer. Change a word, or switch off more heads.")
        return
    key = (*memo.identity(clf), "which", shown.text, shown.pair, mask.hex)
    question = "Which head did it?" if flipped else "Which head moves it most?"
    if not state.view().present and st.button(question, type="primary", key="which", icon=":material/search:"):
        st.session_state["which_asked"] = key
    if st.session_state.get("which_asked") != key:
        return
    asked = (clf, shown.text, shown.pair, mask)
    if flipped:
        result = jobs.need(key, "Searching", lambda p, c: which_heads(*asked, progress=p, cancel=c))
        if result is not None:
            _found(sentence(result, clf.labels), result.heads, mask)
        return
    moved = jobs.need(key, "Trying every head", lambda p, c: which_moves(*asked, progress=p, cancel=c))
    if moved is not None:
        _found(moved_sentence(moved, clf.labels), [] if moved.head is None else [moved.head], mask)


def _found(said: str, heads: Sequence[HeadId], mask: HeadMask) -> None:
    """The answer, and buttons to look at the heads or switch them on again."""
    st.success(show.plain(said), icon=":material/lightbulb:")
    if not heads or state.view().present:
        return
    with st.container(horizontal=True):
        for h in heads[:8]:
            st.button(show.plain(f"Look at {h}"), key=f"open_{h.dotted}", on_click=_select, args=(h.dotted,))
        if st.session_state.pop("go_head", False):
            st.switch_page("pages/head.py")
        them = "it" if len(heads) == 1 else "them"
        st.button(f"Switch {them} on again", key="restore", on_click=_restore, args=(mask, heads))


def moved_sentence(found: Moved, labels: Sequence[str]) -> str:
    """Which single head, switched on again, brings the probability closest to the full model's."""
    was = f"{labels[found.target]} {found.masked:.2f}"
    if found.head is None:
        return f"No single head brings {was} closer to the full model's {found.full:.2f}."
    return (
        f"With {found.head} on again, {was} becomes {found.back:.2f} (full model {found.full:.2f}); no other single "
        "head comes closer."
    )


def sentence(result: Restored, labels: Sequence[str]) -> str:
    """Which heads bring the answer back, and whether fewer would do."""
    *rest, last = map(str, result.heads)
    names = f"{', '.join(rest)} and {last}" if rest else last
    if len(result.heads) == 1:
        return f"With {names} on again, the answer is {labels[result.full]} again; this one head is enough."
    sure = (
        "no smaller set of heads is enough"
        if result.smallest
        else f"none of them can be left out, but a smaller set of other heads may exist ({result.trials} sets tried)"
    )
    return f"With {names} on again, the answer is {labels[result.full]} again; {sure}."


def _select(dotted: str) -> None:
    state.update(head=dotted)
    st.session_state["go_head"] = True


def _restore(mask: HeadMask, heads: Sequence[HeadId]) -> None:
    state.set_mask(mask.with_(heads))
