"""Opening a page in AppTest: pages of headviz are files, pages that came through the plugins' door are functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streamlit.util import calc_hash


def switch(app: Any, page: str) -> Any:
    """``app.switch_page`` for a page by its name."""
    if (Path(app._script_path).parent / "pages" / f"{page}.py").is_file():
        return app.switch_page(f"pages/{page}.py")
    app._page_hash = calc_hash(page)
    return app
