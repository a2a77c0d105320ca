"""The invented language of the translation demo: two lines about it, and each word's meaning."""

from __future__ import annotations

import streamlit as st

from ..shell import show
from ..shell.view import View

TASK = "demo-translation"
ABOUT = (
    "Veshan is an invented, perfectly regular language: nobody knows it, so every word that is right the model has "
    "learnt from its examples. Each noun has one of three genders, which shows in its article and adjectives only."
)


def known(view: View) -> bool:
    """Whether the view shows the translation demo and its own data."""
    return view.model == TASK and view.task == TASK and not view.data


def about(view: View) -> None:
    """What the language is; hovering shows the word list."""
    if known(view) and not view.present:
        st.caption(ABOUT, help=show.plain(word_list()))


def word_list() -> str:
    """Veshan words and their meaning, one kind of word after the other."""
    from ...demo import translation

    kinds = {kind: ", ".join(map(" ".join, words)) for kind, words in translation.word_list().items()}
    return "; ".join(f"{kind}: {words}" for kind, words in kinds.items())
