"""The parts of the Compare page: one text answered under several masks, and which heads make the difference."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from ....display.figures import maps as charts_maps
from ....display.figures.answers import probabilities
from ....errors import UserError
from ....heads import HeadMask
from ...parts import first_mask as firstmask
from ...parts import remarks, texts
from ...parts.answers import NEAR, doubt
from ...parts.texts import Text
from ...shell import jobs, loaders, memo, show, state
from ..masklab.wording import heads_said
from . import attention_shift as moved
from . import many_texts as many
from . import which_head as culprit
from .answering import Column, answers, columns

if TYPE_CHECKING:
    from ....attribution.tokens import TokenAttributions
    from ....models.classifier import Classifier
    from ....tasks import Dataset

__all__ = ["columns", "section"]

ACROSS = 4  # answers in one row


def section(clf: Classifier, data: Dataset, shown: Text, given: Sequence[Column]) -> None:
    """Everything about one text, then several texts at once."""
    controls = not state.view().present
    if shown.empty:
        st.info(texts.EMPTY, icon=":material/edit:")
        if controls:
            many.section(clf, data, given)
        return
    try:
        found = answers(shown, given)
    except UserError as wrong:
        show.refused(wrong, "warning")
    else:
        for remark in remarks.about(clf, shown):
            st.info(show.plain(remark))
        if not shown.own and (said := loaders.mismatch(clf, data)):
            st.info(show.plain(f"The example's label does not apply to this model. {said}"))
        if state.mask(clf.present).off and clf.answer.decides:
            show.finding(finding(clf, given[1].mask, found[0], found[1]))
        verdicts(clf, given, found)
        if state.mask(clf.present).off:
            culprit.section(clf, shown, found)
        elif len(given) == 1:
            firstmask.offer(clf.present, shown.slice)
        tokens(clf, shown, given)
        if state.mask(clf.present).off and _wanted(
            "shift", "Where attention moved", "Shows where each head looks elsewhere under the mask"
        ):
            moved.section(clf, shown)
    if controls:
        many.section(clf, data, given)


def finding(clf: Classifier, mask: HeadMask, before: np.ndarray, after: np.ndarray) -> str:
    """What switching off the heads of the mask does to the answer."""
    off = [h for h in mask.off if h not in clf.present.off]
    names = heads_said(off, loaders.rows_of(clf))
    was, now = int(before.argmax()), int(after.argmax())
    first, last = f"{clf.labels[was]} {before[was]:.2f}", f"{clf.labels[now]} {after[now]:.2f}"
    chance = 1 / len(after)
    if not doubt(list(before)) and max(after) < chance + NEAR:
        lost = f"{first} goes to {last}"
        if was == now:
            lost = f"{clf.labels[was]} falls from {before[was]:.2f} to {after[now]:.2f}"
        return f"Without {names} the model no longer knows: {lost}, near chance ({chance:.2f} each)."
    if was != now:
        return f"Without {names} the answer changes: {first} becomes {last}."
    return f"Without {names} the answer stays {clf.labels[now]} ({before[now]:.3f} → {after[now]:.3f})."


def verdicts(clf: Classifier, given: Sequence[Column], found: Sequence[np.ndarray]) -> None:
    """The answer of each column with its change marked, and the probabilities as bars."""
    first, named = found[0], clf.answer.told(found[0], clf.labels)[0][0] != ""
    for at, (column, values) in enumerate(zip(given, found, strict=True)):
        if at % ACROSS == 0:
            boxes = st.columns(min(ACROSS, len(given)))
        with boxes[at % ACROSS], st.container(border=True, gap="xsmall", height="stretch"):
            st.caption(show.plain(column.name))
            if not named:
                st.markdown(f"### {show.number(float(values[0]))}")
                st.caption(f"{show.signed(float(values[0] - first[0]))} against the full model")
                continue
            now, was = (clf.answer.told(one, clf.labels) for one in (values, first))
            st.markdown(f"### {show.plain(', '.join(f'{name} {share:.3f}' for name, share in now))}")
            if dict(now).keys() != dict(was).keys():
                st.markdown(f":orange[**← changed** from {show.plain(', '.join(name for name, _ in was))}]")
            elif column is not given[0]:
                st.caption(same_answer(max((a - b for (_, a), (_, b) in zip(now, was, strict=True)), key=abs)))
            unsure = doubt(list(values), before=None if column is given[0] else list(first))
            if clf.answer.decides and unsure:
                st.caption(show.plain(unsure))
    if named:
        show.figure(
            probabilities(
                [(c.name, [float(v) for v in values]) for c, values in zip(given, found, strict=True)], clf.labels
            ),
            "compare_bars",
            "The probability that each model gives to each class for this text.",
            formula=clf.answer.formula,
        )


def same_answer(change: float) -> str:
    """How far the probability of an unchanged answer moved."""
    if not change:
        return "same answer, same probability"
    if abs(change) < 0.0005:
        return f"same answer, less than 0.1 points {'more' if change > 0 else 'less'} likely"
    return f"same answer, probability {show.points(change, 100)} points"


def tokens(clf: Classifier, shown: Text, given: Sequence[Column]) -> None:
    """How much each token speaks for the answer, in every column, on one colour scale."""
    if not clf.answer.explains or not _wanted("tokens", "Token attributions", "Which words speak for the answer"):
        return
    texts = (shown.text, shown.pair)
    found = []
    for column in given:
        key = (*memo.identity(column.clf), "tokens", *texts, column.mask.hex)
        one = jobs.need(key, f"Attributing tokens: {column.name}", partial(_tokens, column, shown))
        if one is None:
            return
        found.append(one)
    rows = [(c.name, one.target_label, one.values) for c, one in zip(given, found, strict=True)]
    show.figure(
        charts_maps.token_rows(rows, found[0].tokens),
        "compare_tokens",
        "How much each token speaks for (blue) or against (orange) each model's own answer, on one colour scale.",
        formula=r"(x - x') \cdot \int_0^1 \nabla F(x' + a(x - x'))\,da",
        source="Integrated gradients on the word embeddings, from padding to the input (Captum).",
        wide="40" if len(found[0].tokens) <= 24 else "64",
    )


def _wanted(name: str, label: str, help: str) -> bool:
    """Whether the reader wants this part; a presentation hides the switch."""
    view = state.view()
    return bool(getattr(view, name)) if view.present else state.tick(name, label, help=help)


def _tokens(column: Column, shown: Text, progress: jobs.Progress, cancel: jobs.Cancel) -> TokenAttributions:
    from ....attribution.tokens import token_attributions

    mask = column.mask if column.mask.off else None
    return token_attributions(column.clf, shown.text, shown.pair, mask=mask)
