"""Tables of the dashboard that plugins add to. Read without streamlit."""

from __future__ import annotations

from collections.abc import Mapping

from ... import plugins
from ...plugins import Page, Tab

FIRST = "heads"  # the page at /

# in the order of the story; the first is the start page. These are files in pages/.
_PAGES = (
    Page(FIRST, "Heads"),
    Page("head", "One head"),
    Page("masklab", "Mask lab"),
    Page("compare", "Compare"),
    Page("analyses", "Analyses"),
    Page("runs", "Runs", without_data=True),
    Page("data", "Data & model", without_data=True),
)
PAGES: Mapping[str, Page] = plugins.Entries("pages", _PAGES)
TABS: Mapping[str, Tab] = plugins.Entries("tabs", ())
