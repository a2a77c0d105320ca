"""What the outputs of a model mean, where its configuration has only numbers: asked beside data that name classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from ....answers.class_names import match_names
from ....models.named import NAMED
from ...shell import frame, show, state
from ...shell.view import FIELDS, View

if TYPE_CHECKING:
    from ....models.base import Model
    from ....tasks import Dataset


def misfit(view: View, clf: Model, data: Dataset, said: str) -> None:
    """A warning that model and data do not fit, and where names may help, lists for them; before a task was chosen,
    only what to do next.
    """
    if not (view.task != FIELDS["task"] or view.data or view.model in NAMED):
        st.info("Choose the task that this model was trained for, or upload its data.", icon=":material/database:")
        return
    st.warning(show.plain(f"Model and data do not match. {said}"), icon=":material/warning:")
    own, names = clf.classes or (), data.label_names
    unnamed = 2 <= len(names) == len(own) and match_names(names, own) is None
    if unnamed and "," not in "".join(names) and frame.controls():
        _name_classes(own, names)


def _name_classes(own: Sequence[str], names: Sequence[str]) -> None:
    """Lists that say what each output of the model means."""
    meant = [
        st.selectbox(show.plain(f"Output {i}, {name}, means"), names, i, key=f"name_{i}") for i, name in enumerate(own)
    ]
    st.caption("The model card says it. In a wrong order a good model has most answers wrong.")
    st.button(
        "Use these names",
        key="use_names",
        type="primary",
        disabled=len(set(meant)) < len(meant),  # each class belongs to one output
        on_click=state.update,
        kwargs={"classes": ",".join(meant)},
    )


def named(view: View) -> None:
    """That the names of the classes are the user's, and the way back."""
    if view.classes:
        st.caption(show.plain(f"You named the outputs: {', '.join(view.class_names or ())}."))
        if frame.controls():
            st.button("Use the model's own names", key="own_names", on_click=state.update, kwargs={"classes": ""})
