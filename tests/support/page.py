"""Pages in AppTest: files of headviz, or functions that came through the plugins' door; and what they show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streamlit.util import calc_hash

DEMO = {"model": "demo", "task": "demo", "data": "", "columns": "", "label": "", "groups": ""}


def switch(app: Any, page: str) -> Any:
    """``app.switch_page`` for a page by its name."""
    if (Path(app._script_path).parent / "pages" / f"{page}.py").is_file():
        return app.switch_page(f"pages/{page}.py")
    app._page_hash = calc_hash(page)
    return app


def texts(app: Any) -> str:
    """All that a page says, without Markdown's escapes."""
    kinds = ("title", "subheader", "markdown", "caption", "error", "warning", "info", "success", "code")
    found = [str(e.value) for kind in kinds for e in app.get(kind)]
    return "\n".join([*found, *(e.proto.body for e in app.get("html"))]).replace("\\", "")
