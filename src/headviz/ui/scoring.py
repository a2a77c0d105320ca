"""Head scores for the pages: those at hand at once, others computed when asked for."""

from __future__ import annotations

from typing import Any

from .view import View


def known(view: View) -> Any:
    """The L×H table of the chosen score if it is at hand without computing; None otherwise."""
    return None


def tips(view: View) -> dict[str, list[list[str]]]:
    """Tooltip lines for the grid."""
    return {}
