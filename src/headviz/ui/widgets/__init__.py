"""The project's own components: Python, JavaScript and style sheet side by side."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from ...storage.tables import figure_tex

_HERE = Path(__file__).parent
PICTURES = ("tools", "grid", "maps", "playback")  # components that save pictures
WITH_GRID = ("playback",)  # components that draw the grid of heads by ``drawGrid``


@cache
def component(name: str) -> Any:
    """The component of ``name.js`` and ``name.css``, inline, so that the page makes no further request.

    Its data go in a tuple, which Streamlit sends as it is; in a dict it looks for tables and imports pandas for that.
    Bytes go as they are.
    """
    code, style = _minified("shared.js"), _minified(f"{name}.css")
    if name in PICTURES:
        code += "\n" + _minified("export.js")
    if name in WITH_GRID:
        code += "\n" + _minified("grid.js").replace("export default function", "const drawGrid = function")
        style += "\n" + _minified("grid.css")
    code += "\n" + _minified(f"{name}.js").replace("export default function", "const drawWidget = function")
    code += "\nconst unpacked = (data) => (Array.isArray(data) ? data[0] : data);"
    code += "\nexport default (given) => drawWidget({ ...given, data: unpacked(given.data) });"
    mount = st.components.v2.component(f"headviz_{name}", css=style, js=code)
    return lambda data, **options: mount(data=data if isinstance(data, bytes) else (data,), **options)


def words_of_file(file: str, caption: str) -> dict[str, str]:
    """What is written next to a saved picture: its name, its caption as text, and the LaTeX that includes it."""
    file = file.replace("_", "-")
    return {"file": file, "caption": caption, "tex": figure_tex(file, caption)}


def last_edit(key: str) -> int:
    """The number of the last edit that this session has taken from the component ``key``.

    It begins with the present time, so that a component which outlives its server shows what the new server has.
    """
    number: int = st.session_state.setdefault(f"{key}__seq", time.time_ns() // 1_000_000)
    return number


def next_edit(key: str) -> dict[str, Any] | None:
    """The edit that the component has sent, or None if the session has taken it already."""
    sent: dict[str, Any] | None = st.session_state[key].get("edit")
    if not sent or int(sent["seq"]) <= last_edit(key):
        return None
    st.session_state[f"{key}__seq"] = int(sent["seq"])
    return sent


def _minified(file: str) -> str:
    """The file without its comment lines and indents, because each message to the browser carries it."""
    lines = (line.strip() for line in (_HERE / file).read_text(encoding="utf-8").splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))
