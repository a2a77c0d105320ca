"""From a run to the other pages: its own model and data become the current ones."""

from __future__ import annotations

from typing import Any

from ...shell import loaders, state
from . import plans

ABOUT = ("model", "revision", "task", "data", "text_columns", "label_column")


def look_at(spec: dict[str, Any], **changes: Any) -> None:
    """Look at what a run was about, and forget masks of another model; a ``UserError`` where that is not allowed."""
    now = plans.source(state.view())
    wanted = {**spec, "model": loaders.model_name(str(spec["model"]))}
    if any(_plain(now.get(name)) != _plain(wanted.get(name)) for name in ABOUT):
        state.update(
            model=str(spec["model"]),
            revision=str(spec.get("revision") or ""),
            task=str(spec["task"]),
            data=str(spec.get("data") or ""),
            columns=",".join(spec.get("text_columns") or ()),
            label=str(spec.get("label_column") or ""),
            **{"groups": "", "example": 0, "a": "", "b": "", "slice": ""},
        )
        state.forget_mask()
    state.update(**changes)


def _plain(value: Any) -> Any:
    """Specs come from JSON: lists for tuples, and nothing said in several ways."""
    return tuple(value) if isinstance(value, list) else value or None
