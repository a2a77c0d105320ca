"""Data & model: the current model and data, and forms to choose others."""

import streamlit as st

from headviz.errors import UserError
from headviz.ui.pages.data import class_names, picker, source
from headviz.ui.pages.data import finetuning as tuned
from headviz.ui.parts import abilities
from headviz.ui.shell import frame, loaders, memory, show, state

view = frame.begin()
left, right = st.columns(2, gap="large")
clf = data = None
with left:
    st.subheader("Model")
    if frame.controls():
        picker.picker(view)
        with st.expander("Another model: hub id, folder, revision, device", key="model_box"):
            source.model_form(view)
    try:
        found = loaders.model(view)
        source.card(found)
        clf = found  # one without heads has no card, and nothing below is about it
        class_names.named(view)
    except UserError as wrong:
        show.refused(wrong)
with right:
    st.subheader("Data")
    if frame.controls():
        tabs = state.tabs(("Task", "Upload"), "data_tabs")
        with tabs[0]:
            source.data_form(view)
        with tabs[1]:
            source.upload_form(view, clf)
    try:
        data = loaders.dataset(view)
        if clf is not None and (said := loaders.mismatch(clf, data)):
            class_names.misfit(view, clf, data, said)
        source.data_card(data)
    except UserError as wrong:
        show.refused(wrong)
if frame.controls():
    with st.expander("Fine-tune a base model on these data", icon=":material/model_training:",
                     key="tune_box", on_change="rerun") as box:  # fmt: skip
        if box.open:
            tuned.form(view)
    tuned.latest(view)
if clf is not None:
    abilities.table(clf, view)
if clf is not None and data is not None:
    st.subheader("Lengths")
    source.lengths(clf, view, data)
st.caption(show.plain(memory.sentence()))
frame.recipe(*source.recipe(view))
