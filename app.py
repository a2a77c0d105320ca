"""The dashboard: ``streamlit run app.py`` or ``headviz serve``. ``headviz.ui.shell.frame`` lists the pages."""

from pathlib import Path

import streamlit as st

from headviz.ui.shell import guard

if guard.in_session():  # streamlit runs this file for each visit to a page
    from headviz.ui.shell import frame

    frame.run()
else:  # and once before, when the server starts
    from headviz.ui.shell.address import addressed

    guard.begin()
    pages = [page.stem for page in (Path(__file__).parent / "pages").glob("*.py")]
    app = st.App(__file__, middleware=[*guard.MIDDLEWARE, addressed(pages)])
