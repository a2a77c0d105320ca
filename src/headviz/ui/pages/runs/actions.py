"""The buttons of a run: cancel, resume, report, archive, delete. Only its owner may change a run."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from ....display.numbers import size
from ....errors import UserError
from ...parts import recorded
from ...shell import show, state

if TYPE_CHECKING:
    from ....runs.reading import RunView


def this_user() -> str:
    """The user's name: from a login in front of the dashboard, else this machine's user."""
    from ....runs.service import this_user as local

    try:
        name = st.user.get("email") or st.user.get("name")
    except (AttributeError, RuntimeError):
        name = None
    return str(name) if name else local()


def buttons(view: RunView, busy: bool, again: bool = True) -> None:
    """The buttons that fit the run's state; ``again`` = resuming may help."""
    from ....runs.record import may_change
    from ....runs.states import RESUMABLE

    record = view.record
    mine = may_change(record, this_user())
    theirs = "" if mine else f"This run belongs to {record.owner}, who alone may change it."
    with st.container(horizontal=True, gap="small"):
        if busy:
            st.button(
                "Cancel",
                icon=":material/stop:",
                key="run_cancel",
                on_click=_act,
                args=("cancel", record.id),
                disabled=not mine or view.state == "cancelling",
                help=show.plain(theirs or "Finished steps are kept"),
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
        if not busy and not record.parent and not recorded.of(record.id):
            archive = st.popover(
                "Archive or delete", icon=":material/inventory_2:", disabled=not mine, help=show.plain(theirs)
            )
            with archive:
                _tidy(view)


def _tidy(view: RunView) -> None:
    """Archive or delete, with the disk space that it frees."""
    from ....runs import housekeeping

    record = view.record
    kept = housekeeping.used(record.id)
    st.caption(f"This run takes {size(kept)} on disk.")
    if record.archived:
        st.button("Take out of the archive", key="run_back", on_click=_act, args=("back", record.id), width="stretch")
    else:
        st.button(
            "Archive",
            key="run_archive",
            on_click=_act,
            args=("archive", record.id),
            width="stretch",
            help="Hides the run. Steps, log and models are kept; checkpoints that are no longer needed are deleted.",
        )
    sure = st.checkbox("Delete this run and its models for ever", key="run_sure")
    st.button(
        f"Delete (frees {size(kept)})",
        key="run_delete",
        on_click=_act,
        args=("delete", record.id),
        width="stretch",
        disabled=not sure,
        icon=":material/delete:",
    )


def look_again() -> None:
    """Draw the whole page again after an action. Every fragment calls this first."""
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
        state.notify(wrong)
        return
    if what in ("archive", "delete"):
        st.toast(f"{'Deleted' if what == 'delete' else 'Archived'}: {size(freed)} freed.")
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
