"""What a session shares with its user's workspace: saved masks, own texts, the last view, grades.

After each page the session's changes are written, and what other visits of the same user have changed is taken over.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from urllib.parse import parse_qsl, urlencode

import streamlit as st

from ...analyses.grades import Grades
from ...errors import UserError
from ...runs import reading, service
from ...storage import workspace
from ...storage.exchange import restored
from ...storage.workspace import Kept, Text
from . import loaders, state
from .messages import plain
from .view import PAGES, from_address, grades_of, own_grades, remember_grades, to_address

_FAILED, _VIEW = "workspace_failed", "workspace_view"


def user() -> str:
    """The user's name: from a login in front of the dashboard, else this machine's user."""
    try:
        name = st.user.get("email") or st.user.get("name")
    except (AttributeError, RuntimeError):
        name = None
    return str(name) if name else service.this_user()


def keep(page: str) -> None:
    """Called by the frame when a page is drawn. It starts over where another visit has changed what this one shows."""
    try:
        changed = _exchange(page)
    except UserError as error:
        if st.session_state.get(_FAILED) != str(error):
            st.session_state[_FAILED] = str(error)
            st.warning(plain(f"Your masks and texts cannot be kept. {error}"), icon=":material/save:")
        return
    if changed:
        st.rerun()


def _exchange(page: str) -> bool:
    """Write the session's changes and take over those of other visits; whether there were any of these."""
    session, owner = state.session(), user()
    view, address = session.view, to_address(session.view)
    if address and (page, address) != st.session_state.get(_VIEW):
        st.session_state[_VIEW] = (page, address)
        workspace.keep_view(owner, page, urlencode(address))
    clf = loaders.loaded(view)
    if clf is None:
        return False
    digest, saved = clf.digest, dict(session.saved)
    before = dict(session.kept_masks) if session.kept_of == digest else {}
    dropped, new = before.keys() - saved.keys(), {n: m for n, m in saved.items() if before.get(n) != m}
    source = json.dumps(view.source)
    grades = own_grades(view.source)

    def edit(stored: Kept) -> Kept:
        masks = {n: m for n, m in stored.masks.items() if n not in dropped and workspace.fits(m, clf.present)} | new
        for text in reversed(session.new_texts):
            stored = stored.with_text(text)
        measured = {} if grades is None else {source: grades.to_dict()}
        title = reading.model_title(view.model) if masks or stored.texts or measured else ""
        return replace(stored, title=title, masks=masks, grades={**stored.grades, **measured})

    after = workspace.change(owner, digest, edit)
    restored_grades = False
    if grades is None and source in after.grades:
        with suppress(TypeError, KeyError, ValueError, UserError):  # of another version: they are measured again
            remember_grades(view.source, restored(Grades, after.grades[source], (0, 0)))
            restored_grades = True
    state.take_kept(digest, after.masks, after.texts)
    return restored_grades or (dict(after.masks), after.texts) != (saved, session.texts)


grades_of(user)


# ---- the last view, on the first page as it opens


def continue_button() -> None:
    """A button to the last view of this user, where the page shows what it shows to everybody."""
    last = workspace.last_view(user()) if not to_address(state.view()) else {}
    if last.get("query") and last.get("page") in PAGES:
        st.button(
            "Continue",
            key="continue_view",
            type="tertiary",
            icon=":material/history:",
            help=plain(f"Your last view: {PAGES[last['page']].title}"),
            on_click=_open,
            args=(last["page"], last["query"]),
        )


def _open(page: str, query: str) -> None:
    state.open_view(from_address(dict(parse_qsl(query, keep_blank_values=True)))[0])
    open_page(page)


def open_page(name: str) -> None:
    """In a callback, which cannot change the page: the next run does."""
    st.session_state["go_to"] = name


def follow() -> str:
    """The page that ``open_page`` named; once."""
    return str(st.session_state.pop("go_to", ""))


# ---- all of it, on Data & model


def section() -> None:
    """How much is kept, and its way to another machine."""
    session, owner = state.session(), user()  # the user is not known where a download is made
    st.subheader("Your workspace", anchor=False)
    st.caption(
        "Saved masks, your own texts, your last view and grades stay on this machine. Of this model: "
        f"masks {len(session.saved)}, texts {len(session.texts)}."
    )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.download_button(
            "Export all",
            lambda: workspace.export_all(owner),
            "headviz-workspace.json",
            "application/json",
            key="workspace_export",
            icon=":material/download:",
            on_click="ignore",
        )
        with st.popover("Import"):
            file = st.file_uploader("A file that Export all has written", type=["json"], key="workspace_file")
            if file is not None:
                st.button("Add it", key="workspace_import", on_click=_import, args=(file.getvalue(),))


def _import(content: bytes) -> None:
    try:
        count = workspace.import_all(user(), content.decode("utf-8", "replace"))
    except UserError as error:
        state.notify(error)
    else:
        state.notify(f"Added what this file holds of {count} model{'' if count == 1 else 's'}.")


def own_texts(paired: bool) -> None:
    """The user's own texts of this model, to choose again."""
    texts: tuple[Text, ...] = state.session().texts
    if not texts:
        return
    with st.popover("Your texts"):
        for i, (first, second) in enumerate(texts):
            label = f"{first} → {second}" if second and paired else first
            st.button(
                plain(label[:90]),
                key=f"own_text_{i}",
                type="tertiary",
                width="stretch",
                on_click=state.update,
                kwargs={"a": first, "b": second if paired else "", "blank": False},
            )
