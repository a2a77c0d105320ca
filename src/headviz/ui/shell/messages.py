"""Texts on a page: the one way from somebody else's text into Markdown, and what cannot be done."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Literal, TypeVar

import streamlit as st
from streamlit.errors import StreamlitDuplicateElementKey

from ...errors import NotDownloaded, UserError

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>$~:^=&])")
# What turns a text into a link or a symbol even where its special characters are escaped: addresses with and without
# their beginning, e-mail addresses, names between colons. A space of no width stops that and is not seen.
_LINKED = re.compile(r"(:)(?=[A-Za-z/_+-])|\b(www)(?=\.)|(\w)(?=@\w)", re.IGNORECASE)
_GAP = "\u200b"


def plain(text: str) -> str:
    """A text that Markdown shows as it stands: nothing typed or uploaded is drawn, fetched or made clickable."""
    gapped = _LINKED.sub(lambda match: match[0] + _GAP, text)
    return _SPECIAL.sub(r"\\\1", gapped)


# ---- what cannot be done

# Messages name an option in brackets, as the command line and Python have it: (--label-column, label_column=), or as
# Python alone does: (masked_lm=True). A page has a field instead. A name such as "bert (lr=2e-5)" is not an option.
_SPELT = re.compile(r" \((?:--[a-z][^()]*|[a-z_]+=(?:True|False|'[^'()]*')?)\)")
_ICONS = {"error": "error", "warning": "edit", "info": "edit"}


def on_page(message: UserError | str) -> str:
    """A refusal's text without the spelling of options."""
    return _SPELT.sub("", str(message))


def refused(
    error: UserError | str, tone: Literal["error", "warning", "info"] = "error", then: Callable[[], None] | None = None
) -> None:
    """The text in a coloured box; not an error where the user can correct it in the field next to it.

    Where something of the hub is missing, a button downloads it; ``then`` is called after that.
    """
    if isinstance(error, NotDownloaded):
        _offer(error, then)
        return
    box = {"error": st.error, "warning": st.warning, "info": st.info}[tone]
    box(plain(on_page(error)), icon=f":material/{_ICONS[tone]}:")


def _offer(missing: NotDownloaded, then: Callable[[], None] | None) -> None:
    name = missing.parameters["name"]
    failed = f"failed_{name}"
    if failure := st.session_state.get(failed):
        st.error(plain(failure), icon=":material/error:")
    else:
        st.info(plain(on_page(missing)), icon=":material/cloud_download:")
    label = plain(f"Download {name} from the Hugging Face Hub")
    with suppress(StreamlitDuplicateElementKey):  # another part of the page has the button
        st.button(label, key=f"fetch_{name}", type="primary", on_click=_download, args=(missing, failed, then))


def _download(missing: NotDownloaded, failed: str, then: Callable[[], None] | None) -> None:
    st.session_state.pop(failed, None)
    try:
        _fetch(missing)
    except UserError as error:
        st.session_state[failed] = on_page(error)
        return
    if then is not None:
        then()
    st.rerun("app")  # the whole page, also where a part of it had the button


def _fetch(missing: NotDownloaded) -> None:
    with st.spinner(plain(f"Downloading {missing.parameters['name']} …"), show_time=True):
        missing.fetch()


T = TypeVar("T")


def with_download(make: Callable[[], T]) -> T:
    """The result of ``make``. The user has just named what it needs in a form, so what is missing is downloaded."""
    try:
        return make()
    except NotDownloaded as missing:
        _fetch(missing)
        return make()
