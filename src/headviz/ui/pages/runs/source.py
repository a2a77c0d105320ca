"""Make a run's model and data the current ones, for the other pages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from ....errors import UserError
from ...shell import loaders, show, state
from . import plans

if TYPE_CHECKING:
    from ....runs.reading import RunView

ABOUT = ("model", "revision", "job", "task", "data", "text_columns", "label_column", "label_order")


def of_another_model(view: RunView) -> None:
    """Say whose figures these are, where a run is not of the model that is open."""
    first = view.children[0] if view.children else view
    model, now = first.record.spec.get("model"), state.view().model
    if model and not _same(str(model), now):
        said = f"This run is of {_called(str(model))}. The open model, {_called(now)}, has no part in its figures."
        st.info(show.plain(said), icon=":material/info:")


def _same(model: str, other: str) -> bool:
    try:
        return loaders.model_name(model) == loaders.model_name(other)
    except UserError:  # outside the allowed folders, so it cannot be open
        return False


def _called(model: str) -> str:
    return "the demo" if model == "demo" else Path(model).name


def look_at(spec: dict[str, Any], **changes: Any) -> None:
    """Switch to a run's model and data, and say so; masks of another model are dropped.

    ``UserError`` if that is not allowed.
    """
    now = plans.source(state.view())
    wanted = {**spec, "model": loaders.model_name(str(spec["model"]))}
    before = state.view().model
    if any(_plain(now.get(name)) != _plain(wanted.get(name)) for name in ABOUT):
        if not _same(str(spec["model"]), before):
            state.notify(f"Open now: {_called(str(spec['model']))}, the run's model, no longer {_called(before)}.")
        state.update(
            model=str(spec["model"]),
            revision=str(spec.get("revision") or ""),
            job=str(spec.get("job") or ""),
            task=str(spec["task"]),
            data=str(spec.get("data") or ""),
            columns=",".join(spec.get("text_columns") or ()),
            label=str(spec.get("label_column") or ""),
            classes=",".join(spec.get("label_order") or ()),
            **{"groups": "", "example": 0, "a": "", "b": "", "slice": ""},
        )
        state.forget_mask()
    state.update(**changes)


def _plain(value: Any) -> Any:
    """A value as it comes from JSON, so that two compare: lists are tuples, empty values None."""
    return tuple(value) if isinstance(value, list) else value or None
