"""What may be done to a run: cancel, resume, report, put aside, delete; by its owner only."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from ....errors import UserError
from ...shell import show, state

if TYPE_CHECKING:
    from ....runs.reading import RunView


def this_user() -> str:
    """Who is looking: the name that a login in front passes on, else this machine's user."""
    from ....runs.service import this_user as local

    try:
        name = st.user.get("email") or st.user.get("name")
    except (AttributeError, RuntimeError):
        name = None
    return str(name) if name else local()


def size(count: float) -> str:
    """Bytes as people say them."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count:.0f} bytes"


def buttons(view: RunView, busy: bool, again: bool = True) -> None:
    """Those that make sense in its state; ``again`` = resuming may help."""
    from ....runs.record import may_change
    from ....runs.states import RESUMABLE

    record = view.record
    mine = may_change(record, this_user())
    theirs = "" if mine else f"It belongs to {record.owner}; only {record.owner} may change it."
    with st.container(horizontal=True, gap="small"):
        if busy:
            st.button(
                "Cancel",
                icon=":material/stop:",
                key="run_cancel",
                on_click=_act,
                args=("cancel", record.id),
                disabled=not mine or view.state == "cancelling",
                help=show.plain(theirs or "Finished steps stay"),
            )
        if view.state in RESUMABLE and again:
            st.button(
                "Resume",
                icon=":material/play_arrow:",
                key="run_resume",
                type="primary",
                on_click=_act,
                args=("resume", record.id),
                disabled=not mine,
                help=show.plain(theirs),
            )
        if view.steps or any(c.steps for c in view.children):
            with st.popover("Report", icon=":material/description:"):
                _downloads(view)
        if not busy and not record.parent:
            with st.popover("Tidy up", icon=":material/inventory_2:", disabled=not mine, help=show.plain(theirs)):
                _tidy(view)


def _tidy(view: RunView) -> None:
    """Put aside or delete, with what that frees."""
    from ....runs import housekeeping

    record = view.record
    kept = housekeeping.used(record.id)
    st.caption(f"It keeps {size(kept)} on disk.")
    if record.archived:
        st.button("Bring back into the list", key="run_back", on_click=_act, args=("back", record.id), width="stretch")
    else:
        st.button(
            "Put aside",
            key="run_archive",
            on_click=_act,
            args=("archive", record.id),
            width="stretch",
            help="Out of the list. Steps, log and models stay; checkpoints that nothing needs any more go.",
        )
    sure = st.checkbox("Delete it with its models; there is no way back", key="run_sure")
    st.button(
        f"Delete, frees {size(kept)}",
        key="run_delete",
        on_click=_act,
        args=("delete", record.id),
        width="stretch",
        disabled=not sure,
        icon=":material/delete:",
    )


def look_again() -> None:
    """The first line of every part that is drawn by itself: after an action the whole page is drawn anew."""
    if st.session_state.pop("run_acted", False):
        st.rerun()


def _act(what: str, run_id: str) -> None:
    from ....runs import housekeeping, service

    actions: dict[str, Any] = {
        "cancel": service.cancel,
        "resume": service.resume,
        "archive": housekeeping.archive,
        "back": partial(housekeeping.archive, back=True),
        "delete": housekeeping.delete,
    }
    st.session_state["run_acted"] = True
    try:
        freed = actions[what](run_id, this_user())
    except UserError as wrong:
        state.notify(str(wrong))
        return
    if what in ("archive", "delete"):
        st.toast(f"{'Deleted' if what == 'delete' else 'Put aside'}: {size(freed)} freed.")
        state.update(run="")


def _downloads(view: RunView) -> None:
    from ....reports.run_report import run_csv, run_html, run_json, run_tex

    made = {
        "HTML report": (run_html, "html"),
        "CSV": (run_csv, "csv"),
        "LaTeX": (run_tex, "tex"),
        "JSON": (run_json, "json"),
    }
    for name, (write, ending) in made.items():
        file = f"headviz-run-{view.record.id}.{ending}"
        st.download_button(
            show.plain(f"↓ {name}"), partial(write, view), file, key=f"run_{ending}", type="tertiary", on_click="ignore"
        )
