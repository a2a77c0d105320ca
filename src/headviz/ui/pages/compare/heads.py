"""On Compare: which of the masked heads changed the answer, and which of the others look elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from ....display.figures import maps
from ....heads import HeadId, HeadMask, highest
from ...parts.texts import Text
from ...shell import jobs, loaders, show, state
from ...shell.messages import plain
from ...widgets.grid import Look

if TYPE_CHECKING:
    from ....answers.answer import Answer
    from ....attribution.text_under_mask import Moved, Restored
    from ....models.classifier import Classifier

# ---- which head did it

MOVED = 0.05  # change of a probability from which the page asks which head makes it


def which_head(clf: Classifier, answer: Answer, shown: Text, logits: Sequence[np.ndarray]) -> None:
    """'Which head did it?' for the current mask."""
    mask = state.mask(clf.present)
    if not answer.flips:
        return
    full, masked = logits[:2]
    flipped = dict(answer.shares(full, clf.labels)).keys() != dict(answer.shares(masked, clf.labels)).keys()
    outputs = int(full.argmax()) if answer.decides else slice(None)
    if not flipped and float(np.abs(full[outputs] - masked[outputs]).max()) <= MOVED:
        st.caption("The mask does not change this answer. Change a word, or switch off more heads.")
        return
    key = (*loaders.identity(clf), "which", shown.text, shown.pair, mask.hex)
    question = "Which head did it?" if flipped else "Which head moves it most?"
    if not state.view().present and st.button(question, type="primary", key="which", icon=":material/search:"):
        st.session_state["which_asked"] = key
    if st.session_state.get("which_asked") != key:
        return
    from ....attribution.text_under_mask import which_heads, which_moves

    arguments = (clf, shown.text, shown.pair, mask)
    if flipped:
        result = jobs.need(key, "Searching", lambda p, c: which_heads(*arguments, answer=answer, progress=p, cancel=c))
        if result is not None:
            _show(sentence(result, answer.label(result.full, clf.labels)), result.heads, mask)
        return
    moved = jobs.need(key, "Trying every head", lambda p, c: which_moves(*arguments, progress=p, cancel=c))
    if moved is not None:
        _show(moved_sentence(moved, clf.labels), [] if moved.head is None else [moved.head], mask)


def _show(sentence: str, heads: Sequence[HeadId], mask: HeadMask) -> None:
    """The answer, and buttons to look at the heads or switch them on again."""
    st.success(plain(sentence), icon=":material/lightbulb:")
    if not heads or state.view().present:
        return
    with st.container(horizontal=True):
        for h in heads[:8]:
            st.button(plain(f"Look at {h}"), key=f"open_{h.dotted}", on_click=_open_head, args=(h.dotted,))
        if st.session_state.pop("go_head", False):
            st.switch_page("pages/head.py")
        pronoun = "it" if len(heads) == 1 else "them"
        st.button(f"Switch {pronoun} on again", key="restore", on_click=state.set_mask, args=(mask.with_(heads),))


def moved_sentence(moved: Moved, labels: Sequence[str]) -> str:
    """Which single head, switched on again, brings the probability closest to the full model's."""
    masked = f"{labels[moved.target]} {moved.masked:.2f}"
    if moved.head is None:
        return f"No single head brings {masked} closer to the full model's {moved.full:.2f}."
    return (
        f"With {moved.head} on again, {masked} becomes {moved.back:.2f} (full model {moved.full:.2f}); no other single "
        "head comes closer."
    )


def sentence(result: Restored, answer: object) -> str:
    """Which heads bring the answer back, and whether fewer would do."""
    *first, last = map(str, result.heads)
    names = f"{', '.join(first)} and {last}" if first else last
    if len(result.heads) == 1:
        return f"With {names} on again, the answer is {answer} again; this one head is enough."
    how_sure = (
        "no smaller set of heads is enough"
        if result.smallest
        else f"none of them can be left out, but a smaller set of other heads may exist ({result.trials} sets tried)"
    )
    return f"With {names} on again, the answer is {answer} again; {how_sure}."


def _open_head(dotted: str) -> None:
    state.update(head=dotted)
    st.session_state["go_head"] = True


# ---- where attention moved

LEAST = 0.005  # share of the attention that moves, below which it reads 0 %


def shift(clf: Classifier, shown: Text) -> None:
    """How much of each head's attention has moved, and one head's change for every connection."""
    from ....attribution.text_under_mask import attention_shift

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
        st.markdown(f"**Attention moves most in {plain(str(top))}: {moved_most}.**")
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
        )
    with right:
        if chosen is None or not np.isfinite(values[chosen]):
            st.info("No head remains whose attention could move.")
        else:
            _change_map(clf, shown, mask, chosen)


def _change_map(clf: Classifier, shown: Text, mask: HeadMask, head: HeadId) -> None:
    """The change of one head's map, and its largest change in words."""
    from ....attribution.text_under_mask import attention_of

    tokens, before = attention_of(clf, shown.text, shown.pair, clf.full_mask, head)
    _, after = attention_of(clf, shown.text, shown.pair, mask, head)
    st.markdown(f"**{plain(largest_change(head, tokens, before, after))}**")
    show.figure(
        maps.matrix(after - before, tokens, tokens, "change", signed=True),
        "shift_map",
        f"How the mask changes the attention of {head}: blue = more, orange = less. Each row sums to 0.",
        formula=r"A'_{ij} - A_{ij}",
        source="Attention under the mask minus that of the full model. Rows are queries, columns keys.",
    )


def largest_change(head: HeadId, tokens: Sequence[str], before: np.ndarray, after: np.ndarray) -> str:
    """The connection that changes most, in words."""
    query, key = (int(i) for i in np.unravel_index(np.abs(after - before).argmax(), before.shape))
    full, masked = float(before[query, key]), float(after[query, key])
    if abs(masked - full) < 0.005:
        return f"{head} looks where it looks without the mask."
    change = "more" if masked > full else "less"
    return (
        f"{head}: {_token_name(tokens, query)} looks {change} at {_token_name(tokens, key)} than without the mask, "
        f"{masked:.2f} instead of {full:.2f}."
    )


def _token_name(tokens: Sequence[str], i: int) -> str:
    """A token's text; if it occurs several times, with its number."""
    token, count = tokens[i], tokens.count(tokens[i])
    return f"“{token}”" if count == 1 else f"“{token}” ({tokens[: i + 1].count(token)} of {count})"
