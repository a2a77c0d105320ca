"""Long computations in the background: progress, *Stop*, *Keep computing*, and results that are kept.

A job has a key made of digests and options, so two sessions that ask for the same thing share one computation. It ends
when no session wants it any more: all have pressed *Stop*, closed their tab, or let the page show something else. What
was asked for on another page goes on, after what is looked at now. The threads do not use streamlit.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import partial
from itertools import count
from typing import Any, TypeVar

import streamlit as st
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from ...display.numbers import span
from ...errors import Cancelled, UserError
from ...progress import Cancel, Progress
from . import state
from .job import KEPT, Job, Turn, give_back, in_background
from .messages import plain, refused
from .uploads import about

T = TypeVar("T")
Work = Callable[[Progress, Cancel], T]

PATIENCE = 0.7  # seconds a page waits for a result before it shows progress instead,
PARTIAL_AFTER = 0.2  # and before it shows what there is so far
KEEP = 96  # finished results kept in the process,
BYTES = 256 * 2**20  # and the most bytes that their arrays may take
POLL = 0.4  # seconds between two updates of a running job
LONG = 2.0  # seconds from which a wait is counted, and a job can be kept
LAST = 2  # the rank of what nobody asked for yet
AWAY = 1.0  # seconds without a tab after which a session wants nothing any more

_log = logging.getLogger(__name__)


_jobs: OrderedDict[Hashable, Job[Any]] = OrderedDict()
_lock = threading.Lock()


def _who() -> str:
    context = get_script_run_ctx()
    return context.session_id if context else ""


# ---- what the page that is being drawn asks for

_drawn = threading.local()  # one script run is one thread
_runs = count(1)


def page_begins(title: str) -> None:
    """A page is drawn from its beginning. Without ``page_ends``, as for a part alone, earlier requests stay wanted."""
    _drawn.title, _drawn.number, _drawn.keys, _drawn.unfinished = title, next(_runs), [], []


def page_ends() -> None:
    """The page is complete: this session no longer wants what this page asked for before and does not ask for now.

    It is drawn again if a computation ended in the meantime whose first part is on it.
    """
    who, title, keys = _who(), _drawn.title, set(_drawn.keys)
    _drawn.title = ""
    with _lock:
        for key, job in _jobs.items():
            if job.running and job.pages.get(who) == title and key not in keys:
                _leave(job, who)
    if any(not job.running for job in _drawn.unfinished):
        state.repeat_notices()
        st.rerun()


def _asks(job: Job[Any], who: str, rank: int) -> None:
    """Note who asks for a job, and how urgent it is."""
    job.turn.rank = rank
    title = getattr(_drawn, "title", "")
    if title:
        _drawn.keys.append(job.key)
        job.pages[who] = title
        job.turn.requested = (-_drawn.number, len(_drawn.keys))


def _leave(job: Job[Any], who: str) -> None:
    job.wanted_by.discard(who)
    job.pages.pop(who, None)
    job.abandoned = job.abandoned or not job.wanted_by


def _watch_tabs() -> None:
    """While jobs run: a session without a tab wants nothing any more."""
    away: dict[str, float] = {}
    while True:
        time.sleep(AWAY / 4)
        with _lock:
            running = [j for j in _jobs.values() if j.running]
            if not running:
                _watcher.clear()
                return
            now = time.monotonic()
            for who in {w for j in running for w in j.wanted_by if w not in ("", KEPT)}:
                if _has_tab(who):
                    away.pop(who, None)
                elif now - away.setdefault(who, now) >= AWAY:
                    for job in running:
                        if who in job.wanted_by:
                            _leave(job, who)


def _has_tab(session: str) -> bool:
    return not runtime.exists() or runtime.get_instance().is_active_session(session)


def tab_closed() -> Callable[[], bool]:
    """Whether the session of the page that is being drawn has lost its tab since: then nobody waits for the page."""
    who = _who()
    return lambda: bool(who) and not _has_tab(who)


_watcher = threading.Event()  # set while a thread watches


def find(key: Hashable) -> Job[Any] | None:
    with _lock:
        return _jobs.get(key)


def start(key: Hashable, work: Work[T], label: str = "", rank: int = 0, *, again: bool = True) -> Job[T]:
    """The job of this key. Started unless it runs or has a result. A job that failed, or that a session stopped, is
    started again only with ``again``; one that ended because nobody wanted it always is. ``label`` says on the page
    what is computed."""
    who = _who()
    lane = (state.view().model, state.view().revision) if who else ""
    with _lock:
        job = _jobs.get(key)
        if job is not None and not job.stopped and not job.error:
            if who not in job.stopped_by:
                job.wanted_by.add(who)
                _asks(job, who, rank)
            _jobs.move_to_end(key)
            return job
        if job is not None and not again and (job.error or not job.abandoned):
            return job
        job = Job(key, turn=Turn(label, lane))
        job.wanted_by.add(who)
        _asks(job, who, rank)
        _jobs[key] = job
        _forget_old()
        watch = not _watcher.is_set()
        _watcher.set()
    in_background(lambda: _run(job, work), f"headviz-{key!s:.40}")
    if watch:
        threading.Thread(target=_watch_tabs, name="headviz-tabs", daemon=True).start()
    return job


def put(key: Hashable, result: Any) -> None:
    """Store a result that was computed elsewhere, such as by a run, under this key."""
    job: Job[Any] = Job(key, result=result)
    job.finished.set()
    with _lock:
        _jobs[key] = job
        _forget_old()


def _forget_old() -> None:
    """Drop the oldest finished jobs beyond the limits; called with the lock held."""
    sizes = {key: size_of(job.result) for key, job in _jobs.items() if not job.running}
    held = sum(sizes.values())
    for key, size in sizes.items():
        if len(_jobs) <= KEEP and held <= BYTES:
            break
        del _jobs[key]
        held -= size


def size_of(result: Any) -> int:
    """Bytes of the arrays that a result holds directly."""
    return sum(int(getattr(v, "nbytes", 0)) for v in getattr(result, "__dict__", {}).values())


def _run(job: Job[Any], work: Work[Any]) -> None:
    job.turn.begin()
    try:
        if job.cancelled():
            raise Cancelled
        job.result = work(job.progress, job.cancelled)
    except Cancelled:
        job.stopped = True
    except UserError as error:
        job.error = error.reworded(about(error))
    except Exception as error:
        _log.exception("a computation failed: %s", job.key)
        job.error = f"headviz failed here ({type(error).__name__}). The server's log has the details."
    finally:
        job.turn.end()
        job.finished.set()
        if time.monotonic() - job.began > LONG:
            give_back()


def offer(key: Hashable, partial: Any) -> None:
    """Store what a running computation has so far; the page shows it."""
    job = find(key)
    if job is not None:
        job.partial = partial
        job.turn.shows = True


def stop(key: Hashable) -> None:
    """This session no longer wants the job. If no other session does, the computation ends."""
    with _lock:
        job = _jobs.get(key)
        if job is not None:
            job.stopped_by.add(_who())
            job.wanted_by -= {_who(), KEPT}
            job.abandoned = False


def keep(key: Hashable) -> None:
    """The computation goes on when this tab is closed or shows something else."""
    with _lock:
        job = _jobs.get(key)
        if job is not None:
            job.wanted_by.add(KEPT)


def forget(key: Hashable) -> None:
    """Drop a job that has ended, so that the next request computes again; join one that other sessions run."""
    with _lock:
        job = _jobs.get(key)
        if job is not None and not job.running:
            del _jobs[key]
        elif job is not None and job.wanted:
            job.stopped_by.discard(_who())


def need(key: Hashable, label: str, work: Work[T], *, patience: float | None = None, rank: int = 0) -> T | None:
    """The result if it comes within ``PATIENCE``; else None, with progress and *Stop*, or the error, on the page.

    The page is drawn again when the job ends. A job of ``rank`` 1 lets those of rank 0 go first, but shows a first part
    before they go on with the rest.
    """
    job = start(key, work, label, rank, again=False)
    _wait(job, PATIENCE if patience is None else patience)
    if not job.running and not job.error and not job.stopped:
        return job.result
    shown: Job[Any] | None = find(key)
    st.fragment(_progress, run_every=POLL if shown is not None and shown.running else None)(key, label)
    return None


def need_so_far(key: Hashable, label: str, work: Work[T], rank: int = 0) -> T | None:
    """Like ``need``; until the result is there, the part of it that is there."""
    whole = need(key, label, work, rank=rank)
    job = find(key)
    return job.partial if whole is None and job is not None else whole


def request(key: Hashable, label: str, work: Work[T], rank: int = 0) -> T | None:
    """The result, or the part of it that is there, if it comes within ``PATIENCE``; nothing is shown."""
    job = start(key, work, label, rank, again=False)
    _wait(job, PATIENCE)
    if job.running:
        if getattr(_drawn, "title", ""):
            _drawn.unfinished.append(job)
        return job.partial
    return job.result


def _wait(job: Job[Any], patience: float) -> None:
    """Until the job has ended, or has something to show; not longer than ``patience``."""
    began = time.monotonic()
    while (spent := time.monotonic() - began) < patience and (job.partial is None or spent < PARTIAL_AFTER):
        if job.finished.wait(min(0.02, patience - spent)):
            return


def _progress(key: Hashable, label: str) -> None:
    job = find(key)
    if job is None:
        return
    tag = f"{abs(hash(key)):x}"
    if job.error:
        refused(job.error, then=partial(forget, key))
        _once_more("Try again", key, tag)
    elif job.stopped and job.abandoned:
        st.rerun()  # it ended while nobody looked; the page starts it again
    elif job.stopped or (job.running and _who() in job.stopped_by and job.wanted_by):
        st.info(plain(f"{label}: stopped."), icon=":material/stop_circle:")
        _once_more("Continue", key, tag)
    elif job.running:
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            st.progress(job.share, text=plain(_progress_text(job, label)))
            st.button("Stop", key=f"stop_{tag}", icon=":material/stop:", on_click=stop, args=(key,), width="content")
            if KEPT in job.wanted_by:
                st.caption("Goes on when you leave.", width="content")
            elif time.monotonic() - job.began > LONG:
                st.button(
                    "Keep computing",
                    key=f"keep_{tag}",
                    icon=":material/keep:",
                    help="Go on when this tab is closed or shows something else",
                    on_click=keep,
                    args=(key,),
                    width="content",
                )
    else:
        state.repeat_notices()
        st.rerun()  # the result is there; the page asks for it again
    if job.running and st.session_state.setdefault(f"seen_{tag}", id(job.partial)) != id(job.partial):
        st.session_state[f"seen_{tag}"] = id(job.partial)
        state.repeat_notices()
        st.rerun()


def _progress_text(job: Job[Any], label: str) -> str:
    """How far a running job is."""
    if not job.wanted_by:
        return f"{label}: stopping …"
    spent, remaining = time.monotonic() - job.began, job.remaining
    text = f"{label}: {job.done} of {job.total}" if job.total else f"{label} …"
    if job.turn.waits_for:
        return f"{text}, waits for: {job.turn.waits_for}"
    if remaining is not None:
        return f"{text}, about {span(remaining)} left"
    return f"{text} ({span(spent)} so far)" if spent > LONG else text


def _once_more(button: str, key: Hashable, tag: str) -> None:
    """A button to ask again. A click redraws this fragment only, and the page starts the job, so it is redrawn too."""
    if st.button(plain(button), key=f"again_{tag}"):
        forget(key)
        st.rerun()
