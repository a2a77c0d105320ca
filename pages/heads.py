"""Heads: every head's score in one grid."""

import streamlit as st

from headviz.scores.catalogue import SCORES
from headviz.ui.pages.heads import difference as tuning
from headviz.ui.pages.heads import grids as headgrid
from headviz.ui.shell import frame, loaders, show, state

view = frame.begin()
st.title("Heads")
headgrid.introduction(view)
shape = loaders.shape(view)
if frame.controls():
    headgrid.controls(view, shape)
    view = state.view()
found = headgrid.tables(view)
ready = {name: table for name, table in found.items() if table is not None}
if not ready:
    none = f"No scores yet: {view.score} has not been computed for this model and task."
    st.info(show.plain(none), icon=":material/info:")
    headgrid.grids_empty(shape)
else:
    measured, main = dict(ready), list(ready.values())[-1]
    if view.weights == "difference" and len(ready) == 2:
        before, after = ready["pre-trained"], ready["fine-tuned"]
        ready["difference"] = tuning.difference(before, after)
        show.finding(tuning.finding(before, after, shape))
    else:
        show.finding(headgrid.finding(main, main.values, view, shape))
    if len(ready) == 1:
        left, right = st.columns([5, 4], gap="large")
    else:
        left = right = st.container()
    with left:
        headgrid.grids(ready, shape, view)
        score = SCORES[view.score]
        show.note(
            f"{view.score} of every head: layers down, heads across. {score.meaning}",
            formula=score.tex,
            source=score.source,
            key="heads",
            saves=False,
        )
        for name, table in measured.items():
            headgrid.status(table, view, headgrid.TITLES[name] if len(measured) > 1 else "")
    with right:
        headgrid.card(ready, shape)
        headgrid.detail(ready, shape, view)
frame.recipe(*headgrid.recipe(view, ready.get("fine-tuned", ready.get("pre-trained"))))
