"""What cannot be done, told on a page."""

from __future__ import annotations

import re
from typing import Literal

import streamlit as st

from ...errors import UserError
from .markdown import plain

# Messages name an option in brackets, as the command line and Python have it: (--label-column, label_column=), or as
# Python alone does: (masked_lm=True). A page has a field in its place. A name such as "bert (lr=2e-5)" is none.
_SPELT = re.compile(r" \((?:--[a-z][^()]*|[a-z_]+=(?:True|False|'[^'()]*')?)\)")
_ICONS = {"error": "error", "warning": "edit", "info": "edit"}


def on_page(wrong: UserError | str) -> str:
    """A refusal's text without the spelling of options."""
    return _SPELT.sub("", str(wrong))


def refused(wrong: UserError | str, tone: Literal["error", "warning", "info"] = "error") -> None:
    """The text in a coloured box; not an error where the user is about to mend it in a field beside."""
    box = {"error": st.error, "warning": st.warning, "info": st.info}[tone]
    box(plain(on_page(wrong)), icon=f":material/{_ICONS[tone]}:")
