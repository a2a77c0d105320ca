"""The search behind Ctrl+K: heads, abilities, scores, pages, tasks and runs; a few letters and Enter lead there."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import streamlit as st

from ...demo import card_figures
from ...errors import MaskError, UserError
from ...heads import HeadId
from ...runs import reading
from ...tasks import TASKS
from ..widgets import component
from . import kept, loaders, recorded, state
from .view import FIRST, OF_DATA, PAGES, View

RUNS = 40  # the newest


def search() -> None:
    """The button and its dialog."""
    view = state.view()
    size = (0, 0)
    with suppress(UserError, ImportError):
        present = loaders.shape(view).present
        size = present.num_layers, present.num_heads

    def chosen() -> None:
        sent = st.session_state.get("palette", {}).get("go")
        if sent:
            go(str(sent["to"]))

    targets = [{"name": name, "kind": kind, "go": to} for name, kind, to in listed(view)]
    data = {"targets": targets, "rows": size[0], "heads": size[1]}
    component("palette")(key="palette", data=data, width="content", on_go_change=chosen)


def listed(view: View) -> list[tuple[str, str, str]]:
    """Every target that has a name: its name, its kind, and what ``go`` takes."""
    out = [(page.title, "page", f"page:{name}") for name, page in PAGES.items()]
    if view.on_demo:
        out += [
            (row["phenomenon"], "ability", f"ability:{row['phenomenon']}") for row in card_figures()["heads"]["sets"]
        ]
    with suppress(UserError, ImportError):
        out += [(name, "score", f"score:{name}") for name in loaders.shape(view).scores]
    out += [(name, "task", f"task:{name}") for name in TASKS]
    with suppress(UserError, OSError):
        out += [(one.record.title, "run", f"run:{one.record.id}") for one in reading.overview()[:RUNS]]
    return [*out, *((one.record.title, "run", f"run:{one.record.id}") for one in recorded.views())]


def go(to: str) -> None:
    """In a callback: change the view to this target. Its page opens with the next run."""
    kind, _, what = to.partition(":")
    page = {"page": what, "score": "scores", "task": "data", "run": "runs"}.get(kind, FIRST)
    changes: dict[str, dict[str, Any]] = {
        "ability": {"ability": what, "grid": ""},
        "score": {"score": what},
        "task": {**dict.fromkeys(OF_DATA, ""), "task": what, "example": 0},
        "run": {"run": what, "step": 0},
    }
    if kind == "head":
        _head(*what.split(":"))
    elif kind in changes:
        state.update(**changes[kind])
    if page in PAGES:
        kept.open_page(page)


def _head(way: str, place: str) -> None:
    """Look at a head, or switch it. The browser sends the place, which need not be one of this model."""
    try:
        present = loaders.shape(state.view()).present
        head = HeadId.parse(place)
        mask = state.mask(present)
        state.select(head)
        if way != "show":
            state.set_mask(mask.without([head]) if way == "off" else mask.with_([head]))
    except MaskError as wrong:
        state.notify(wrong)
