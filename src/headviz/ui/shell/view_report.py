"""The report of the current view: every figure, table and sentence of the page in one HTML file.

Pages do nothing for it: ``show`` notes what it draws.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from ...heads import HeadMask
from . import state
from .view import link_path

if TYPE_CHECKING:
    pass

_run = threading.local()  # one script run is one thread


def begin() -> None:
    _run.parts = []


def note(kind: str, what: Any, more: str = "") -> None:
    """Note a ``figure`` (or what makes it), ``table`` or ``grid`` with its caption, a ``finding``, or a ``recipe``
    (Python and a command)."""
    _parts().append((kind, what, more))


def _parts() -> list[tuple[str, Any, str]]:
    if not hasattr(_run, "parts"):
        _run.parts = []
    parts: list[tuple[str, Any, str]] = _run.parts
    return parts


def _finding_first(parts: Sequence[tuple[str, Any, str]]) -> list[tuple[str, Any, str]]:
    """The first sentence before the grids that it is about; pages draw it into a place above them."""
    said = next((i for i, (kind, _, _) in enumerate(parts) if kind == "finding"), 0)
    grids_only = all(kind == "grid" for kind, _, _ in parts[:said])
    return [parts[said], *parts[:said], *parts[said + 1 :]] if said and grids_only else list(parts)


def button(page: str, title: str, context: str, mask: HeadMask | None) -> None:
    """The download button. The file is made at the click."""
    parts = list(_parts())
    if any(kind != "recipe" for kind, _, _ in parts):
        shown = state.published()
        st.download_button(
            "↓ Report",
            lambda: html(title, context, parts, link_path(page, shown["view"]), mask),
            f"headviz-{title.lower().replace(' ', '-')}.html",
            "text/html",
            key="view_report",
            type="tertiary",
            on_click="ignore",
            help="This page's figures and tables as one HTML file that needs no network",
        )


def html(
    title: str, context: str, parts: Sequence[tuple[str, Any, str]], path: str, mask: HeadMask | None = None
) -> str:
    """The page as one self-contained file."""
    from ... import __version__
    from ...reports.grid_picture import grid_svg
    from ...reports.html_page import Page

    page = Page(title, f"headviz {__version__} · {context}")
    for kind, what, caption in _finding_first(parts):
        if kind == "grid":
            page.grid(caption, grid_svg(**what))
            continue
        if kind == "finding":
            page.heading(what)
        elif kind == "figure":
            page.figure(what() if callable(what) else what)
        elif kind == "table":
            page.table(*what)
        if caption and kind != "recipe":
            page.text(caption, soft=True)
    if mask is not None and mask.off:
        page.heading("Mask")
        page.masks([(str(mask), mask)])
        page.code(mask.hex)
    page.heading("How to see it again")
    page.text("Behind the address of a running dashboard (headviz serve):", soft=True)
    page.code(path)
    for kind, python, command in parts:
        if kind == "recipe":
            page.text("In Python:", soft=True)
            page.code(python)
            if command:
                page.text("On the command line:", soft=True)
                page.code(command)
    return page.html()
