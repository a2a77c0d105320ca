"""Mask lab: switch heads off and see at once what it costs."""

import streamlit as st

from headviz.ui import board, cost, frame, loaders, measure, scoring, state

view = frame.begin()
shape = loaders.shape(view)
st.title("Mask lab")
if frame.controls():
    board.toolbar(shape.present, scoring.known(view), scoring.names(shape.translates))
left, right = st.columns([5, 6], gap="large")
with left:
    board.grid(shape.present, scoring.known(view), scoring.tips(view), rows=shape.rows)
    st.caption(
        "Click switches a head, dragging many, a row or column name all of its heads; a double click solos."
    )
with right:
    clf, data = loaders.classifier(view), loaders.dataset(view)
    found = measure.measured(clf, data, state.mask(clf.present))
    if found is not None:
        cost.headline(clf, data, found)
        cost.by_slice(data, found)
        if frame.controls():
            cost.what_if(clf, data, found)
if found is not None:
    cost.details(clf, data, found)
frame.recipe(*cost.recipe(view, clf, found))
