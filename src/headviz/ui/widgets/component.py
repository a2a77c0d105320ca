"""The project's own pieces of page: one JavaScript and one style sheet each, beside this file."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

_HERE = Path(__file__).parent


@cache
def component(name: str) -> Any:
    """The piece made of ``name.js`` and ``name.css``; inline, so that no request leaves the page."""
    return st.components.v2.component(
        f"headviz_{name}",
        css=(_HERE / f"{name}.css").read_text(encoding="utf-8"),
        js=(_HERE / f"{name}.js").read_text(encoding="utf-8"),
    )
