"""From a run to the other pages: its own model and data become the current ones."""

from __future__ import annotations

from typing import Any

from . import loaders, state


def look_at(spec: dict[str, Any], **changes: Any) -> None:
    """Look at what a run was about, and forget masks of another model; a ``UserError`` where that is not allowed."""
    view = state.view()
    name = loaders.model_name(str(spec["model"]))
    if loaders.model_name(view.model) != name or view.task != spec["task"]:
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
