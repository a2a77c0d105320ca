"""Workbench: a text and its answers, the grid of heads that switches them off, and what that costs."""

import streamlit as st

from headviz.ui.pages import workbench
from headviz.ui.pages.compare import answers
from headviz.ui.parts import measure, story, texts
from headviz.ui.shell import frame, loaders

view = frame.begin()
shape, data = loaders.shape(view), loaders.dataset(view)
workbench.lead(shape, data)
with st.container(key="bench"):
    with st.container(key="boards"):
        workbench.boards(view, shape, data)
    with st.container(key="beside"):
        clf = loaders.model(view)
        filled = measure.filled(clf)
        shown = texts.of_page(data, "bench_text", fields=frame.controls())
        frame.part(frame.MASK, lambda: workbench.result(clf, filled, data, shown), "mask", "head", follows=True)
        if frame.controls():
            measure.precision(clf)
            workbench.abilities_section(clf, data)
        workbench.panel(clf, shown)
if frame.controls():
    story.step_buttons()
workbench.work_ahead(clf, data)
frame.recipe(*answers.recipe(view, clf, shown))
