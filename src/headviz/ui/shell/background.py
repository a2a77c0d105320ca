"""Threads that the process waits for at its end. Python would kill them inside torch, which aborts the process."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections.abc import Callable

LIMIT = 1.5  # seconds that all of them have to stop

ending = threading.Event()  # set when the process ends; long work looks at it
_threads: list[threading.Thread] = []
_lock = threading.Lock()


def in_background(work: Callable[[], object], name: str) -> None:
    """Call it in a thread of its own."""
    thread = threading.Thread(target=work, name=name, daemon=True)
    with _lock:
        _threads[:] = [*(t for t in _threads if t.is_alive()), thread]
        thread.start()


@atexit.register
def _stop_all() -> None:
    ending.set()
    until = time.monotonic() + LIMIT
    for thread in list(_threads):
        thread.join(max(0.0, until - time.monotonic()))
    if any(thread.is_alive() for thread in _threads) and _in_server():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)  # a server's status, without the end of Python's threads


def _in_server() -> bool:
    from streamlit import runtime

    return runtime.exists()
