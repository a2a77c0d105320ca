"""Runs: prune in the background, watch the progress, save the result."""

import streamlit as st

from headviz.ui.pages.runs import detail, listing, run_form
from headviz.ui.shell import frame
from headviz.ui.shell.messages import plain

view = frame.begin()
archived = bool(st.session_state.get("runs_archived")) and frame.controls()
runs = listing.overview(archived=archived)
chosen = listing.existing_ids(view.run, runs) or listing.existing_ids(view.run, listing.overview(archived=not archived))
planned = run_form.new(view, first=not runs and not chosen) if frame.controls() else None
if view.run and not chosen:
    missing = f"There is no run {view.run[:40]}. It may have been deleted. The newest run is shown."
    st.warning(plain(missing), icon=":material/search_off:")
ids = chosen or [r.record.id for r in runs[:1]]
run = None
if not ids and not archived:
    st.info("No runs yet. Plan one above. It continues when you close this page.", icon=":material/play_circle:")
if frame.controls():
    left, right = st.columns([4, 11], gap="large")
    with left:
        if runs:
            listing.choose_run(runs, ids[0] if ids else "")
        elif archived:
            st.caption("No archived runs.")
        st.toggle("Archived runs", key="runs_archived")
        listing.choose_priority()
else:
    right = st.container()
if ids:
    with right:
        run = detail.watch(ids)
frame.recipe(*(planned or detail.recipe_of_tab() or listing.recipe(view, run)))
