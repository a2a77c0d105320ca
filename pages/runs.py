"""Runs: prune in the background, watch it happen, take the result along."""

import streamlit as st

from headviz.errors import RunError
from headviz.ui import frame, runsview, show

view = frame.begin()
st.title("Runs")
runs = runsview.overview()
ids = runsview.known_ids(view.run, runs)
if frame.controls():
    left, right = st.columns([2, 5], gap="large")
    with left, st.container(border=True):
        st.subheader("Start a run")
        runsview.start_form(view)
else:
    right = st.container()
with right:
    try:
        runsview.require_none(ids, view.run)
    except RunError as wrong:
        st.warning(show.plain(str(wrong)))
    if not runs:
        st.info("No run yet. Start one: it goes on when this page is closed.", icon=":material/play_circle:")
    elif frame.controls():
        runsview.run_list(runs)
    if ids:
        runsview.watch(ids)
frame.recipe(*runsview.recipe(view))
