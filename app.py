"""The dashboard: ``streamlit run app.py`` or ``headviz serve``. ``headviz.ui.shell.frame`` lists the pages."""

import streamlit as st

from headviz.ui.shell import server

if server.in_session():  # streamlit runs this file for each visit to a page
    from headviz.ui.parts import palette, story
    from headviz.ui.shell import frame

    frame.run(story.step_bar, palette.search)
else:  # and once before, when the server starts
    from headviz.ui.shell.view import PAGES

    server.begin()
    app = st.App(__file__, middleware=server.middleware(PAGES))
