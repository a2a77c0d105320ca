"""Data & model: the current model and data, and forms to choose others."""

import streamlit as st

from headviz.errors import UserError
from headviz.ui.pages.data import (
    card,
    data_card,
    data_form,
    finetuning_form,
    job_of,
    latest,
    lengths,
    misfit,
    model_form,
    named_classes,
    picker,
    recipe,
    upload_form,
)
from headviz.ui.parts import abilities
from headviz.ui.shell import frame, kept, loaders, state
from headviz.ui.shell.messages import refused

view = frame.begin()
left, right = st.columns(2, gap="large")
clf = data = None
with left:
    st.subheader("Model")
    if frame.controls():
        picker(view)
        with st.expander("Another model: hub id, folder, revision, device", key="model_box"):
            model_form(view)
    try:
        loaded = loaders.model(view)
        card(loaded)
        clf = loaded  # one without heads has no card, and nothing below is about it
        named_classes(view)
        job_of(view, loaded)
    except UserError as error:
        refused(error)
        frame.offer_training(error)
with right:
    st.subheader("Data")
    if frame.controls():
        tabs = state.tabs(("Task", "Upload"), "data_tabs")
        with tabs[0]:
            data_form(view)
        with tabs[1]:
            upload_form(view, clf)
    try:
        data = loaders.dataset(view)
        if clf is not None and (mismatch := loaders.mismatch(clf, data)):
            misfit(view, clf, data, mismatch)
        data_card(data)
    except UserError as error:
        refused(error)
if frame.controls():
    with st.expander("Fine-tune a base model on these data", icon=":material/model_training:",
                     key="tune_box", on_change="rerun") as box:  # fmt: skip
        if box.open:
            finetuning_form(view)
    latest(view)
if clf is not None:
    abilities.table(clf, view)
if clf is not None and data is not None:
    st.subheader("Lengths")
    lengths(clf, view, data)
kept.section()
frame.recipe(*recipe(view))
