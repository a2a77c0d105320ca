"""A second model on Compare, such as a pruned copy or another checkpoint."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from ....answers.class_names import is_generic
from ....errors import ModelError, UserError
from ...shell import loaders, show, state
from ...shell.view import View

if TYPE_CHECKING:
    from ....models.classifier import Classifier


def load(view: View, like: Classifier) -> Classifier | None:
    """The view's second model, or None. It must answer with the same classes."""
    if not view.other:
        return None
    other = view.of_model(view.other)
    if is_generic(loaders.shape(other).labels):  # a pruned copy, say, whose outputs mean the same
        other = replace(other, classes=view.classes)
    clf = loaders.classifier(other)
    if clf.labels != like.labels:
        raise ModelError(
            f"'{view.other}' has the classes {', '.join(clf.labels)}; '{like.name}' has {', '.join(like.labels)}. "
            "Compare models that have the same classes in the same order."
        )
    return clf


def chooser(like: Classifier) -> Classifier | None:
    """A field for the second model. An error appears beside it, and the page goes on without that model."""
    with st.popover("Another model"):
        state.text(
            "other",
            "Model to compare with",
            placeholder="a folder with a pruned model, or a hub id",
            help="For example the folder that `headviz prune --out` wrote, or a run's saved model",
        )
    try:
        return load(state.view(), like)
    except UserError as wrong:
        show.refused(wrong)
        return None
