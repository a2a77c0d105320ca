"""Long computations in the background: progress, *Stop*, and a result that is kept when the user leaves the page.

A job has a key made of digests and options, so two sessions that ask for the same thing share one computation. It is
cancelled when the last session that wanted it presses *Stop*. The threads do not use streamlit.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import streamlit as st

from ...errors import Cancelled, UserError
from . import state
from .markdown import plain
from .uploads import about

T = TypeVar("T")
Progress = Callable[[int, int], None]
Cancel = Callable[[], bool]
Work = Callable[[Progress, Cancel], T]

PATIENCE = 0.7  # seconds a page waits for a result before it shows progress instead,
SOON = 0.25  # and before it shows what there is so far
KEEP = 96  # finished results kept in the process,
BYTES = 256 * 2**20  # and the most bytes that their arrays may take
POLL = 0.4  # seconds between two updates of a running job

_log = logging.getLogger(__name__)


@dataclass
class Job(Generic[T]):
    """One computation: running, done, failed or stopped."""

    key: Hashable
    done: int = 0
    total: int = 0
    result: T | None = None
    partial: Any = None  # what a progressive computation has so far
    error: str = ""
    stopped: bool = False
    began: float = field(default_factory=time.monotonic)
    finished: threading.Event = field(default_factory=threading.Event)
    wanted_by: set[str] = field(default_factory=set)
    stopped_by: set[str] = field(default_factory=set)  # sessions that pressed Stop; redrawing does not undo that

    @property
    def running(self) -> bool:
        return not self.finished.is_set()

    @property
    def share(self) -> float:
        return min(1.0, self.done / self.total) if self.total else 0.0

    @property
    def remaining(self) -> float | None:
        """Seconds left at the rate so far; None while that is unknown."""
        spent = time.monotonic() - self.began
        return spent * (1 - self.share) / self.share if self.share > 0.02 and spent > 1 else None

    def progress(self, done: int, total: int) -> None:
        self.done, self.total = done, total

    def cancelled(self) -> bool:
        return not self.wanted_by


_jobs: OrderedDict[Hashable, Job[Any]] = OrderedDict()
_lock = threading.Lock()


def _who() -> str:
    from streamlit.runtime.scriptrunner import get_script_run_ctx

    context = get_script_run_ctx()
    return context.session_id if context else ""


def find(key: Hashable) -> Job[Any] | None:
    with _lock:
        return _jobs.get(key)


def start(key: Hashable, work: Work[T]) -> Job[T]:
    """The job of this key. It is started unless it is running or has a result."""
    who = _who()
    with _lock:
        job = _jobs.get(key)
        if job is not None and not job.stopped and not job.error:
            if who not in job.stopped_by:
                job.wanted_by.add(who)
            _jobs.move_to_end(key)
            return job
        job = Job(key)
        job.wanted_by.add(who)
        _jobs[key] = job
        _forget_old()
    threading.Thread(target=_run, args=(job, work), name=f"headviz-{key!s:.40}", daemon=True).start()
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
    ended = [k for k, j in _jobs.items() if not j.running]
    held = sum(size_of(_jobs[k].result) for k in ended)
    for k in ended:
        if len(_jobs) <= KEEP and held <= BYTES:
            break
        held -= size_of(_jobs.pop(k).result)


def size_of(result: Any) -> int:
    """Bytes of the arrays that a result holds directly."""
    return sum(int(getattr(v, "nbytes", 0)) for v in getattr(result, "__dict__", {}).values())


def _run(job: Job[Any], work: Work[Any]) -> None:
    try:
        job.result = work(job.progress, job.cancelled)
    except Cancelled:
        job.stopped = True
    except UserError as wrong:
        job.error = about(wrong)
    except Exception as fault:
        _log.exception("a computation failed: %s", job.key)
        job.error = f"headviz failed here ({type(fault).__name__}). The server's log has the details."
    finally:
        job.finished.set()


def offer(key: Hashable, partial: Any) -> None:
    """Store what a running computation has so far; the page shows it."""
    job = find(key)
    if job is not None:
        job.partial = partial


def stop(key: Hashable) -> None:
    """This session no longer wants the job. If no other session does, the computation ends."""
    with _lock:
        job = _jobs.get(key)
        if job is not None:
            job.stopped_by.add(_who())
            job.wanted_by.discard(_who())


def forget(key: Hashable) -> None:
    """Drop a job that has ended, so that the next request computes again; join one that other sessions run."""
    with _lock:
        job = _jobs.get(key)
        if job is not None and not job.running:
            del _jobs[key]
        elif job is not None and not job.cancelled():
            job.stopped_by.discard(_who())


def need(key: Hashable, what: str, work: Work[T], *, patience: float | None = None) -> T | None:
    """The result if it comes soon; else None, with progress and *Stop*, or the error, on the page.

    The page is drawn again when the job ends.
    """
    job = start_unless_stopped(key, work)
    _wait(job, PATIENCE if patience is None else patience)
    if not job.running and not job.error and not job.stopped:
        return job.result
    _watch(key, what)
    return None


def _wait(job: Job[Any], patience: float) -> None:
    """Until the job has ended, or has something to show; not longer than ``patience``."""
    began = time.monotonic()
    while (spent := time.monotonic() - began) < patience and (job.partial is None or spent < SOON):
        if job.finished.wait(min(0.02, patience - spent)):
            return


def start_unless_stopped(key: Hashable, work: Work[T]) -> Job[T]:
    """Start the job, or give the stopped or failed one, which stays so until the user asks again."""
    job = find(key)
    return job if job is not None and (job.stopped or job.error) else start(key, work)


def _watch(key: Hashable, what: str) -> None:
    job = find(key)
    st.fragment(_progress, run_every=POLL if job is not None and job.running else None)(key, what)


def _progress(key: Hashable, what: str) -> None:
    job = find(key)
    if job is None:
        return
    tag = f"{abs(hash(key)):x}"
    if job.error:
        st.error(plain(job.error), icon=":material/error:")
        _once_more("Try again", key, tag)
    elif job.stopped or (job.running and _who() in job.stopped_by and not job.cancelled()):
        st.info(plain(f"{what}: stopped."), icon=":material/stop_circle:")
        _once_more("Continue", key, tag)
    elif job.running:
        left = job.remaining
        text = f"{what}: {job.done} of {job.total}" if job.total else f"{what} …"
        if job.cancelled():
            text = f"{what}: stopping …"
        elif left is not None:
            text += f", about {_span(left)} left"
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            st.progress(job.share, text=plain(text))
            st.button("Stop", key=f"stop_{tag}", icon=":material/stop:", on_click=stop, args=(key,), width="content")
    else:
        state.repeat_notices()
        st.rerun()  # the result is there; the page asks for it again
    if job.running and st.session_state.setdefault(f"seen_{tag}", id(job.partial)) != id(job.partial):
        st.session_state[f"seen_{tag}"] = id(job.partial)
        state.repeat_notices()
        st.rerun()


def _once_more(label: str, key: Hashable, tag: str) -> None:
    """A button to ask again. A click redraws this fragment only, and the page starts the job, so it is redrawn too."""
    if st.button(plain(label), key=f"again_{tag}"):
        forget(key)
        st.rerun()


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
