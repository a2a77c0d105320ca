"""A first mask to try, for pages that have nothing to compare while all heads are on."""

from __future__ import annotations

import streamlit as st

from ...heads import HeadId, HeadMask
from ..shell import mask_edit as maskedit
from ..shell import show, state
from . import abilities, cost

SHARE = 0.2  # of the heads, where nothing better is known


def offer(present: HeadMask, kind: str | None = None) -> None:
    """Say that all heads are on, and offer a mask: the heads that this kind of example needs, or the lowest."""
    st.info("All heads are on. Switch some off to see what that changes for this text.")
    label, mask = suggestion(present, kind)
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.button(
            show.plain(label),
            key="first_mask",
            icon=":material/power_settings_new:",
            on_click=state.set_mask,
            args=(mask,),
        )
        st.page_link("pages/masklab.py", label="Choose heads in the Mask lab", icon=":material/grid_on:")


def suggestion(present: HeadMask, kind: str | None) -> tuple[str, HeadMask]:
    """A mask worth trying, and its button's label."""
    view = state.view()
    known = abilities.carriers(view).get(kind or "")
    if known:
        rows = " and ".join(str(h) for h in known)
        return f"Switch off {rows}: {kind} needs {_them(known)}", present.without(known)
    count = max(1, round(SHARE * len(present.kept)))
    found = cost.ordering(view)
    if found is not None and found.values.shape == (present.num_layers, present.num_heads):
        label = f"Switch off the {count} lowest by {found.score}"
        if tie := maskedit.tie_at(found.values, count, present):
            label += f" ({tie.rstrip('.')})"
        return label, maskedit.off_to_count(found.values, count, present)
    return f"Switch off {count} heads at random", maskedit.off_at_random(count, present, seed=0)


def _them(heads: list[HeadId]) -> str:
    return "it" if len(heads) == 1 else "them"
