"""The list of runs, the state and progress of one run, and the buttons that change it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from ....display.numbers import size, span
from ....display.recipes import command
from ....errors import UserError
from ....pruning.algorithms import DEFAULT
from ....reports.run_report import options_of, recipe_of, run_csv, run_html, run_json, run_tex, start
from ....runs import reading, service
from ....runs.queue import NICENESS_VARIABLE, choose_niceness, niceness
from ....runs.record import ACTIVE, QUEUED, RESUMABLE, may_change
from ...parts import scoring
from ...shell import kept, recipes, recorded, state
from ...shell.job import Memo
from ...shell.messages import plain, refused
from ...shell.view import View

if TYPE_CHECKING:
    from ....pruning.state import State
    from ....runs.reading import RunView

ICONS = {"queued": "◌", "running": "▶", "cancelling": "◼", "cancelled": "◼", "failed": "✕", "lost": "?", "done": "✓"}
# state -> (colour of its badge, icon)
BADGES: dict[str, tuple[Any, str]] = {
    "queued": ("gray", ":material/hourglass_empty:"),
    "running": ("blue", ":material/play_arrow:"),
    "cancelling": ("orange", ":material/stop:"),
    "cancelled": ("gray", ":material/stop_circle:"),
    "failed": ("red", ":material/error:"),
    "lost": ("orange", ":material/help:"),
    "done": ("green", ":material/check:"),
}
# the hint for a run that ended early, below its error
NEXT = {
    "cancelled": "Cancelled by its user. Finished steps are kept; *Resume* continues after the last one.",
    "failed": "Correct the error above, then *Resume*: the run continues after its last step. The log is below.",
    "lost": "Its process has ended without an error message: it was killed, or the machine was restarted. *Resume* "
    "continues after the last step and gives the same result.",
}
NOT_RESUMABLE = (
    "It cannot be resumed. Its steps are kept, and its plan is below: *The same in Python or on the command line*."
)
POLL = 1.5  # seconds between two looks at a run that is running
SHOWN = 10  # runs in the list before 'all'


def busy(view: RunView) -> bool:
    """Whether a run is running or waits for its turn."""
    return view.state in ACTIVE or view.state == QUEUED


def overview(archived: bool = False) -> list[RunView]:
    """Every run, newest first, then recorded ones; with ``archived`` the archived ones instead."""
    runs = reading.overview(archived=archived)
    return runs if archived else [*runs, *recorded.views()]


def look(run_id: str, log_lines: int = 0) -> RunView:
    """One run, the user's or a recorded one."""
    return recorded.view_of(run_id) or reading.show(run_id, log_lines=log_lines)


def labels(runs: Sequence[RunView]) -> dict[str, str]:
    """The name of each run in a list: its state and title, with its id where several have the same title."""
    titles = [r.record.title for r in runs]
    return {
        r.record.id: f"{ICONS.get(r.state, '')} {r.record.title}"
        + (f" · {r.record.id}" if titles.count(r.record.title) > 1 else "")
        for r in runs
    }


# ---- the list


def choose_run(runs: Sequence[RunView], chosen: str) -> None:
    """The list of runs. The chosen one is shown."""
    shown = runs if st.session_state.get("runs_all") else runs[:SHOWN]
    titles = {i: plain(name) for i, name in labels(shown).items()}
    st.session_state["runs_pick"] = chosen if chosen in titles else None
    st.radio(
        "Runs",
        list(titles),
        None,
        key="runs_pick",
        format_func=lambda i: titles.get(i, ""),
        captions=[_caption(r) for r in shown],
        label_visibility="collapsed",
        on_change=_pick,
    )
    if len(runs) > SHOWN:
        st.toggle(f"All {len(runs)}", key="runs_all")


def _caption(r: RunView) -> str:
    parts = ["recorded" if recorded.of(r.record.id) else r.state]
    if r.children:
        parts.append(f"{_ended(r)} of {len(r.children)} runs done")
    elif r.record.expected > 1:
        parts.append("{} of {} steps".format(*r.count))
    parts.append(_time(r.record.created))
    return "  ·  ".join(parts)


def _ended(view: RunView) -> int:
    """How many runs of a sweep are done."""
    return sum(c.state == "done" for c in view.children)


def _time(seconds: float) -> str:
    return time.strftime("%d %b %H:%M", time.localtime(seconds))


def _pick() -> None:
    state.update(run=st.session_state["runs_pick"] or "", step=0)


PRIORITIES = {10: "give way to other programs", 0: "share the processor equally", 19: "use only what is idle"}


