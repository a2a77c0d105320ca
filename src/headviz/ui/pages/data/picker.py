"""A menu of models: shipped ones, those used lately, and folders below the allowed roots."""

from __future__ import annotations

import streamlit as st

from ...shell import loaders
from ...shell.view import View
from .source import try_model

SHIPPED = {
    "demo": "demo: answers whether one sentence follows from another",
    "demo-pretrained": "demo-pretrained: the demo before it was fine-tuned (θ0)",
    "demo-translation": "demo-translation: translates an invented language",
}
LISTED = 40  # local folders that the menu lists


def picker(view: View) -> None:
    """The menu. A chosen model is opened with the task that fits it."""
    recent = [m for m in st.session_state.get("recent_models", ()) if m not in SHIPPED]
    local = [m for m in found_folders() if m not in recent]
    names = list(dict.fromkeys([*SHIPPED, *recent, *local, view.model]))
    chosen = st.selectbox(
        "Models at hand",
        names,
        names.index(view.model),
        key=f"model_pick_{view.model}",
        format_func=lambda m: SHIPPED.get(m, m),
        help="Shipped models, models used lately, and folders with a model below the allowed folders",
    )
    if chosen != view.model:
        try_model(view, view.of_model(chosen))


@st.cache_data(ttl=30, show_spinner=False)
def found_folders() -> list[str]:
    """Folders with a model's configuration at most three levels below an allowed root."""
    out: list[str] = []
    for root in loaders.allowed_roots():
        for depth in ("*", "*/*", "*/*/*"):
            for file in root.glob(f"{depth}/config.json"):
                if len(out) >= LISTED:
                    return out
                if not any(part.startswith((".", "_")) or part == "demo" for part in file.relative_to(root).parts):
                    out.append(str(file.parent))
    return list(dict.fromkeys(out))
