"""The search behind Ctrl+K: heads, abilities, scores, pages, tasks and runs; a few letters and Enter lead there."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import streamlit as st

from ...errors import MaskError, UserError
from ...heads import HeadId
from ...runs import reading
from ...tasks import TASKS
from ..shell import kept, loaders, recorded, state
from ..shell.view import FIRST, OF_DATA, PAGES, View
from ..widgets import component
from . import abilities

RUNS = 40  # the newest


def search() -> None:
    """The button and its dialog."""
    view = state.view()
    rows, heads = 0, 0
    with suppress(UserError, ImportError):
        present = loaders.shape(view).present
        rows, heads = present.num_layers, present.num_heads

    def chosen() -> None:
        sent = st.session_state.get("palette", {}).get("go")
        if sent:
            go(str(sent["to"]))

    targets = [{"name": name, "kind": kind, "go": to} for name, kind, to in listed(view)]
    data = {"targets": targets, "rows": rows, "heads": heads}
    component("palette")(key="palette", data=data, width="content", on_go_change=chosen)


def listed(view: View) -> list[tuple[str, str, str]]:
    """Every target that has a name: its name, its kind, and what ``go`` takes."""
    targets = [(page.title, "page", f"page:{name}") for name, page in PAGES.items()]

    def add(kind: str, names: Iterable[str]) -> None:
        targets.extend((name, kind, f"{kind}:{name}") for name in names)

    add("ability", abilities.listed(view))
    with suppress(UserError, ImportError):
        add("score", loaders.shape(view).scores)
    add("task", TASKS)
    runs = recorded.views()
    with suppress(UserError, OSError):
        runs = [*reading.overview()[:RUNS], *runs]
    return [*targets, *((run.record.title, "run", f"run:{run.record.id}") for run in runs)]


def go(to: str) -> None:
    """In a callback: change the view to this target. Its page opens with the next run."""
    kind, _, name = to.partition(":")
    page = {"page": name, "score": "scores", "task": "data", "run": "runs"}.get(kind, FIRST)
    changes: dict[str, dict[str, Any]] = {
        "ability": {"ability": name, "grid": ""},
        "score": {"score": name},
        "task": {**dict.fromkeys(OF_DATA, ""), "task": name, "example": 0},
        "run": {"run": name, "step": 0},
    }
    if kind == "head":
        _head(*name.split(":"))
    elif kind in changes:
        state.update(**changes[kind])
    if page in PAGES:
        kept.open_page(page)


def _head(action: str, place: str) -> None:
    """Select a head, or switch it ``on`` or ``off``. The browser sends the place, which the model may not have."""
    try:
        present = loaders.shape(state.view()).present
        head = HeadId.parse(place)
        mask = state.mask(present)
        state.select(head)
        if action != "show":
            state.set_mask(mask.without([head]) if action == "off" else mask.with_([head]))
    except MaskError as error:
        state.notify(error)