def choose_priority() -> None:
    """The priority of runs against other programs. A choice is for runs that start from now on."""
    current, fixed = niceness(), bool(os.environ.get(NICENESS_VARIABLE))
    st.session_state["runs_niceness"] = current
    st.selectbox(
        "Runs on this machine",
        list(dict.fromkeys([*PRIORITIES, current])),
        format_func=lambda n: f"{PRIORITIES.get(n, 'niceness')} ({n})",
        key="runs_niceness",
        on_change=lambda: choose_niceness(st.session_state["runs_niceness"]),
        disabled=fixed,
        help=f"Set by {NICENESS_VARIABLE}."
        if fixed
        else "The number is the system's niceness. A choice is for runs that start from now on.",
    )


def existing_ids(text: str, runs: Sequence[RunView]) -> list[str]:
    """The existing runs that an address names, including the runs of sweeps."""
    existing = {v.record.id for r in runs for v in (r, *r.children)}
    return [i for i in text.split(",") if i in existing]


# ---- one run


def about(view: RunView) -> str:
    """Algorithm, model, task, start, owner and id of a run, in one line."""
    record, spec = view.record, view.record.spec
    parts = []
    if spec.get("algorithm"):
        parts.append(f"{spec['algorithm']} by {spec.get('score')}")
    elif spec.get("score"):
        parts.append(str(spec["score"]))
    if spec.get("model"):
        parts.append(reading.model_and_task(str(spec["model"]), str(spec.get("task") or "")))
    if record.started:
        parts.append(f"started {_time(record.started)}")
    parts += [f"by {record.owner}", f"run {record.id}"]
    return "  ·  ".join(parts)


def state_line(view: RunView) -> None:
    """State, progress, error and buttons of a run."""
    p, record = view.progress, view.record
    if recording := recorded.of(record.id):
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            st.badge("recorded", icon=":material/history:", color="gray")
            st.caption(plain(recording.sentence))
        st.code(recording.command, language=None, wrap_lines=True)
        buttons(view)
        return
    colour, icon = BADGES.get(view.state, ("gray", ""))
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.badge(plain(view.state), icon=icon or None, color=colour)
        if sentence := _describe(view):
            st.markdown(sentence)
    if record.expected > 1 and view.state in ACTIVE:
        if view.children:
            ended = _ended(view)
            st.progress(min(1.0, ended / record.expected), text=f"run {ended} of {record.expected}")
        else:
            st.progress(view.share_done, text="{} of {} steps done".format(*view.count))
    elif view.state in ACTIVE and p.total:
        st.progress(min(1.0, p.done / p.total), text=f"{p.done} of {p.total}")
    if not p.responsive:
        st.caption(f"No news from this run for {span(p.silent or 0)}. The machine may be busy or asleep.")
    if record.error:
        refused(record.error)
    if view.state in NEXT:
        st.caption(NEXT[view.state] if record.resumable else NOT_RESUMABLE)
    buttons(view)


def _describe(view: RunView) -> str:
    p, parts = view.progress, []
    if view.position:
        parts.append(f"number {view.position} in the queue")
    if p.phase:
        parts.append(plain(p.phase) + (f" {p.done} of {p.total}" if p.total else ""))
    if p.remaining is not None:
        parts.append(f"about {span(p.remaining)} left")
    elif p.phase_remaining and p.phase:  # before the first step only this phase can be timed
        parts.append(f"about {span(p.phase_remaining)} left of {'it' if p.total else plain(p.phase)}")
    if view.seconds is not None:
        parts.append(f"{span(view.seconds)} so far" if view.state in ACTIVE else f"took {span(view.seconds)}")
    if p.processor and view.state in ACTIVE:
        parts.append(p.processor)
    if p.memory:
        parts.append(f"memory {size(p.memory)}")
    return "  ·  ".join(parts)


def log(view: RunView) -> None:
    if recorded.of(view.record.id):
        return
    lines = look(view.record.id, log_lines=60).log
    with st.expander("End of the log", expanded=view.state in ("failed", "lost"), icon=":material/terminal:"):
        st.code("\n".join(lines) or "(empty)", language=None)


def recipe(view: View, run: RunView | None = None) -> tuple[str, str]:
    """How to start the chosen run again, or a first one."""
    if run is not None and run.children:
        return _sweep_recipe(run)
    if run is not None and (lines := recipe_of(run.to_dict())):
        python, line = lines
        return f"{python}\nfrom headviz.runs import reading\nreading.show({run.record.id!r}).steps", line
    algorithm = st.session_state.get("new_algorithm", DEFAULT)
    score = scoring.removing(view)
    plan = {"model": view.model, "task": view.task, "algorithm": algorithm, "score": score}
    data = {
        **dict(recipes.data_options(replace(view, groups="", seed=0))),
        "limit": None,
        "dev-limit": view.limit or None,
    }
    options = (*recipes.model_options(view), *data.items(), ("algorithm", algorithm), ("score", score))
    return start(plan), command("run start", options)


