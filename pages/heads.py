"""Heads: every head's score at one glance."""

import streamlit as st

from headviz.ui import frame, headgrid, loaders, show, state

view = frame.begin()
st.title("Heads")
shape = loaders.shape(view)
if frame.controls():
    headgrid.controls(view, shape)
    view = state.view()
found = headgrid.tables(view)
ready = {name: table for name, table in found.items() if table is not None}
if not ready:
    st.info(
        "This score has not been computed for this model and task yet.", icon=":material/hourglass_empty:"
    )
    headgrid.grids_empty(shape)
else:
    shown = {name: table.values for name, table in ready.items()}
    if view.weights == "difference" and len(shown) == 2:
        shown["difference"] = shown["fine-tuned"] - shown["pre-trained"]
    main = list(ready.values())[-1]
    show.finding(headgrid.finding(main, main.values, view, shape))
    if len(shown) == 1:
        left, right = st.columns([5, 4], gap="large")
    else:
        left = right = st.container()
    with left:
        headgrid.grids(shown, main, shape, view)
        show.note(
            f"{view.score} of every head: layers down, heads across; high = keep.",
            formula=headgrid.FORMULAS[view.score],
            source=headgrid.source(view.score),
            key="heads",
            saves=False,
        )
        headgrid.status(main, view)
    with right:
        headgrid.card(main, shape)
        headgrid.detail(shown, main, shape, view)
frame.recipe(*headgrid.recipe(view))
