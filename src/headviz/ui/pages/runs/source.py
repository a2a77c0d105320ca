"""Make a run's model and data the current ones, for the other pages."""

from __future__ import annotations

from typing import Any

from ...shell import loaders, state
from . import plans

ABOUT = ("model", "revision", "task", "data", "text_columns", "label_column")


def look_at(spec: dict[str, Any], **changes: Any) -> None:
    """Switch to a run's model and data; masks of another model are dropped. ``UserError`` if that is not allowed."""
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
    """A value as it comes from JSON, so that two compare: lists are tuples, empty values None."""
    return tuple(value) if isinstance(value, list) else value or None
