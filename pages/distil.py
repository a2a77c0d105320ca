"""Distil: take a part out of the model and train students in its place, from several starts."""

import streamlit as st

from headviz.scores.catalogue import names_for
from headviz.ui.pages.distil import form as distilform
from headviz.ui.pages.distil import results as distil
from headviz.ui.pages.masklab import board
from headviz.ui.parts import scoring
from headviz.ui.shell import frame, loaders

view = frame.begin()
shape = None if distilform.recurrent(view) else loaders.shape(view)
st.title("Distil")
found, plan = distil.runs(), None
if frame.controls():
    left, right = st.columns([5, 6], gap="large")
    with left:
        if shape is None:
            st.caption(
                "A recurrent translator has one attention and no heads. It is removed as a whole: students read the "
                "mean of the encoder's states instead."
            )
        else:
            st.caption("Heads that are switched off here are removed for good; students learn to do without them.")
            board.toolbar(shape.present, scoring.known(view), names_for(shape.translates))
            board.grid(shape.present, scoring.known(view), scoring.tips(view), rows=shape.rows)
        with st.container(border=True):
            plan = distilform.start_form(view, shape)
else:
    right = st.container()
with right:
    if found:
        distil.watch(distil.chooser(found, view))
    else:
        st.info(
            "No distillation yet. Choose what to remove and start one: it goes on when this page is closed.",
            icon=":material/science:",
        )
    distil.published()
if plan is not None:
    frame.recipe(*distilform.recipe(plan))
