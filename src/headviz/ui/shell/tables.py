"""Tables of the dashboard that plugins add to. Read without streamlit."""

from __future__ import annotations

from ... import plugins
from ...plugins import Tab

TABS: dict[str, Tab] = plugins.table("tabs", ())
