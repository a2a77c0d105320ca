"""The project's own components: Python, JavaScript and style sheet side by side."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

_HERE = Path(__file__).parent


@cache
def component(name: str) -> Any:
    """The component of ``name.js`` and ``name.css``, inline, so that the page makes no further request."""
    code = _short("shared.js") + "\n" + _short(f"{name}.js")
    return st.components.v2.component(f"headviz_{name}", css=_short(f"{name}.css"), js=code)


def _short(file: str) -> str:
    """The file without its comment lines and indents, because each message to the browser carries it."""
    lines = (line.strip() for line in (_HERE / file).read_text(encoding="utf-8").splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))