def _sweep_recipe(run: RunView) -> tuple[str, str]:
    """How to start the sweep again: its first run's command with every combination in it."""
    specs = [c.record.spec for c in run.children]
    axes = {n: list(dict.fromkeys(str(s.get(n)) for s in specs)) for n in ("task", "algorithm", "score")}
    axes["seeds"] = list(dict.fromkeys(str(seed) for s in specs for seed in s.get("seeds") or ()))
    options = options_of(run.children[0].to_dict()) or ()
    varied = [(name, axes.pop(name, value)) for name, value in options]  # where they stand; new ones come last
    python = f"from headviz.runs import reading\nreading.show({run.record.id!r}).results()"  # the table above
    return python, command("run sweep", (*varied, *axes.items()), folded=True)


# ---- buttons


def buttons(view: RunView) -> None:
    """The buttons that fit the run's state."""
    record = view.record
    mine = may_change(record, kept.user())
    refusal = "" if mine else f"This run belongs to {record.owner}, who alone may change it."
    with st.container(horizontal=True, gap="small"):
        if busy(view):
            st.button(
                "Cancel",
                icon=":material/stop:",
                key="run_cancel",
                on_click=_act,
                args=(service.cancel, record.id),
                disabled=not mine or view.state == "cancelling",
                help=plain(refusal or "Finished steps are kept"),
            )
        if view.state in RESUMABLE and record.resumable:
            st.button(
                "Resume",
                icon=":material/play_arrow:",
                key="run_resume",
                type="primary",
                on_click=_act,
                args=(service.resume, record.id),
                disabled=not mine,
                help=plain(refusal),
            )
        if view.steps or any(c.steps for c in view.children):
            with st.popover("Report", icon=":material/description:"):
                _downloads(view)
        if not busy(view) and not record.parent and not recorded.of(record.id):
            with st.popover("Archive or delete", icon=":material/inventory_2:", disabled=not mine, help=plain(refusal)):
                _archive_or_delete(view)


def _archive_or_delete(view: RunView) -> None:
    """Archive or delete, with the disk space that it frees."""
    record = view.record
    used = service.disk_usage(record.id)
    st.caption(f"This run takes {size(used)} on disk.")
    if record.archived:
        st.button(
            "Take out of the archive",
            key="run_back",
            on_click=_act,
            args=(partial(service.archive, back=True), record.id),
            width="stretch",
        )
    else:
        st.button(
            "Archive",
            key="run_archive",
            on_click=_act,
            args=(service.archive, record.id, "Archived"),
            width="stretch",
            help="Hides the run. Steps, log and models are kept; checkpoints that are no longer needed are deleted.",
        )
    sure = st.checkbox("Delete this run and its models for ever", key="run_sure")
    st.button(
        f"Delete (frees {size(used)})",
        key="run_delete",
        on_click=_act,
        args=(service.delete, record.id, "Deleted"),
        width="stretch",
        disabled=not sure,
        icon=":material/delete:",
    )


def look_again() -> None:
    """Draw the whole page again after an action. Every fragment calls this first."""
    if st.session_state.pop("run_acted", False):
        st.rerun()


def _act(action: Callable[[str, str], Any], run_id: str, done: str = "") -> None:
    """``done`` says what has happened to a run that leaves the list."""
    st.session_state["run_acted"] = True
    try:
        freed = action(run_id, kept.user())
    except UserError as error:
        state.notify(error)
        return
    if done:
        st.toast(f"{plain(done)}: {size(freed)} freed.")
        state.update(run="")


def _downloads(view: RunView) -> None:
    writers = {
        "HTML report": (run_html, "html"),
        "CSV": (run_csv, "csv"),
        "LaTeX": (run_tex, "tex"),
        "JSON": (run_json, "json"),
    }
    for name, (write, ending) in writers.items():
        file = f"headviz-run-{view.record.id}.{ending}"
        st.download_button(
            plain(f"↓ {name}"), partial(write, view), file, key=f"run_{ending}", type="tertiary", on_click="ignore"
        )


# ---- the state of a pruning run

_states: Memo[State | None] = Memo(16)


def state_of(view: RunView) -> State | None:
    """The state so far; None before the first step, or if the checkpoint cannot be read."""
    return _states.get((view.record.id, len(view.steps), len(view.baseline), view.state), lambda: _read(view))


def _read(view: RunView) -> State | None:
    try:
        return reading.state_of(view.record)
    except UserError:  # written by another version; the recorded steps are still shown
        return None
