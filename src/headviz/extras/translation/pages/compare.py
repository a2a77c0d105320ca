"""Compare for translation models: one sentence translated by the full model and under masks, changes marked."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

import streamlit as st

import headviz

from ....display.table import Table
from ....heads import HeadMask
from ....ui.pages.compare import answers
from ....ui.parts import measure, texts
from ....ui.parts.texts import Text
from ....ui.shell import jobs, loaders, recipes, show, state
from ....ui.shell.messages import plain
from ....ui.shell.view import View
from ..tasks import word_list

if TYPE_CHECKING:
    from ..translator import Translator


TASK = "demo-translation"
ABOUT = (
    "Veshan is an invented, perfectly regular language: nobody knows it, so every word that is right the model has "
    "learnt from its examples. Each noun has one of three genders, which shows in its article and adjectives only."
)


def draw(view: View, clf: Translator, shown: Text) -> tuple[str, str]:
    """The page for one sentence; gives its recipe in Python and as a command."""
    if view.model == TASK and view.task == TASK and not view.data and not view.present:
        st.caption(ABOUT, help=plain(word_list_text()))
    if shown.empty:
        st.info(texts.EMPTY, icon=":material/edit:")
    else:
        section(clf, shown)
    return recipe(state.view(), clf, shown)


def translations(clf: Translator, text: str, masks: Sequence[HeadMask]) -> list[str] | None:
    """The translation under each mask, or None while progress is shown on the page."""

    def work(progress: jobs.Progress, cancel: jobs.Cancel) -> list[str]:
        out = []
        for done, mask in enumerate(masks, 1):
            translations, _ = headviz.translate(clf, [text], mask, cancel=cancel)
            out.append(translations[0])
            progress(done, len(masks))
        return out

    key = (*loaders.identity(clf), "translations", text, tuple(m.hex for m in masks))
    return jobs.need(key, "Translating", work)


def words(first: str, other: str) -> list[tuple[str, bool]]:
    """The other translation's words, and whether each is new against the first."""
    a, b = first.split(), other.split()
    new = [True] * len(b)
    for block in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks():
        for i in range(block.b, block.b + block.size):
            new[i] = False
    return list(zip(b, new, strict=True))


def section(clf: Translator, shown: Text) -> None:
    """The translation of every column, and the reference if the sentence is an example of the data."""
    if not shown.text.strip():
        st.info("Write a sentence to translate.", icon=":material/edit:")
        return
    columns = answers.masks(clf)
    texts = boxes(clf, shown, columns)
    if texts is None:
        return
    if len(columns) == 1:
        answers.offer_mask(clf.present)
    rows = [[name, text] for (name, _), text in zip(columns, texts, strict=True)]
    show.table(Table("translations", ("model", "translation"), rows, "Greedy translations of this sentence."))


def before_and_after(clf: Translator, shown: Text) -> None:
    """The translation with all heads, and under the current mask."""
    boxes(clf, shown, answers.masks(clf)[: 2 if state.mask(clf.present).off else 1])


def boxes(clf: Translator, shown: Text, columns: Sequence[tuple[str, HeadMask]]) -> list[str] | None:
    """The translation of every column in a box, and the reference of an example; None while they are computed."""
    texts = translations(clf, shown.text, [mask for _, mask in columns])
    if texts is None:
        return None
    for (name, _), text in zip(columns, texts, strict=True):
        with st.container(border=True):
            st.caption(plain(name))
            st.markdown("#### " + marked(texts[0], text))
            if text != texts[0]:
                changed = sum(new for _, new in words(texts[0], text))
                marks = f"{changed} word{'' if changed == 1 else 's'} changed, marked in orange and underlined"
                st.caption(marks if changed else "no new word: words are left out or stand elsewhere")
            elif name != columns[0][0]:
                st.caption("the same translation")
    if not shown.own and shown.pair:
        st.markdown(f"Reference: {plain(shown.pair)}")
    return texts


def marked(first: str, other: str) -> str:
    """The other translation as markdown, its new words marked."""
    return " ".join(f":orange[__{plain(word)}__]" if new else plain(word) for word, new in words(first, other))


def recipe(view: View, clf: Translator, shown: Text) -> tuple[str, str]:
    mask = state.mask(clf.present)
    lines = (
        recipes.HEADVIZ,
        recipes.load(view),
        *recipes.model_filled(view, measure.stand_in_of_model(mask))[0],
        recipes.mask_of(mask),
        f"print(headviz.translate(clf, {[shown.text]!r}, mask))",
    )
    return "\n".join(lines), ""  # no command translates one sentence


def word_list_text() -> str:
    """Veshan words and their meaning, one kind of word after the other."""
    kinds = {kind: ", ".join(map(" ".join, words)) for kind, words in word_list().items()}
    return "; ".join(f"{kind}: {words}" for kind, words in kinds.items())
