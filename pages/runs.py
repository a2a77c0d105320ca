"""Runs: prune in the background, watch the progress, save the result."""

import streamlit as st

from headviz.errors import RunError
from headviz.ui.pages.runs import detail as rundetail
from headviz.ui.pages.runs import listing as runsview
from headviz.ui.pages.runs import run_form as runforms
from headviz.ui.shell import frame, show

view = frame.begin()
archived = bool(st.session_state.get("runs_archived")) and frame.controls()
runs = runsview.overview(archived=archived)
known = runsview.known_ids(view.run, runs) or runsview.known_ids(view.run, runsview.overview(archived=not archived))
if frame.controls():
    runforms.new(view, first=not runs and not known)
try:
    runsview.require_none(known, view.run)
except RunError as wrong:
    st.warning(show.plain(str(wrong)), icon=":material/search_off:")
ids = known or [r.record.id for r in runs[:1]]
run = None
if not ids and not archived:
    st.info("No runs yet. Plan one above. It continues when you close this page.", icon=":material/play_circle:")
if frame.controls():
    left, right = st.columns([4, 11], gap="large")
    with left:
        if runs:
            runsview.chooser(runs, ids[0] if ids else "")
        elif archived:
            st.caption("No archived runs.")
        st.toggle("Archived runs", key="runs_archived")
        runsview.priority()
else:
    right = st.container()
if ids:
    with right:
        run = rundetail.watch(ids)
frame.recipe(*(rundetail.of_a_tab() or runsview.recipe(view, run)))
