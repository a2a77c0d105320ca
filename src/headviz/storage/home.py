"""The folder for everything that headviz writes: one per user or checkout, private to its owner."""

import os
import sys
from pathlib import Path

from .paths import outside_path

VARIABLE = "HEADVIZ_HOME"
ROOTS = "HEADVIZ_ROOTS"  # folders that the dashboard may read, separated like PATH
START = "HEADVIZ_START"  # the query of what the dashboard's plain address opens


def home() -> Path:
    """``$HEADVIZ_HOME``, else the checkout's ``cache/``, else the user's cache folder.

    The folder is not created here. It must be on a local disk: SQLite's locks fail on network file systems.
    """
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return outside_path(chosen, VARIABLE, look=False).absolute()
    checkout = Path(__file__).resolve().parents[3]
    if (checkout / "pyproject.toml").is_file() and (checkout / "cache").is_dir():
        return checkout / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "headviz"
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA", str(Path.home()))) / "headviz" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headviz"
