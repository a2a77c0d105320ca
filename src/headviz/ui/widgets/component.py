"""Loads the project's own components, each one JavaScript file and one style sheet beside this file."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

_HERE = Path(__file__).parent


@cache
def component(name: str) -> Any:
    """The component of ``name.js`` and ``name.css``, inline, so that the page makes no further request."""
    return st.components.v2.component(
        f"headviz_{name}",
        css=(_HERE / f"{name}.css").read_text(encoding="utf-8"),
        js=(_HERE / f"{name}.js").read_text(encoding="utf-8"),
    )
