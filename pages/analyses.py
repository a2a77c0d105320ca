"""Analyses: questions of published papers, answered for this model and these data."""

import streamlit as st

from headviz.tasks import TASKS
from headviz.ui.pages import analyses
from headviz.ui.parts import result_bar
from headviz.ui.shell import frame, loaders

view = frame.begin()
names, others = analyses.offered(loaders.shape(view).answer)
if frame.controls():
    name = analyses.choose(names)
else:
    name = view.analysis if view.analysis in names else names[0]
clf, data = loaders.model(view), loaders.dataset(view)
loaders.check(clf, data)
result_bar.of_page()
analyses.section(name, clf, data)
if frame.controls():
    analyses.elsewhere(others)
    if loaders.shape(view).labels and "demo-translation" in TASKS:
        st.button(
            "Analyses of the translation demo",
            key="translation_demo",
            icon=":material/translate:",
            type="tertiary",
            on_click=frame.take_demo,
            args=("demo-translation",),
        )
frame.recipe(*analyses.recipe(view, name, clf.present, clf.max_length))
