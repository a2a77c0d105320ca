"""Analyses: published questions asked of this model and these data."""

import streamlit as st

from headviz.ui import analyses, frame, loaders, state

view = frame.begin()
st.title("Analyses")
clf, data = loaders.classifier(view), loaders.dataset(view)
names = list(analyses.ANALYSES)
if frame.controls():
    name = state.switch(
        "analysis",
        "Analysis",
        names,
        format_func=lambda n: analyses.ANALYSES[n].title,
        label_visibility="collapsed",
    )
else:
    name = view.analysis if view.analysis in names else names[0]
st.subheader(analyses.ANALYSES[name].title)
analyses.section(name, analyses.Bench(clf, data, view))
frame.recipe(*analyses.recipe(view, name))
